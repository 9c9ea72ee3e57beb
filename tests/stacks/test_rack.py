"""The program on a rack of servers: where its bootstrap machine comes from, and who waits for that to be gone."""

from __future__ import annotations

from typing import Any

import pytest

from components.boot import site
from stacks.program import main
from tests.mocks import Recorder, config_text, is_secret, plain, run
from tests.stacks.answers import ANSWERS, stack_file

_MACHINE = "metal-ipi:index:EphemeralMachine"
_INSTALLATION = "metal-ipi:index:Installation"
_STACK = stack_file("rack7")
_SERVERS = _STACK["platform"]["servers"]
_LEND = {"type": "lend", "server": "worker-0"}
_VM = {
    "type": "local-vm",
    "address": "192.0.2.126",
    "mac": "52:54:00:72:61:ff",
    "bridge": "br0",
    "uri": "qemu+ssh://kvm.example.com/system",
}


def _run(bootstrap: dict[str, Any], servers: int, **platform: Any) -> Recorder:
    recorder = Recorder(ANSWERS)
    whole = {**_STACK["platform"], **platform, "bootstrap": bootstrap, "servers": _SERVERS[:servers]}
    boot = {**_STACK["boot"], "streamFile": "stacks/rhcos-4.21.json"}
    config = config_text({**_STACK, "platform": whole, "boot": boot, "rehearsal": True})
    run(main, recorder, config, stack="rack7", preview=True)
    return recorder


def test_the_bootstrap_machine_is_a_virtual_one() -> None:
    recorder = _run(_VM, servers=3)
    (machine,) = recorder.of(_MACHINE)
    inputs = plain(machine.inputs)
    script = inputs.pop("script")
    assert inputs == {
        "platform": "local-vm",
        "hostname": "rack7-bootstrap",
        "cluster": "rack7.facility.test",
        "mac": _VM["mac"],
        "publicIpv4": _VM["address"],
        "bridge": "br0",
        "memoryMib": 24576,
        "cpus": 4,
        "chain": site.chain_script(),
        "disposable": True,
        "timeoutSeconds": 300,
    }
    assert is_secret(machine.inputs["script"])
    assert "\ninitrd --name config http://boot.test/x/bootstrap.img\n" in script and "ignition.config" not in script
    archive = plain(recorder.one("bootstrap-initrd").inputs["files"])["bootstrap.img"]
    assert '"source":"https://boot.test/x/bootstrap.ign","verification":{"hash":"sha512-' in archive
    libvirt = recorder.one("metal-ipi").inputs["libvirt"]
    assert is_secret(libvirt) and plain(libvirt) == f'{{"uri": "{_VM["uri"]}"}}'
    assert plain(recorder.one("bootstrap-removal-removed").inputs)["platform"] == "local-vm"


def test_its_kernel_arguments_carry_a_network_of_its_own() -> None:
    static = {"networkBoot": "static", "interface": "eno1"}
    recorder = _run({**_VM, "bootImage": "/srv/ipxe.iso", "interface": "enp1s0"}, servers=3, **static)
    inputs = plain(recorder.of(_MACHINE)[0].inputs)
    name = "rack7-bootstrap.rack7.facility.test"
    assert f" ip=192.0.2.126::192.0.2.1:255.255.255.0:{name}:enp1s0:none nameserver=192.0.2.53 " in inputs["script"]
    assert inputs["bootImage"] == "/srv/ipxe.iso"


@pytest.mark.parametrize(("bootstrap", "waits"), [(_LEND, True), (_VM, False)], ids=["lend", "local-vm"])
def test_only_a_worker_whose_server_was_lent_waits_for_it(bootstrap: dict[str, Any], waits: bool) -> None:
    recorder = _run(bootstrap, servers=4)
    assert plain(recorder.of(_MACHINE)[0].inputs)["platform"] == ("redfish" if waits else "local-vm")
    assert len(recorder.of(_INSTALLATION)) == 4
    removal = "bootstrap-removal-removed"
    assert (removal in recorder.after("rack7-worker-0-installation")) == waits
    assert removal not in recorder.after("rack7-control-plane-0-installation")
