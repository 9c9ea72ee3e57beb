"""EphemeralMachine as a virtual machine, against a program `virsh` and an artifact host on loopback."""

# ruff: noqa: ASYNC240 - a test may wait for its own files

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from metal_ipi.provider.errors import InvalidInputs, RemoteError
from metal_ipi.provider.platforms.local_vm.virsh import Virsh
from metal_ipi.provider.platforms.registry import is_gone, platform_of
from metal_ipi.provider.values import UNKNOWN, has_unknown
from tests.provider.fake_virsh import FakeVirsh
from tests.provider.harness import Resource, configured, settings_of

pytestmark = pytest.mark.usefixtures("no_waiting")

MAC = "52:54:00:72:61:ff"
NAME = "lab-bootstrap.lab.example.com"
SCRIPT = "#!ipxe\nkernel http://boot.facility.test/unguessable/kernel\n"
MACHINE: dict[str, Any] = {
    "platform": "local-vm",
    "hostname": "lab-bootstrap",
    "cluster": "lab.example.com",
    "mac": MAC.upper(),
    "publicIpv4": "192.0.2.126",
    "bridge": "br0",
    "memoryMib": 16384,
    "cpus": 4,
    "script": SCRIPT,
    "chain": "#!ipxe\nexit\n",
    "timeoutSeconds": 20,
}
URI = "qemu:///session"
FILE = f"mac-{MAC.replace(':', '-')}.ipxe"


@pytest.fixture
def virsh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeVirsh:
    made = FakeVirsh(tmp_path / "bin")
    monkeypatch.setenv("PATH", str(made.directory), prepend=":")
    return made


@pytest.fixture
async def it(artifact_host: dict[str, Any]) -> Resource:
    return await configured("EphemeralMachine", libvirt={"uri": URI}, artifacts=artifact_host)


@pytest.fixture
def boot(tmp_path: Path) -> Path:
    """The boot tree of the artifact host."""
    return tmp_path / "artifacts/boot"


async def test_a_virtual_machine_is_made_and_removed(virsh: FakeVirsh, it: Resource, boot: Path) -> None:
    settings, state = settings_of(**it.harness.config), await it.up(MACHINE)
    assert virsh.states == {NAME: "running"} and (boot / FILE).read_text() == SCRIPT
    assert virsh.commands == [f"create /dev/stdin --paused at {URI}", f"resume {NAME} at {URI}"]
    assert state["machineId"].startswith(f"local-vm:{NAME}/{MAC}/") and state["state"] == "active"
    assert (state["publicIpv4"], state["privateIpv4"]) == ("192.0.2.126", "192.0.2.126")
    assert state["console"] == f"virsh --connect {URI} console {NAME}" and state["present"] is True
    machine = state["machineId"]
    assert platform_of(machine, settings) == "local-vm" and not await is_gone(machine, settings)
    # What changes takes effect on the next installation.
    assert await it.changes({**MACHINE, "memoryMib": 32768, "script": "other"}) == []

    removal = Resource(it.harness, "Removal")
    removed = {"machineId": machine, "platform": "local-vm", "timeoutSeconds": 20}
    await removal.up(removed)
    assert virsh.states == {} and not boot.exists() and await is_gone(machine, settings)
    # From then on nobody needs a libvirt any more.
    virsh.tell(refuse="no such file")
    await it.refresh()
    assert it.id and it.state["present"] is False and await it.changes(MACHINE) == []
    await removal.up({**removed, "triggers": ["again"]})
    await it.delete()


async def test_the_domain_says_what_it_is(virsh: FakeVirsh, it: Resource, tmp_path: Path) -> None:
    image = tmp_path / "ipxe.iso"
    image.touch()

    def described() -> ET.Element:
        return ET.fromstring(virsh.told("domains")[NAME]["xml"])

    def boots(domain: ET.Element) -> list[str]:
        return [device.tag for device in domain.findall("devices/*[boot]")]

    await it.up(MACHINE)
    domain = described()
    assert domain.get("type") == "kvm" and domain.findtext("memory") == "16384"
    assert domain.findtext("vcpu") == "4" and domain.find("devices/disk") is None
    assert boots(domain) == ["interface"]
    card = domain.find("devices/interface/mac")
    assert card is not None and card.get("address") == MAC
    mark = domain.find("metadata/{urn:metal-ipi:machine}machine")
    assert mark is not None and mark.get("cluster") == "lab.example.com"
    assert mark.get("script") == it.state["machineId"].rpartition("/")[2]
    assert it.harness.log.messages == ["ordering lab-bootstrap"]
    await it.delete()

    virsh.tell(kvm=False)
    again = Resource(it.harness, "EphemeralMachine")
    await again.up({**MACHINE, "bootImage": str(image)})
    domain = described()
    drive = domain.find("devices/disk/source")
    assert domain.get("type") == "qemu" and drive is not None and drive.get("file") == str(image)
    assert boots(domain) == ["disk"] and "has no KVM" in it.harness.log.messages[-1]


