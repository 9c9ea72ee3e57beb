"""Bootstrap in place: what one machine is given that forms its cluster in its live system. That it does so, and goes on
from its disk, is tested by tests/end_to_end/test_single_node.py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .support import Facility, contents, write_config

pytestmark = pytest.mark.programs

_DISK = "/dev/disk/by-id/none"
_SINGLE: dict[str, Any] = {
    "controlPlane": {"name": "master", "replicas": 1},
    "compute": [{"name": "worker", "replicas": 0}],
    "bootstrapInPlace": {"installationDisk": _DISK},
}
_CONFIG = "bootstrap-in-place-for-live-iso.ign"


def _create(site: Facility, **changes: Any) -> tuple[int, str]:
    write_config(site.assets, **{**_SINGLE, **changes})
    result = site.install("create", "single-node-ignition-config")
    return result.returncode, result.stderr


def _config(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text())


def test_its_config_has_the_real_ones_name_and_services(site: Facility) -> None:
    assert _create(site)[0] == 0
    written = {str(path.relative_to(site.assets)) for path in site.assets.rglob("*") if path.is_file()}
    assert {_CONFIG, "worker.ign", "metadata.json", "auth/kubeconfig", "auth/kubeadmin-password"} <= written
    assert not {"bootstrap.ign", "master.ign"} & written
    config = _config(site.assets / _CONFIG)
    units = {unit["name"]: unit for unit in config["systemd"]["units"]}
    assert {name: unit["enabled"] for name, unit in units.items()} == {
        "bootkube.service": True,
        "install-to-disk.service": True,
    }
    script = contents(config)["/usr/local/bin/install-to-disk.sh"].decode()
    assert f"coreos-installer install --ignition-file /opt/openshift/master.ign {_DISK}\n" in script


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bootstrapInPlace": None}, "bootstrapInPlace.installationDisk: Required value"),
        ({"bootstrapInPlace": {}}, "bootstrapInPlace.installationDisk: Required value"),
        (
            {"controlPlane": {"name": "master", "replicas": 3}},
            "controlPlane.replicas: Invalid value: bootstrap in place",
        ),
    ],
)
def test_what_is_no_single_node_exits_3(site: Facility, changes: dict[str, Any], message: str) -> None:
    status, told = _create(site, **changes)
    assert status == 3 and message in told
    assert (site.assets / "install-config.yaml").exists()
