"""One whole installation on machines that really boot: iPXE, the real Ignition and Afterburn, systemd, OpenSSH."""

from __future__ import annotations

import pytest

from tests.end_to_end.cluster import DOMAIN, names
from tests.end_to_end.project import Project

pytestmark = [pytest.mark.lab, pytest.mark.engine, pytest.mark.libvirt]

_LONGEST = 600.0
"""Seconds for an installation: six machines are emulated at once, in software."""
_WITHOUT_AFTERBURN = {"ignition", "platform-karg", "karg console=ttyS0", "hostname", "os-version"}


def test_a_cluster_is_installed_on_machines_that_boot(emulated: Project) -> None:
    up = emulated.make("up", seconds=_LONGEST)

    output = emulated.output()
    assert output["bootstrap"] == {"present": False}
    roles = {node["name"]: node["role"] for node in output["nodes"]}
    assert roles == {f"{name}.{DOMAIN}": role for name, role in names().items()}
    holdings = emulated.holdings()
    assert sorted(device["hostname"] for device in holdings["devices"]) == sorted(names())
    for node in output["nodes"]:
        checks = {check["name"]: check["status"] for check in node["checks"]}
        assert checks.keys() >= _WITHOUT_AFTERBURN
        assert {checks[name] for name in _WITHOUT_AFTERBURN} == {"passed"}, node
        if "afterburn" in checks:  # an image made where there was no cargo
            assert checks["afterburn"] == "skipped", node
        else:
            assert {checks[f"afterburn-{name}"] for name in ("public-ipv4", "private-ipv4", "hostname")} == {"passed"}
    print(f"up on libvirt machines took {up.seconds:.0f} s")

    assert "up: no changes" in emulated.make("up").out
    assert "refresh: no changes" in emulated.make("refresh").out
    assert "up: no changes" in emulated.make("up").out
    emulated.make("down")
    assert emulated.left() == []