async def test_a_run_that_was_killed_goes_on(virsh: FakeVirsh, it: Resource, boot: Path) -> None:
    await it.up(MACHINE)
    done = len(virsh.commands)
    # Killed before the state was written: it is taken over.
    again = Resource(it.harness, "EphemeralMachine")
    await again.up(MACHINE)
    assert again.state["machineId"] == it.state["machineId"] and len(virsh.commands) == done
    assert "continues with" in it.harness.log.messages[-1]
    # Killed before it ran, or it boots an earlier script: it is made anew.
    virsh.add(NAME, virsh.told("domains")[NAME]["xml"], "paused")
    await Resource(it.harness, "EphemeralMachine").up(MACHINE)
    assert [each.split()[0] for each in virsh.commands[done:]] == ["destroy", "create", "resume"]
    newer = Resource(it.harness, "EphemeralMachine")
    await newer.up({**MACHINE, "script": "#!ipxe\n# newer\n"})
    assert [each.split()[0] for each in virsh.commands[done + 3 :]] == ["destroy", "create", "resume"]
    assert virsh.states == {NAME: "running"}
    # What belonged to the earlier one is nobody's: removing that leaves the newer one alone.
    await it.delete()
    assert virsh.states == {NAME: "running"} and (boot / FILE).read_text() == "#!ipxe\n# newer\n"
    await newer.delete()
    assert virsh.states == {} and not boot.exists()


async def test_one_that_went_by_itself_is_absent_and_leaves_nothing(virsh: FakeVirsh, it: Resource, boot: Path) -> None:
    await it.up(MACHINE)
    described = virsh.told("domains")[NAME]["xml"]
    for state in ("paused", ""):
        virsh.tell(domains={})
        if state:
            virsh.add(NAME, described, state)
        await it.refresh()
        assert it.id and it.state["present"] is False
    removal = Resource(it.harness, "Removal")
    await removal.up({"machineId": it.state["machineId"], "platform": "local-vm", "timeoutSeconds": 20})
    assert not boot.exists()


@pytest.mark.parametrize(
    "mark", ["", '<m:machine xmlns:m="urn:metal-ipi:machine" cluster="b.c" hostname="b" script="c"/>']
)
async def test_somebody_elses_is_left_alone(virsh: FakeVirsh, it: Resource, boot: Path, mark: str) -> None:
    virsh.add(NAME, f"<domain><name>{NAME}</name><metadata>{mark}</metadata></domain>")
    with pytest.raises(
        RemoteError, match=f"a domain {NAME} already .*does not belong to this cluster. Rename or remove it"
    ):
        await it.up(MACHINE)
    assert virsh.states == {NAME: "running"} and virsh.commands == [] and not boot.exists()


@pytest.mark.parametrize(("told", "changes", "message"), [
    ({"refuse": "Failed to connect socket to '/x'"}, {}, "cannot be used: .*; Failed to .*Start lib"),
    ({}, {"bridge": "br7"}, "cannot be made. .*'br7': No such device. platform.bootstrap.bridge must be a bridge"),
    ({}, {"bootImage": "/no/ipxe.iso"}, r"Cannot access .* platform.bootstrap.bootImage must be a file"),
    ({"architecture": "s390x"}, {}, "cannot run x86_64 machines: install QEMU"),
], ids=["connection", "bridge", "image", "qemu"])  # fmt: skip
async def test_what_libvirt_refuses_is_told_before_anything_is_made(
    virsh: FakeVirsh, it: Resource, boot: Path, *, told: dict[str, Any], changes: dict[str, Any], message: str
) -> None:
    virsh.tell(**told)
    with pytest.raises(RemoteError, match=message):
        await it.up({**MACHINE, **changes})
    assert not it.id and virsh.states == {} and not boot.exists()


async def test_without_virsh(it: Resource, boot: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InvalidInputs, match=r"virsh cannot be run .*\(No such file or directory\): install it"):
        await it.up(MACHINE)
    assert not boot.exists()


async def test_a_script_that_cannot_be_published_leaves_no_machine(virsh: FakeVirsh, it: Resource, boot: Path) -> None:
    boot.parent.mkdir(parents=True, exist_ok=True)
    boot.write_text("no directory")
    with pytest.raises(RemoteError):
        await it.up(MACHINE)
    assert [each.split()[0] for each in virsh.commands] == ["create", "destroy"] and virsh.states == {}


def test_a_libvirt_that_hangs_is_told(virsh: FakeVirsh) -> None:
    virsh.tell(seconds=30)
    with pytest.raises(RemoteError, match=r"does not answer `virsh list` within 0\.2 s") as caught:
        asyncio.run(Virsh(URI, timeout=0.2).run("list", "--all", "--name"))
    assert caught.value.passing


async def test_check_and_preview_ask_nobody(virsh: FakeVirsh) -> None:
    it = await configured("EphemeralMachine", libvirt={"uri": "rehearsal"})
    wrong = {**MACHINE, "mac": "x", "server": "worker-0", "memoryMib": 1, "bootImage": "a.iso", "script": UNKNOWN}
    problems = await it.check(wrong)
    assert [problem.split(" ")[0] for problem in problems] == ["server", "mac", "memoryMib", "bootImage"]
    assert has_unknown((await it.preview(MACHINE))["machineId"])
    for bridge, image in (("-b", "/a/../b"), ("br 0", "/a\n")):
        problems = await it.check({**MACHINE, "bridge": bridge, "bootImage": image})
        assert [problem.split(" ")[0] for problem in problems] == ["bridge", "bootImage"]
    assert virsh.told("commands") == []
    with pytest.raises(InvalidInputs, match="set `artifacts` of the metal-ipi provider"):
        await it.up(MACHINE)
    assert virsh.states == {}
