"""A single node bootstraps itself with the real installer's files: what would harm is masked, the rest starts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from metal_ipi.components.boot import installer
from metal_ipi.components.boot.ignition import IgnitionError
from tests.conformance import ignition
from tests.conformance.conftest import Made
from tests.conformance.facilities import ARCHITECTURES
from tests.conformance.given import live

_NODE = "single-control-plane-0"
_INSTALLS, _APPROVES, _BOOTSTRAPS = "install-to-disk.service", "approve-csr.service", "bootkube.service"


def _merged(made: Made, architecture: str, merge: Path, directory: Path) -> dict[str, Any]:
    """The units of the live system, as Ignition merges them."""
    facility = made("single", architecture)
    documents = ignition.chain(live(facility, _NODE), lambda url: facility.uploads[url])
    config, reported = ignition.merged(merge, documents, directory)
    assert reported == ""
    return ignition.units(config)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_what_we_mask_is_there_and_would_start_by_itself(architecture: str, made: Made) -> None:
    facility = made("single", architecture)
    theirs = ignition.units(facility.bootstrap)
    assert all(theirs[name]["enabled"] for name in (_INSTALLS, _APPROVES))
    masked = {name for name, unit in ignition.units(json.loads(live(facility, _NODE))).items() if unit.get("mask")}
    assert masked == {_INSTALLS, _APPROVES}


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_it_stays_masked_once_merged(architecture: str, made: Made, merge: Path, tmp_path: Path) -> None:
    units = _merged(made, architecture, merge, tmp_path)
    assert {name for name, unit in units.items() if unit.get("mask")} == {_INSTALLS, _APPROVES}


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_bootkube_is_started_by_a_service_that_is_not_masked(
    architecture: str, made: Made, merge: Path, tmp_path: Path
) -> None:
    """bootkube.service has no [Install] section: it starts because enabled services want it. Two of the three that do
    are those that we mask, so the third one has to be there."""
    units = _merged(made, architecture, merge, tmp_path)
    assert not units[_BOOTSTRAPS].get("mask") and "[Install]" not in units[_BOOTSTRAPS]["contents"]
    wanting = {name for name, unit in units.items() if f"Wants={_BOOTSTRAPS}" in (unit.get("contents") or "")}
    assert wanting == {_INSTALLS, _APPROVES, "progress.service"}
    starts = [name for name in wanting if units[name].get("enabled") and not units[name].get("mask")]
    assert starts == ["progress.service"]
    assert "WantedBy=multi-user.target" in units["progress.service"]["contents"]


def test_our_service_waits_for_what_bootkube_leaves(made: Made) -> None:
    """install.sh stands where install-to-disk.sh would: both wait for the same file of bootkube.sh, and then install
    with another one, which bootstrap-in-place.sh writes."""
    facility = made("single")
    ours = ignition.files(json.loads(live(facility, _NODE)))[installer.PROGRAM].decode()
    theirs = facility.bootstrap_files["/usr/local/bin/install-to-disk.sh"].decode()
    done, leaves = "/opt/openshift/.bootkube.done", "/opt/openshift/master.ign"
    assert f"touch {done}\n" in facility.bootstrap_files["/usr/local/bin/bootkube.sh"].decode()
    writes = facility.bootstrap_files["/usr/local/bin/bootstrap-in-place.sh"].decode()
    assert '--volume "$PWD:/assets:z"' in writes and "--output /assets/master.ign\n" in writes
    assert f"until [ -f {done} ]" in theirs and f" -i {leaves} " in theirs
    assert f"master={leaves}\n" in ours and 'until [ -e "${master%/*}/.bootkube.done" ]' in ours


def test_the_installers_own_disk_is_one_that_never_exists(made: Made) -> None:
    """Should install-to-disk.service ever run: it would write to this disk."""
    program = made("single").bootstrap_files["/usr/local/bin/install-to-disk.sh"].decode()
    assert (
        "coreos-installer install -n -i /opt/openshift/master.ign /dev/disk/by-id/metal-ipi-chooses-the-disk" in program
    )


def test_a_release_without_the_service_that_we_mask_is_refused(made: Made) -> None:
    bootstrap = json.dumps(made("single").bootstrap)
    assert installer.checked_in_place(bootstrap) == bootstrap
    with pytest.raises(IgnitionError, match="has no install-to-disk"):
        installer.checked_in_place(bootstrap.replace(_INSTALLS, "write-to-disk.service"))


@pytest.mark.parametrize("name", ["metal", "rack"])
def test_a_bootstrap_machines_bootkube_is_started_by_a_service_that_is_not_masked(name: str, made: Made) -> None:
    units = ignition.units(made(name).bootstrap)
    wanting = {name for name, unit in units.items() if f"Wants={_BOOTSTRAPS}" in (unit.get("contents") or "")}
    assert wanting == {_APPROVES, "progress.service"} and units["progress.service"]["enabled"]
