"""A rack of servers: installed to disk over their BMCs, and installed again when what they are to run changes."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from lab.bmc.rack import BOOT_URL
from tests.end_to_end import racks, secrets
from tests.end_to_end.api_client import Facility, build_kube_vip
from tests.end_to_end.conftest import copies
from tests.end_to_end.project import RACK, Project, await_
from tests.stacks.answers import stack_file
from tools.engine import ensure

pytestmark = [pytest.mark.lab, pytest.mark.engine, pytest.mark.nightly]

_NODES = [f"{RACK}-{racks.name(number)}" for number in range(4)]
_WHAT_RUNS = "cat /proc/sys/kernel/random/boot_id /etc/metal-ipi/installation.json"
_KARG = "lab.rehearsal=1"
_SHARED_ADDRESS = "192.0.2.120"
"""In the network of the servers, and none of theirs."""
_FAULTS = (
    {"kind": "slow", "seconds": 0.5},
    {"kind": "unavailable", "count": 4},
    {"kind": "reset", "count": 4},
    {"kind": "session_lost", "count": 4},
)
"""One for each server's BMC; test_rack_faults.py has all of them."""
_LONGEST = 15 * 60.0
"""Seconds for an installation on servers that are emulated in software: 200 where two processors have nothing else to
do, 600 were seen on slower ones."""


@pytest.fixture(scope="module")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Generator[Project, None, None]:
    """A copy whose rack is installed, shared by this module's tests. DHCP leads its firmware on, and no further.

    While it is installed, each server's BMC has a fault that passes.
    """
    static = {"platform": {"networkBoot": "static", "interface": "eth0"}}
    for project in copies(tmp_path_factory.mktemp("rack"), stack=RACK, variant=static):
        project.start_lab()
        for number, fault in enumerate(_FAULTS):
            project.rack("fault", server=f"server-{number}", fault=fault)
        project.make("up")
        struck = {name: [fault["hits"] for fault in each["faults"]] for name, each in project.rack("servers").items()}
        # One that struck as often as it was to is gone.
        assert all(hits for each in struck.values() for hits in each), struck
        project.rack("clear", server="all")
        yield project


def _servers() -> list[dict[str, Any]]:
    return stack_file(RACK)["platform"]["servers"]


def _boots(rack: Project) -> dict[str, list[str]]:
    """What each server has booted since the lab began, by host name."""
    boots = rack.booted()
    return {node: boots[f"server-{number}"] for number, node in enumerate(_NODES)}


def _markers(rack: Project) -> dict[str, str]:
    """The generation of each node, as its check read it."""
    return {
        node["name"].partition(".")[0]: check["observed"]
        for node in rack.output()["nodes"]
        for check in node["checks"]
        if check["name"] == "installation"
    }


def _said(rack: Project, command: str) -> dict[str, str]:
    """What a command prints on each node, by host name, once it can be reached."""
    addresses = {server["address"]: f"{RACK}-{server['name']}" for server in _servers()}
    key = secrets.private_key(rack, str(ensure(print).path))
    said = json.loads(rack.inside("ssh", command, *addresses, stdin=key, seconds=_LONGEST))
    return {addresses[address]: text for address, text in said.items()}


def _running(rack: Project) -> dict[str, dict[str, str]]:
    """What each node says of itself over SSH, when it has booted: what it was installed as, and which boot this is."""
    found = {name: text.split("\n", 1) for name, text in _said(rack, _WHAT_RUNS).items()}
    return {name: {"boot": boot, **json.loads(marker)} for name, (boot, marker) in found.items()}


def _assert_rebooted_from_disk(rack: Project) -> None:
    """Power is cut and given back by the BMCs; what comes up is the same, from the disks."""
    boots, running = _boots(rack), _running(rack)
    assert {name: said["generation"] for name, said in running.items()} == _markers(rack)
    rack.rack("power", server="all", to="cycle")
    rack.assert_unchanged("up")
    again = _running(rack)
    assert {name: said["generation"] for name, said in again.items()} == _markers(rack)
    assert all(again[name]["boot"] != running[name]["boot"] for name in _NODES)
    after = _boots(rack)
    assert {name: after[name][len(boots[name]) :] for name in _NODES} == {name: ["disk"] for name in _NODES}
    assert "refresh: no changes" in rack.make("refresh", seconds=_LONGEST).out


def _with(*names: str, **changes: Any) -> dict[str, Any]:
    """The platform's servers, the named ones with one more kernel argument."""
    servers = [{**server, "kernelArguments": [_KARG]} if server["name"] in names else server for server in _servers()]
    return {"platform": {"servers": servers}, **changes}


def test_a_rack_is_installed_to_its_disks(rack: Project) -> None:
    racks.assert_finished(rack)
    boots = _boots(rack)
    # The worker's server was lent to the bootstrap machine before.
    assert boots.pop(f"{RACK}-worker-0") == ["network", "network", "disk"]
    assert set(map(tuple, boots.values())) == {("network", "disk")}


