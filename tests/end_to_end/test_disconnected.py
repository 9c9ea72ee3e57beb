"""A site from which nothing outside can be reached, with OpenShift's own programs and images by digest."""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from lab.mirror import registry
from lab.openshift.real import openshift_install, release
from tests.end_to_end.conftest import copies
from tests.end_to_end.project import Project

pytestmark = [
    pytest.mark.lab,
    pytest.mark.engine,
    pytest.mark.nightly,
    pytest.mark.usefixtures("kubernetes"),
    pytest.mark.skipif(not registry.PROGRAM.exists(), reason="docker-registry is not installed (apt: docker-registry)"),
    pytest.mark.skipif(
        openshift_install.cached() is None or release.cached() is None, reason="OpenShift's programs are not built"
    ),
]
_STACK = "disconnected"
_LONGEST = 30 * 60.0
"""Seconds for an installation on servers that are emulated in software, on a busy system."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Generator[Project, None, None]:
    """A copy of the project, shared by this module's tests in their order."""
    yield from copies(tmp_path_factory.mktemp(_STACK), stack=_STACK)


def _outside(site: Project) -> dict[str, Any]:
    return json.loads(site.lab("outside"))


def _written(disk: Path) -> bool:
    """Whether anything but zeros is on a disk, which is a file with holes."""
    with disk.open("rb") as file:
        end, offset = file.seek(0, os.SEEK_END), 0
        while offset < end:
            try:
                offset = os.lseek(file.fileno(), offset, os.SEEK_DATA)
            except OSError:  # nothing but a hole from here on
                return False
            file.seek(offset)
            if any(file.read(1 << 16)):
                return True
            offset += 1 << 16
    return False


def test_an_image_that_the_registry_lacks_is_told_before_power_is_on(site: Project) -> None:
    site.start_lab()
    links = site.layout.mirror / "images/docker/registry/v2/repositories/openshift/release/_manifests/revisions/sha256"
    lost = min(links.iterdir())
    hidden = lost.rename(site.layout.mirror / lost.name)
    told = site.make("up", fails=True).text
    assert "1 of 11 images of the release cannot be pulled" in told
    assert "mirror.facility.test:5000/openshift/release: it does not exist (HTTP 404)" in told
    assert {server["power"] for server in json.loads(site.lab("rack")).values()} == {"off"}
    assert _outside(site)["outside"] == ["quay.io"], "the place itself was asked last"
    hidden.rename(lost)
    site.assert_down()


def test_machines_that_do_not_fit_are_told_before_anything_is_written(site: Project) -> None:
    site.start_lab()
    site.lab("quirk", "server-1", "--clock-ahead", "60", "--host-name", "node")
    site.lab("quirk", "server-2", "--mtu", "1400", "--host-name", "node")
    told = site.make("up", fails=True).text
    names = [f"{_STACK}-control-plane-{number}" for number in range(3)]
    assert f"live checks: nothing is installed, because of {', '.join(names)}" in told
    assert "because the check of the control plane's live systems failed" in told, "no gate waits for its timeout"
    assert "error    clock: its clock is 60 s ahead of the other machines'" in told
    assert f"DHCP or the DNS gives the name node to it, and to {names[2]}" in told
    assert f"packets of 1500 bytes, which its MTU allows, do not reach {names[2]} and return" in told
    assert "memory: it has 2.0 GiB of memory" in told and "(overridden: machines of the lab have 2 GiB)" in told
    disks = [path for path in (site.layout.state / "machines").glob("*/disks/*") if path.is_file()]
    assert len(disks) >= 6 and not [path.name for path in disks if _written(path)]
    for number in (1, 2):
        site.lab("quirk", f"server-{number}")


def test_it_is_installed_and_asks_nobody_outside(site: Project) -> None:
    site.make("up")
    consoles = [path.read_text() for path in (site.layout.state / "machines").glob("*/console.log")]
    started = [line for text in consoles for line in text.splitlines() if ": started machine-config-server of " in line]
    assert started and all(" of quay.io/openshift-release-dev/ocp-v4.0-art-dev@sha256:" in line for line in started)
    assert not list((site.layout.boot / "containers").glob("registry.*openshift*")), "there is no other place for them"
    seen = _outside(site)
    assert (seen["outside"], seen["sent"]) == ([], [])
    assert {"mirror.facility.test", "api-int.disconnected.facility.test"} <= set(seen["site"])
    site.assert_unchanged("up")
    site.assert_down()


@pytest.mark.libvirt
@pytest.mark.usefixtures("emulation")
def test_emulated_machines_are_checked_and_installed_there(tmp_path: Path) -> None:
    for site in copies(tmp_path, machines="libvirt", stack=_STACK):
        told = site.make("up", seconds=_LONGEST).text
        assert "disk-latency: of " in told and "overridden: disks of the lab are files of a busy system" in told
        assert "booted into its installer again" not in told, "none was taken for silent while it was held"
        assert (_outside(site)["outside"], _outside(site)["sent"]) == ([], [])
        site.assert_unchanged("up")
        site.assert_down()
