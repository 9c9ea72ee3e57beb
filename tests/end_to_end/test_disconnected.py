"""A site from which nothing outside can be reached, with OpenShift's own programs and images by digest."""

from __future__ import annotations

import json
from collections.abc import Generator
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


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Generator[Project, None, None]:
    """A copy of the project, shared by this module's tests in their order."""
    yield from copies(tmp_path_factory.mktemp(_STACK), stack=_STACK)


def _outside(site: Project) -> dict[str, Any]:
    return json.loads(site.lab("outside"))


def test_an_image_that_the_registry_lacks_is_told_before_power_is_on(site: Project) -> None:
    site.start_lab()
    links = site.layout.mirror / "images/docker/registry/v2/repositories/openshift/release/_manifests/revisions/sha256"
    lost = min(links.iterdir())
    hidden = lost.rename(site.layout.mirror / lost.name)
    told = site.make("up", fails=True).text
    assert "1 of 11 images of the release cannot be pulled" in told
    assert "mirror.facility.test:5000/openshift/release: it is not there (HTTP 404)" in told
    assert {server["power"] for server in json.loads(site.lab("rack")).values()} == {"off"}
    assert _outside(site)["outside"] == ["quay.io"], "the place itself was asked last"
    hidden.rename(lost)
    site.assert_down()


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