def test_its_nodes_have_their_network_from_a_profile(rack: Project) -> None:
    """tests/components/test_network.py reads the same profile with NetworkManager's own library."""
    said = _said(rack, "cat /proc/cmdline; sudo cat /etc/NetworkManager/system-connections/*; ls /boot")
    for server in _servers():
        command_line, _, rest = said[f"{RACK}-{server['name']}"].partition("\n")
        assert " ip=" not in command_line and "rd.neednet" not in command_line
        assert f"\naddress1={server['address']}/24\ngateway=192.0.2.1\n" in rest
        assert "coreos-firstboot-network" not in rest, "what the first boot was given is gone"


def test_it_boots_what_the_site_keeps(rack: Project) -> None:
    """The stack says `artifacts.mirror`: every file lies under its own hash, and one stack claims it."""
    kept = sorted((rack.layout.boot / "artifacts/mirror").iterdir())
    files = [path for path in kept if path.suffix != ".claim"]
    assert [path.name.partition("-")[0] for path in files] == [
        hashlib.sha256(path.read_bytes()).hexdigest() for path in files
    ]
    assert len(files) == 4 and len(kept) == 8


def test_servers_that_their_bmc_restarts_come_back_from_disk(rack: Project) -> None:
    _assert_rebooted_from_disk(rack)


