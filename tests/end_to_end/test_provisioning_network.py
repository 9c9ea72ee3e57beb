"""Servers that boot from the network through Ironic on the lab's hub: DHCP, TFTP, boot files, and a cluster by IPMI."""

from __future__ import annotations

import re
from collections.abc import Generator
from pathlib import Path

import pytest
import yaml

from lab.bmc import identity
from lab.hub import images
from tests.end_to_end.conftest import copies
from tests.end_to_end.project import Project
from tests.end_to_end.provisioned import CLUSTER, ON_A_HUB, SERVERS, Ironic, assert_installed, stack_of

pytestmark = [*ON_A_HUB, pytest.mark.nightly]
_DHCP = {
    "interface": "eth0",
    "ranges": ["192.0.2.30-192.0.2.39"],
    "gateway": "192.0.2.1",
    "nameservers": ["192.0.2.53"],
}
_FIRMWARE = """
ip tuntap add tap-pxe mode tap
trap 'ip link del tap-pxe' EXIT
ip link set tap-pxe master facility0 up
exec 3< <(timeout 180 qemu-system-x86_64 -machine q35,graphics=off -m 512 -display none -nodefaults -serial stdio \\
  -netdev tap,id=net,ifname=tap-pxe,script=no,downscript=no "$@" </dev/null)
sed '/No more network devices/q' <&3
kill $!
wait $! || true
"""
_BIOS = ("-device", "virtio-net-pci,netdev=net,mac={}")
_UEFI = (
    *("-drive", "if=pflash,format=raw,readonly=on,file=/usr/share/OVMF/OVMF_CODE_4M.fd"),
    *("-drive", "if=pflash,format=raw,snapshot=on,file=/usr/share/OVMF/OVMF_VARS_4M.fd"),
    *("-device", "virtio-rng-pci", "-device", "virtio-net-pci,netdev=net,romfile=,mac={}"),
)


def _booted(project: Project, mac: str, firmware: tuple[str, ...] = _BIOS) -> str:
    """What a machine's console shows that boots from the network, beside all servers. A BIOS has iPXE from QEMU's
    network card; UEFI boots from it by itself."""
    shown = project.facility("bash", "-c", _FIRMWARE, "pxe", *(each.format(mac) for each in firmware), seconds=240)
    return re.sub(r"\x1b\[[0-9;]*[A-Za-z]|[\r\n]", "", shown)  # the console breaks lines


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Generator[Project]:
    """A copy whose hub has DHCP, and whose cluster has the rack's servers by IPMI."""
    for recipe in images.ALL:
        recipe.ensure(lambda line: None)
    for project in copies(tmp_path_factory.mktemp("network"), stack="hub"):
        project.lab("up", "--machines", project.machines, "--rack", str(SERVERS))
        project.keep(provisioning={"plainBootFiles": True, "dhcp": _DHCP})
        _have_ipmi(project.root / "stacks" / f"Pulumi.{CLUSTER}.yaml")
        project.make("up", seconds=400)
        yield project
        project.assert_down()


def _have_ipmi(stack: Path) -> None:
    document = yaml.safe_load(stack.read_text())
    for server in document["config"]["metal-ipi:platform"]["servers"]:
        server["driver"] = "ipmi"
        server["bmc"]["address"] = server["bmc"]["address"].replace("https:", "ipmi:")
    stack.write_text(yaml.safe_dump(document, sort_keys=False))


@pytest.fixture(scope="module")
def ironic(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Ironic:
    return Ironic(project, tmp_path_factory.mktemp("ironic"))


def test_dhcp_leads_a_machine_to_all_conductors_and_on_to_its_disk(project: Project) -> None:
    """UEFI gets iPXE by TFTP, and iPXE its script; a BIOS gets another iPXE."""
    console = _booted(project, "52:54:00:99:00:01", _UEFI)
    assert "NBP filename is snponly.efi" in console and "NBP file downloaded successfully" in console, console
    assert re.search(r"net0: 192\.0\.2\.3\d/255\.255\.255\.0 gw 192\.0\.2\.1", console), console
    assert "tftp://192.0.2.15/boot.ipxe... ok" in console
    for port in (31400, 31401):
        assert f"http://192.0.2.15:{port}/pxelinux.cfg/52-54-00-99-00-01... No such file" in console
    assert "No more network devices" in console
    assert int(project.facility("sh", "-c", "curl -s tftp://192.0.2.15/undionly.kpxe | wc -c")) > 50_000


def test_a_cluster_on_servers_by_ipmi(project: Project, ironic: Ironic, monkeypatch: pytest.MonkeyPatch) -> None:
    """Enrolled and switched by ipmitool in the conductors' pods, lent, installed from the network, and given back."""
    with stack_of(project, CLUSTER):
        told = project.make("up", seconds=400).text
        assert_installed(project, ironic, by="network", told=told)
        project.assert_unchanged("up", "preview")
        # By the boot files that its conductor still has, an installed server comes to its disk.
        mac = identity.make(SERVERS, "")[-1].mac
        console = _booted(project, mac)
        assert re.search(rf"pxelinux\.cfg/{mac.replace(':', '-')}\.\.\. ok", console), console
        assert re.search(r"/kernel\.\.\. ok", console) and "/artifacts/boot/boot.ipxe... No such file" in console
        monkeypatch.setenv("KEEP_LAB", "1")
        project.make("down")
        assert ironic.states() == [["available", "power off", False]] * SERVERS
