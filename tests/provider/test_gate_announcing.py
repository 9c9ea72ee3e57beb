"""machine-config-access and address-announced: nodes are SSH servers on loopback that print what nodes would."""

from __future__ import annotations

import asyncio
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from metal_ipi.provider.errors import GateFailed
from metal_ipi.provider.gates import machine_config_access
from metal_ipi.provider.gates.address_announced import not_announced
from metal_ipi.provider.gates.machine_config_access import Loaded, parse, within
from tests.provider import ssh_servers as ssh
from tests.provider.fake_metal import FakeMetal
from tests.provider.harness import Resource, configured
from tests.provider.knot import free_port

pytestmark = pytest.mark.usefixtures("no_waiting")

HOST, CLIENT = ssh.key(), ssh.key()
_TCP = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000:1A0A 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1
"""
_SESSION = "   1: 057100CB:9C40 01FFFEA9:00B3 01 00000000:00000000 00:00000000 00000000     0        0 2\n"
_ADDRESS = "1: lo    inet 192.0.2.10/32 scope global lo\\       valid_lft forever preferred_lft forever\n"


def node(name: str, port: int, **more: Any) -> dict[str, Any]:
    return {"name": name, "address": "127.0.0.1", "port": port, "hostKey": ssh.public(HOST), **more}


def spec(nodes: list[dict[str, Any]], **own: Any) -> dict[str, Any]:
    return {"nodes": nodes, "user": "core", "privateKey": ssh.private(CLIENT), **own}


def access(nodes: list[dict[str, Any]], networks: tuple[str, ...] = ("198.51.100.5",), **more: Any) -> dict[str, Any]:
    own = {"program": "/usr/local/bin/let-in", "networks": list(networks), **more}
    return {"kind": "machine-config-access", "spec": spec(nodes, **own), "timeoutSeconds": 2, "triggers": []}


def announced(
    nodes: list[dict[str, Any]], mode: str = "bgp", leaving: tuple[dict[str, Any], ...] = ()
) -> dict[str, Any]:
    own = spec(nodes, address="192.0.2.10", mode=mode, program="/usr/local/bin/kube-vip", **{"from": list(leaving)})
    return {"kind": "address-announced", "spec": own, "timeoutSeconds": 2, "triggers": []}


async def gate(metal: FakeMetal | None = None) -> Resource:
    section: dict[str, Any] = {"metal": {"authToken": "token", "endpoint": metal.url}} if metal else {}
    return await configured("Gate", **section)


def says(source: str = "127.0.0.1") -> str:
    return f"loaded\t198.51.100.5\n{source} 50000 127.0.0.1 22\n"


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> int:
    """A port of the machine config server at which nobody answers."""
    port = free_port()
    monkeypatch.setattr(machine_config_access, "PORT", port)
    return port


@pytest.mark.parametrize(
    ("answer", "networks", "observed"),
    [
        ("loaded\t198.51.100.5\n127.0.0.1", "198.51.100.5", "port {port} of a does not answer this computer"),
        # From an allowed network nothing is proven.
        (
            "loaded\t198.51.100.5\n198.51.100.77",
            "198.51.100.64/26",
            "not tested, because this computer is allowed itself: 198.51.100.77 is in 198.51.100.64/26",
        ),
        ("skipped\tno filter of its own\n127.0.0.1", "198.51.100.5", "a: no filter of its own"),
    ],
)
async def test_what_is_observed(closed: int, answer: str, networks: str, observed: str) -> None:
    async with ssh.node(HOST, CLIENT, reads=True, journal=f"{answer} 50000 127.0.0.1 22\n") as port:
        state = await (await gate()).up(access([node("a", port)], (networks,)))
    assert state["observed"] == observed.format(port=closed)


@pytest.mark.parametrize(
    ("address", "journal", "status", "told"),
    [
        ("127.0.0.1", None, 0, "port {port} of a answers 127.0.0.1, which is in no allowed network"),
        # So does the address in front of the nodes.
        ("127.0.0.2", None, 0, "port {port} of 127.0.0.2 answers"),
        ("127.0.0.3", "nft: no such file\n", 1, "ended with 1: nft: no such file"),
    ],
)
async def test_what_fails_the_gate(closed: int, address: str, journal: str | None, status: int, told: str) -> None:
    server = await asyncio.start_server(lambda _, writer: writer.close(), address, closed)
    async with server, ssh.node(HOST, CLIENT, reads=True, journal=journal or says(), status=status) as port:
        with pytest.raises(GateFailed, match="did not pass within 2 s") as caught:
            await (await gate()).up(access([node("a", port)], addresses=["127.0.0.2"]))
    assert told.format(port=closed) in str(caught.value)


async def test_only_what_changed_is_handed_over_and_only_to_those_that_are_there(closed: int, metal: FakeMetal) -> None:
    it = await gate(metal)
    stays, goes = metal.add("stays", []), metal.add("goes", [])
    async with ssh.node(HOST, CLIENT, reads=True, journal=says()) as port:
        both = [node("stays", port, machineId=stays), node("goes", port, machineId=goes)]
        first = await it.up(access(both))
    metal.devices.pop(goes)
    assert (await it.up(access(both)))["passedAt"] == first["passedAt"], "nobody is asked again"
    async with ssh.node(HOST, CLIENT, reads=True, journal=says(), port=port):
        state = await it.up(access(both, ("198.51.100.5", "198.51.100.6")))
    assert state["observed"] == f"port {closed} of stays does not answer this computer"


async def test_one_that_is_added_is_let_in_by_the_others_before_it_answers(
    closed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has no configuration before: so the others are told, whether it answers or not."""
    told, ask = asyncio.Event(), machine_config_access.run

    async def run(*arguments: Any) -> str:
        answer = await ask(*arguments)
        told.set()
        return answer

    monkeypatch.setattr(machine_config_access, "run", run)
    it, later = await gate(), free_port()
    async with ssh.node(HOST, CLIENT, reads=True, journal=says()) as port:
        wanted = {**access([node("old", port), node("new", later)]), "timeoutSeconds": 30}
        waiting = asyncio.ensure_future(it.up(wanted))
        await asyncio.wait_for(told.wait(), 30)
    async with ssh.node(HOST, CLIENT, reads=True, journal=says(), port=later):
        assert (await waiting)["observed"] == f"port {closed} of old, new does not answer this computer"