def _command_lines() -> set[str]:
    """What everybody on this system can see of its processes."""
    found: set[str] = set()
    for process in Path("/proc").iterdir():  # a pattern for glob would fail at a process that ends meanwhile
        with contextlib.suppress(OSError):
            found.add((process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return found


def test_a_worker_is_installed_again_and_nobody_else(rack: Project) -> None:
    """And no BMC's account is shown or kept in clear meanwhile."""
    before, markers = _boots(rack), _markers(rack)
    found = secrets.collect(rack, str(ensure(print).path))
    assert {f"password of server-{number}" for number in range(4)} <= set(found.values())
    rack.configure(**_with("worker-0"))

    told = rack.make("preview").out
    assert f"{RACK}-worker-0-installation" in told and "control-plane" not in told
    run, seen = rack.start("up"), set[str]()
    while not run.over():
        seen |= _command_lines()
        time.sleep(0.2)
    done = run.wait()

    racks.assert_finished(rack)
    leaks = secrets.leaks(found, "make up", done.text) + secrets.leaks(found, "a process", "\n".join(seen))
    assert any("pulumi-resource-metal-ipi" in line or "plugin_start" in line for line in seen), "no plug-in was seen"
    leaks += secrets.leaks(found, "make preview", told) + secrets.leaks(found, "make output", rack.make("output").text)
    for path in secrets.files(rack):
        leaks += secrets.leaks(found, str(path.relative_to(rack.root)), path.read_text(errors="replace"))
    assert not leaks, "\n".join(leaks)
    order = [
        done.text.find(words)
        for words in ("cordoning", "into its installer", "checking", "worker-0-installation (Install")
    ]
    assert done.status == 0 and order[-1] > 0, done.text
    assert {name for name, mark in _markers(rack).items() if mark != markers[name]} == {f"{RACK}-worker-0"}
    after = _boots(rack)
    assert {name for name in _NODES if after[name] != before[name]} == {f"{RACK}-worker-0"}
    # By kexec, which no firmware sees, and then from its disk.
    assert after[f"{RACK}-worker-0"][len(before[f"{RACK}-worker-0"]) :] == ["disk"]
    assert f"karg {_KARG}" in {check["name"] for check in rack.output()["nodes"][3]["checks"]}
    rack.assert_unchanged("up")


def test_the_control_plane_is_not_installed_again_without_consent(rack: Project) -> None:
    before = _boots(rack)
    rack.configure(**_with("worker-0", "control-plane-1"))
    refused = rack.make("up", fails=True).text
    assert "rack7-control-plane-1 would be installed again" in refused
    assert "name it in `metal-ipi:reprovision.consent`" in refused
    assert _boots(rack) == before


def test_with_consent_the_control_plane_is_installed_again_one_by_one(rack: Project) -> None:
    before = _boots(rack)
    named = ["control-plane-1", "rack7-control-plane-2"]
    rack.configure(**_with("worker-0", "control-plane-1", "control-plane-2", reprovision={"consent": named}))

    told = rack.make("up").text

    ended = [told.find(f"rack7-control-plane-{number}-installation (Installation): updated") for number in (1, 2)]
    assert min(ended) > 0, told
    first, second = (1, 2) if ended[0] < ended[1] else (2, 1)
    # The image was written to the second one's disk when the first one ran from its disk again.
    written, booted = (_said(rack, f"stat --format=%.3Y {path}") for path in ("/etc/os-release", "/proc/uptime"))
    assert float(written[f"{RACK}-control-plane-{second}"]) > float(booted[f"{RACK}-control-plane-{first}"]), told
    after = _boots(rack)
    changed = {name for name in _NODES if after[name] != before[name]}
    assert changed == {"rack7-control-plane-1", "rack7-control-plane-2"}
    racks.assert_finished(rack)


def test_down_leaves_nothing(rack: Project) -> None:
    assert re.search(r"down: \d+ deleted", rack.assert_down().text)


def test_servers_boot_as_each_is_told_to(rack: Project) -> None:
    rack.start_lab()
    (rack.layout.boot / "images" / "ipxe.iso").write_bytes(b"")  # a server that has a disc in it boots the network
    image = "http://boot.facility.test/images/ipxe.iso"
    methods = {
        "control-plane-0": {"bootMethod": "uefi-http", "bootMode": "uefi", "bootUrl": BOOT_URL},
        "control-plane-1": {"bootMethod": "virtual-media", "bootMode": "uefi", "bootImage": image},
        "control-plane-2": {"bootMethod": "virtual-media", "bootMode": "bios", "bootImage": image},
        "worker-0": {"bootMode": "uefi"},
    }
    servers = [{**server, "bmc": {**server["bmc"], **methods[server["name"]]}} for server in _servers()]
    rack.configure(platform={"servers": servers})
    rack.make("up")
    racks.assert_finished(rack)
    told = rack.rack("servers")
    # What was put in to install them is out again, and nothing but the disk is left to be booted.
    assert [(server["mode"], server["medium"], server["override"]) for server in told.values()] == [
        ("UEFI", "", ""), ("UEFI", "", ""), ("Legacy", "", ""), ("UEFI", "", "")
    ]  # fmt: skip
    assert [server["boots"][-1] for server in told.values()] == ["disk"] * 4
    rack.assert_unchanged("up")
    rack.assert_down()


def _virtual_machines(rack: Project) -> list[str]:
    """Those that are not the rack's own servers."""
    facts = json.loads(rack.layout.facts.read_text())["rack"]
    servers = {server["uuid"] for server in facts["servers"]}
    listed = rack.lab("run", "--", "virsh", "--quiet", "--connect", facts["guest"]["uri"], "list", "--all", "--name")
    return [name for name in listed.split() if name not in servers]


def _kill_with_a_virtual_machine(rack: Project) -> None:
    """End an `up` at once when it has just made the virtual machine: the next one goes on with it."""
    run = rack.start("up")
    run.until(lambda: racks.LOCAL_VM_SCRIPT in rack.uploaded(), "the script of the virtual machine", 180)
    run.kill(rack.supervisor())
    assert _virtual_machines(rack) == [racks.LOCAL_VM_NAME]


def _holder(rack: Project) -> int:
    """The server that answers for the API's address, by its number: one of the control plane's, and the API at it."""
    facility = Facility(rack)
    await_(lambda: _SHARED_ADDRESS in facility.reached([_SHARED_ADDRESS])[6443], "the API answers", 180)
    macs = [server["mac"] for server in _servers()[: racks.CONTROL_PLANE]]
    return macs.index(facility.neighbour(_SHARED_ADDRESS))


def _assert_another_takes_the_address(rack: Project) -> None:
    """Where the holder loses its power, its lease ends, and another machine answers."""
    first, facility = _holder(rack), Facility(rack)
    mac = _servers()[first]["mac"]
    rack.rack("power", server=f"server-{first}", to="off")
    await_(lambda: facility.neighbour(_SHARED_ADDRESS) != mac, "another machine answers", 120)
    assert _holder(rack) != first
    rack.rack("power", server=f"server-{first}", to="on")


@pytest.mark.libvirt
def test_servers_that_really_boot_are_bootstrapped_by_a_virtual_machine(emulated_rack: Project) -> None:
    build_kube_vip()
    emulated_rack.keep(
        platform={"bootstrap": racks.LOCAL_VM},
        preflight={"excused": ["hardware"]},  # 2 GiB are enough for the lab's bootstrap machine
        apiAddress={"type": "kube-vip", "mode": "arp", "address": _SHARED_ADDRESS},
    )
    emulated_rack.start_lab()
    _kill_with_a_virtual_machine(emulated_rack)
    up = emulated_rack.make("up", seconds=_LONGEST)
    print(f"up of a rack on libvirt machines took {up.seconds:.0f} s")
    racks.assert_finished(emulated_rack)
    assert emulated_rack.output()["bootstrap"] == {"present": False}
    assert _virtual_machines(emulated_rack) == []
    _assert_another_takes_the_address(emulated_rack)
    emulated_rack.assert_unchanged("up")
    _assert_rebooted_from_disk(emulated_rack)
    _holder(emulated_rack)

    markers = _markers(emulated_rack)
    emulated_rack.configure(**_with("worker-0"))
    emulated_rack.make("up", seconds=_LONGEST)
    racks.assert_finished(emulated_rack)
    assert {name for name, mark in _markers(emulated_rack).items() if mark != markers[name]} == {_NODES[3]}
    emulated_rack.assert_down()
