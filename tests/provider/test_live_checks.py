"""What follows from what machines tell of themselves in their live systems."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from metal_ipi.provider.live_checks import facts, rules

_PEERS = {f"192.0.2.{number}": facts.Peer(mtu=1500, whole=True, lost=0, ms=0.2) for number in range(3)}
GOOD = facts.Facts(
    hostname="localhost",
    memory_mib=16 << 10,
    processors=8,
    clock=facts.Clock(synchronised=True, source="192.0.2.1"),
    disk=facts.Disk(path="/dev/sda", size=120 * 10**9, latencies=(1.0,) * 100),
    routes=("192.0.2.1",),
    names={"api.lab.test": ("192.0.2.9",)},
    reverse=(),
    registries={"mirror.test:5000": "401"},
    peers=_PEERS,
)
_SLOW = facts.Disk(path="/dev/sda", size=120 * 10**9, latencies=(1.0,) * 98 + (12.5,) * 2)


def _asked(number: int, role: str = "control-plane", **changes: Any) -> rules.Asked:
    mine = {address: peer for address, peer in _PEERS.items() if address != f"192.0.2.{number}"}
    told = GOOD.model_copy(update={"peers": mine, **changes})
    name, address = f"cp-{number}", f"192.0.2.{number}"
    return rules.Asked(name=name, node=f"{name}.lab.test", address=address, role=role, facts=told)


def _found(*machines: rules.Asked, overrides: dict[str, str] | None = None) -> str:
    cluster = rules.Cluster(release="4.19.0", alone=False)
    return rules.table(rules.found(cluster, list(machines), overrides or {}))


def test_of_good_machines_nothing_is_told() -> None:
    assert _found(*map(_asked, range(3))) == ""


@pytest.mark.parametrize(
    ("changes", "level", "check", "told"),
    [
        ({"memory_mib": 15 << 10}, "error", "memory", "it has 15.0 GiB of memory, and needs 16 GiB"),
        ({"memory_mib": None}, "warning", "memory", "does not tell how much"),
        ({"processors": 2}, "warning", "processors", "it has 2 CPUs"),
        ({"disk": _SLOW}, "error", "disk-latency", "99 of 100 took up to 12.5 ms"),
        ({"disk": _SLOW.model_copy(update={"size": 10**10, "latencies": (1.0,)})}, "error", "disk-size", "has 10 GB"),
        ({"ahead": 60.0, "uncertain": 0.5}, "error", "clock", "its clock is 60 s ahead of the other machines'"),
        ({"ahead": -4000.0}, "error", "clock", "its clock is 4000 s behind of ours"),
        ({"clock": None}, "warning", "clock", "it has no chrony"),
        ({"clock": facts.Clock(synchronised=False, source="")}, "warning", "clock", "not synchronised"),
        ({"routes": ()}, "error", "default-route", "no default route"),
        ({"names": {"api.lab.test": ()}}, "error", "names", "api.lab.test does not resolve there"),
        ({"reverse": ("other.test",)}, "warning", "names", "is called other.test by the DNS"),
        ({"registries": {"m:5000": "Connection refused"}}, "error", "registries", "m:5000 cannot be used"),
        ({"registries": {"m:5000": "503"}}, "error", "registries", "HTTP 503"),
        ({"peers": {"192.0.2.0": facts.Peer(mtu=9000, whole=False, lost=0, ms=1)}}, "error", "mtu", "9000 bytes"),
        ({"peers": {"192.0.2.0": facts.Peer(mtu=1500, whole=False, lost=100, ms=None)}}, "error", "network", "100 %"),
        ({"peers": {"192.0.2.0": facts.Peer(mtu=1500, whole=True, lost=0, ms=150)}}, "error", "network", "150 ms"),
        ({"peers": None}, "warning", "network", "no ping"),
    ],
)
def test_what_is_wrong_is_told_of_that_machine_alone(
    changes: dict[str, Any], level: str, check: str, told: str
) -> None:
    table = _found(_asked(0), _asked(1, **changes), _asked(2))
    assert table.startswith(f"cp-1:\n  {level:<8} {check}: ") and told in table and "remedy: " in table
    assert "cp-0:" not in table and "cp-2:" not in table and table.count("remedy") == 1
    assert f"{'warning':<8} {check}: " in _found(
        _asked(0), _asked(1, **changes), _asked(2), overrides={check: "it is so here"}
    )


def test_a_name_that_two_have_is_told_of_both() -> None:
    table = _found(_asked(0, hostname="node"), _asked(1, hostname="node"), _asked(2))
    assert "calls it node, and cp-1 too" in table and "calls it node, and cp-0 too" in table


def test_workers_may_be_slower() -> None:
    lossy = {"192.0.2.0": facts.Peer(mtu=1500, whole=True, lost=10, ms=900)}
    assert _found(_asked(0, "worker"), _asked(1, "worker", disk=_SLOW, peers=lossy)) == ""


def test_an_arbiter_may_be_smaller_than_the_control_plane_and_its_disk_no_slower() -> None:
    table = _found(_asked(0), _asked(1), _asked(2, "arbiter", memory_mib=8 << 10, processors=2, disk=_SLOW))
    assert table.startswith("cp-2:\n") and "disk-latency: " in table and table.count("remedy") == 1


def test_one_that_failed_before_holds_the_others_back_unless_that_is_overridden() -> None:
    cluster = rules.Cluster(release="4.19.0", alone=False, missing={"w-9": rules.NOT_THERE})
    (found,) = rules.found(cluster, [_asked(0)], {})["w-9"]
    assert (found.level, found.check) == ("error", "hosts")
    (found,) = rules.found(cluster, [_asked(0)], {"hosts": "it comes next week"})["w-9"]
    assert found.level == "warning" and found.what.endswith("(overridden: it comes next week)")


def test_a_peer_that_does_not_answer_at_all_is_told_by_the_probe() -> None:
    stand_ins = r"""
ip() { [ "$3" = get ] && echo '[{"dev": "e0"}]' || echo '[{"mtu": 1500}]'; }
ping() {
    echo "5 packets transmitted, 0 received, 100% packet loss, time 4090ms"
    return 1
}
"""
    functions, _, _ = facts.PROBE.read_text().partition("\nexec 8>")
    script = f"{functions}\n{stand_ins}\nPEERS='192.0.2.1 192.0.2.2'; peers"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    lost = {"mtu": 1500, "whole": False, "lost": 100, "ms": None}
    assert json.loads(done.stdout) == {"192.0.2.1": lost, "192.0.2.2": lost}