async def test_nodes_forget_the_networks_of_a_pool_that_goes(closed: int, metal: FakeMetal) -> None:
    it, told, there, gone = await gate(metal), list[str](), metal.add("there", []), metal.add("gone", [])
    async with ssh.node(HOST, CLIENT, reads=True, journal=says(), heard=told) as port:
        nodes = [node("there", port, machineId=there), node("gone", port, machineId=gone)]
        await it.up(access(nodes, part="gpu"))
        metal.devices.pop(gone)
        told.clear()
        await it.delete()
    (command,) = told
    assert command.endswith(" hand-over /usr/local/bin/let-in gpu")


def test_each_part_is_kept_by_itself_and_handed_over_with_the_others(tmp_path: Path) -> None:
    kept, program = tmp_path / "machine-config-networks", tmp_path / "let-in"
    kept.write_text("192.0.2.1\n")  # of before there were parts
    program.write_text(f"#!/bin/sh\n[ $1 = set ] && cat >{kept} && echo loaded\n")
    program.chmod(0o755)
    script = machine_config_access.HAND_OVER.replace("/etc/metal-ipi", str(tmp_path)).replace("/run", str(tmp_path))
    seen: list[str] = []
    for part, networks in (("gpu", "192.0.2.9\n"), ("cluster", "192.0.2.1\n192.0.2.2\n"), ("gpu", "")):
        subprocess.run(["sh", "-c", script, "x", str(program), part], input=networks, text=True, check=True)
        seen.append(kept.read_text())
    assert seen == ["192.0.2.1\n192.0.2.9\n", "192.0.2.1\n192.0.2.2\n192.0.2.9\n", "192.0.2.1\n192.0.2.2\n"]


@pytest.mark.parametrize("networks", [[], ["198.51.100.5; reboot"], ["host.example.com"]])
async def test_what_is_no_network_is_refused(networks: list[str]) -> None:
    (problem,) = await (await gate()).check(access([node("a", 22)], tuple(networks)))
    assert problem.startswith("spec.networks")


