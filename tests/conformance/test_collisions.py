"""What our program puts on machines, beside what OpenShift puts there: nothing of it is the other's."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from metal_ipi.components.boot import node_image
from tests.conformance import ignition
from tests.conformance.conftest import Configured, Made
from tests.conformance.given import bootstrap, in_place_pointer, live, pointer

_SHARED = {"user core": "the keys of both are let in: Ignition joins lists of SSH keys"}
_BOOTSTRAPS = {**_SHARED, "approve-csr.service": "masked: it approves everybody (components/install/bootstrap.py)"}
_INSTALLS_ITSELF = {**_BOOTSTRAPS, "install-to-disk.service": "masked: install.sh installs (docs/adr/0019)"}
"""What both have, and why that is meant."""
_ROLES = {"control-plane": "master", "worker": "worker"}


def _collide(ours: str, theirs: str, meant: Mapping[str, str]) -> None:
    mine, others = (ignition.parts(json.loads(text)) for text in (ours, theirs))
    assert mine & others == meant.keys()
    paths = {name for name in others if name.startswith("/")}
    inside = {(one, other) for one in mine for other in paths if f"{one}/".startswith(f"{other}/") and one != other}
    around = {(one, other) for one in mine for other in paths if f"{other}/".startswith(f"{one}/") and one != other}
    assert (inside, around) == (set(), set()), "a file cannot be a folder"
    units = {name.rpartition("/")[2] for name in paths if name.startswith("/etc/systemd/system/")}
    assert mine & units == set()


@pytest.mark.parametrize("name", ["metal", "rack"])
@pytest.mark.parametrize("role", _ROLES)
def test_nothing_of_ours_is_part_of_a_nodes_rendered_configuration(
    name: str, role: str, made: Made, configured: Configured
) -> None:
    config = configured(name)
    theirs = config.served if role == "control-plane" else config.rendered["worker"]
    ours = pointer(made(name), role)
    _collide(ours, theirs, _SHARED)
    # Else nothing was compared: these are on every node, and on those that serve the API.
    parts = ignition.parts(json.loads(ours))
    assert {"/etc/hostname", "/etc/metal-ipi/installation.json"} <= parts
    assert ("metal-ipi-machine-config-access.service" in parts) is (role == "control-plane")
    assert ("metal-ipi-kube-vip.service" in parts) is (role == "control-plane")
    profiles = {path for path in parts if path.startswith("/etc/NetworkManager/system-connections/")}
    assert profiles, "VLANs on Metal, the static network of a rack"


@pytest.mark.parametrize("name", ["metal", "rack"])
def test_nothing_of_ours_is_part_of_the_bootstrap_machines_configuration(name: str, made: Made) -> None:
    facility = made(name)
    _collide(bootstrap(facility), json.dumps(facility.bootstrap), _BOOTSTRAPS)


def test_nothing_of_ours_is_part_of_a_single_nodes_configuration(made: Made, configured: Configured) -> None:
    facility = made("single")
    _collide(live(facility, "single-control-plane-0"), json.dumps(facility.bootstrap), _INSTALLS_ITSELF)
    _collide(in_place_pointer(facility), configured("single").served_in_place, _SHARED)


@pytest.mark.parametrize("name", ["metal", "rack", "single"])
def test_the_services_and_folders_that_ours_lean_on_are_there(name: str, made: Made, configured: Configured) -> None:
    """Ours come before kubelet.service, add to node-image-pull.service, and write profiles where they are read."""
    facility, served = made(name), json.loads(configured(name).served)
    assert (
        ignition.units(served)["kubelet.service"]["enabled"] and ignition.units(facility.bootstrap)["kubelet.service"]
    )
    profiles = ignition.files(served)["/etc/NetworkManager/conf.d/20-keyfiles.conf"].decode()
    assert "path=/etc/NetworkManager/system-connections\n" in profiles
    (ours,) = node_image.files()
    folder, _, _ = ours.path.rpartition(".d/")
    assert folder in facility.bootstrap_files, "a unit that the drop-in belongs to"
    pulls = facility.bootstrap_files["/usr/local/bin/node-image-pull.sh"].decode()
    removed = ours.text.split("rm -rf ", 1)[1].split()
    assert any(f"ostree_repo={path}\n" in pulls for path in removed), "what the drop-in removes is what is pulled to"
