"""What follows from what machines tell of themselves in their live systems."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
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
        ({"memory_mib": None}, "warning", "memory", "does not report its memory"),
        ({"processors": 2}, "warning", "processors", "it has 2 CPUs"),
        ({"disk": _SLOW}, "error", "disk-latency", "99 of 100 took up to 12.5 ms"),
        ({"disk": _SLOW.model_copy(update={"size": 10**10, "latencies": (1.0,)})}, "error", "disk-size", "has 10 GB"),
        ({"ahead": 60.0, "uncertain": 0.5}, "error", "clock", "its clock is 60 s ahead of the other machines'"),
        ({"ahead": -4000.0}, "error", "clock", "its clock is 4000 s behind of ours"),
        ({"clock": None}, "warning", "clock", "it has no chrony"),
        ({"clock": facts.Clock(synchronised=False, source="")}, "warning", "clock", "not synchronised"),
        ({"routes": ()}, "error", "default-route", "no default route"),
        ({"names": {"api.lab.test": ()}}, "error", "names", "api.lab.test does not resolve there"),
        ({"reverse": ("other.test",)}, "warning", "names", "has the name other.test in the DNS"),
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
    assert "the name node to it, and to cp-1" in table and "the name node to it, and to cp-0" in table


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


_STAND_INS = r"""
ip() {
    case $* in
    *'route get'*) echo '[{"dst": "192.0.2.1", "dev": "e0", "uid": 0}]' ;;
    *link*) echo '[{"ifname":"e0","mtu":1500,"operstate":"UP"}]' ;;
    *) echo '[{"dst":"default","gateway":"192.0.2.254","dev":"e0"}]' ;;
    esac
}
ping() {
    case $* in
    *192.0.2.1) printf '%s\n' '' '5 packets transmitted, 5 received, 0% packet loss, time 804ms' \
        'rtt min/avg/max/mdev = 0.031/0.045/0.058/0.009 ms' ;;
    *) echo '5 packets transmitted, 0 received, 100% packet loss, time 4090ms'; return 1 ;;
    esac
}
lsblk() {
    printf '{"blockdevices":[{"path":"%s","size":819200,"children":[\n {"path":"/dev/sda1","size":1}]}]}' "${@: -1}"
}
getent() {
    case $* in
    *api.lab.test) printf '192.0.2.9  STREAM api.lab.test\n192.0.2.9  DGRAM\n192.0.2.8  STREAM\n' ;;
    'hosts 192.0.2.7') echo '192.0.2.7       node.lab.test alias' ;;
    *) return 2 ;;
    esac
}
curl() {
    case $* in
    *good:5000*) printf 401 ;;
    *) echo 'curl: (7) Failed to connect' >&2; printf 000; return 7 ;;
    esac
}
chronyc() { echo 'C0000201,192.0.2.1,2,1,0,0,0,0,0,0,0,0,64.0,Normal'; }
jq() { echo jq >>"$state/started"; command jq "$@"; }
"""


@pytest.mark.programs
@pytest.mark.parametrize(("seconds", "writes"), [(60, 100), (0, 1)])
def test_the_probe_tells_all_with_one_jq_and_leaves_the_disk_as_it_was(
    tmp_path: Path, seconds: int, writes: int
) -> None:
    disk, before = tmp_path / "sda", os.urandom(819200)
    disk.write_bytes(before)
    (tmp_path / "install.json").write_text(json.dumps({"state": "held", "device": str(disk), "stable": "x"}))
    given = {
        "NAMES": "api.lab.test none.lab.test",
        "REGISTRIES": "good:5000 bad:5000",
        "PEERS": "192.0.2.1 192.0.2.2",
        "ADDRESS": "192.0.2.7",
        "AUTHORITIES": "",
    }
    script = facts.PROBE.read_text()
    for was, becomes in (("state=/run/metal-ipi\n", f"state={tmp_path}\n"), ("=10\n", f"={seconds}\n{_STAND_INS}")):
        assert script.count(was) == 1, was
        script = script.replace(was, becomes)
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, check=True, env={"PATH": os.environ["PATH"], **given}
    )
    found = facts.parse(done.stdout, ahead=0, uncertain=0)
    assert len(found.disk.latencies) == writes and 0 < found.disk.slowest < 10_000
    assert (found.disk.path, found.disk.size) == (str(disk), 819200)
    assert disk.read_bytes() == before
    assert (tmp_path / "started").read_text().count("jq") == 1, "it takes seconds to start where processors are slow"
    assert found.clock == facts.Clock(synchronised=True, source="192.0.2.1")
    assert found.routes == ("192.0.2.254",) and found.reverse == ("node.lab.test",)
    assert found.names == {"api.lab.test": ("192.0.2.8", "192.0.2.9"), "none.lab.test": ()}
    assert found.registries == {"good:5000": "401", "bad:5000": "curl: (7) Failed to connect"}
    assert found.peers == {
        "192.0.2.1": facts.Peer(mtu=1500, whole=True, lost=0, ms=0.045),
        "192.0.2.2": facts.Peer(mtu=1500, whole=False, lost=100, ms=None),
    }
    assert found.memory_mib and found.processors and found.hostname