def test_what_a_program_prints() -> None:
    assert parse(says("192.0.2.1")) == Loaded(filtered=True, text="198.51.100.5", source="192.0.2.1")
    assert parse("bash: metal-ipi: not found\n") == "it answered 'bash: metal-ipi: not found'"
    assert within("2001:db8::1", ["192.0.2.0/24", "2001:db8::/64"]) == "2001:db8::/64"
    assert within("203.0.113.1", ["192.0.2.0/24", "2001:db8::/64"]) is None


async def test_each_node_must_announce_over_bgp() -> None:
    it = await gate()
    async with (
        ssh.node(HOST, CLIENT, journal=_ADDRESS + _TCP + _SESSION) as good,
        ssh.node(HOST, CLIENT, journal=_ADDRESS + _TCP) as alone,
    ):
        state = await it.up(announced([node("a", good)]))
        assert state["observed"] == "192.0.2.10 is announced by a"
        with pytest.raises(GateFailed, match=re.escape("last seen: b (no BGP session is up)")):
            await (await gate()).up(announced([node("a", good), node("b", alone)]))


async def test_with_arp_all_must_be_ready_and_one_must_have_the_address() -> None:
    async with (
        ssh.node(HOST, CLIENT, journal="kube-vip runs\n" + _ADDRESS + _TCP) as leader,
        ssh.node(HOST, CLIENT, journal="kube-vip runs\n" + _TCP) as other,
        ssh.node(HOST, CLIENT, journal=_TCP) as late,
    ):
        nodes = [node("leader", leader), node("other", other)]
        state = await (await gate()).up(announced(nodes, "arp"))
        assert state["observed"] == "192.0.2.10 is announced by leader"
        with pytest.raises(GateFailed, match=re.escape("other (it does not have 192.0.2.10)")):
            await (await gate()).up(announced([node("other", other)], "arp"))
        with pytest.raises(GateFailed, match=re.escape("late (its kube-vip does not run yet)")):
            await (await gate()).up(announced([*nodes, node("late", late)], "arp"))


async def test_who_is_to_go_lets_go_once_the_others_are_able_to(metal: FakeMetal) -> None:
    it = await gate(metal)
    machine = metal.add("bootstrap", [])
    commands: list[str] = []
    async with (
        ssh.node(HOST, CLIENT, journal=_ADDRESS + _TCP + _SESSION) as good,
        ssh.node(HOST, CLIENT, journal=_ADDRESS + _TCP) as alone,
        ssh.node(HOST, CLIENT, heard=commands) as goes,
    ):
        bootstrap = node("bootstrap", goes, machineId=machine)
        with pytest.raises(GateFailed, match=re.escape("b (no BGP session is up)")):
            await it.up(announced([node("b", alone)], leaving=(bootstrap,)))
        assert commands == [], "nobody could have taken over"
        await it.up(announced([node("a", good)], leaving=(bootstrap,)))
        assert commands == ["sudo -n /usr/local/bin/kube-vip stop"]
        await it.up(announced([node("a", good), node("c", good)], leaving=(bootstrap,)))
        assert len(commands) == 1, "it has let go already"
        gone = node("bootstrap", free_port(), machineId="gone")
        await (await gate(metal)).up(announced([node("a", good)], leaving=(gone,)))


async def test_who_cannot_let_go_is_told_with_its_own_words(metal: FakeMetal) -> None:
    machine = metal.add("bootstrap", [])
    async with (
        ssh.node(HOST, CLIENT, journal=_ADDRESS + _TCP + _SESSION) as good,
        ssh.node(HOST, CLIENT, journal="this machine has not let go of 192.0.2.10: its kubelet", status=1) as stays,
    ):
        bootstrap = node("bootstrap", stays, machineId=machine)
        with pytest.raises(GateFailed, match=re.escape("ended with 1: this machine has not let go of 192.0.2.10")):
            await (await gate(metal)).up(announced([node("a", good)], leaving=(bootstrap,)))


def test_a_listening_socket_is_no_session() -> None:
    assert not_announced(_ADDRESS + _TCP + _SESSION.replace(" 01 ", " 06 "), "192.0.2.10") == "no BGP session is up"
    assert not_announced(_ADDRESS + _SESSION, "192.0.2.1") == "it does not have 192.0.2.1"
