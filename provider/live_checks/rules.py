"""Checks of the facts of a pool's machines; findings by machine. Pure functions.

Limits from others: `provider.sizes` for memory, processors and disks. The assisted installer's limits for latency and
loss between machines of one role, and 10 ms for a write (openshift/assisted-service, data/default_hw_requirements.json
and thresholdExceededTest in internal/host/validator.go). It applies 10 ms to workers' disks too; here only disks with
etcd are checked. etcd recommends that 99 of 100 writes take at most 10 ms (etcd.io, hardware recommendations).

Our own limits: memory that firmware reserves (assisted: 100 MiB and 2 %), how far clocks may differ (assisted: 4
minutes between machines, which is too much for etcd and leases), and the latency of arbiters (assisted: 1000 ms; here
100 ms as for control plane machines, because they run etcd).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from metal_ipi.provider import sizes
from metal_ipi.provider.live_checks.facts import Facts
from metal_ipi.provider.preflight.findings import Finding, by_host, error, overridden, warning
from metal_ipi.provider.sizes import GIB

_KEPT_BY_FIRMWARE = 0.94
"""The least share of the built-in memory that the kernel sees."""
_ETCD_MS = 10.0
_SKEW_SECONDS = 2.0
"""Between machines: certificates and leases tolerate only seconds."""
_APART_SECONDS = 300.0
"""From the clock of the host where this runs: certificates that are issued here are valid from now on."""
_AVERAGE_MS = {"control-plane": 100.0, "arbiter": 100.0, "worker": 1000.0}
_LOST_PERCENT = {"control-plane": 0.0, "arbiter": 0.0, "worker": 10.0}
NOT_THERE = "it failed before it could be checked"
_UNNAMED = ("localhost", "localhost.localdomain", "fedora", "")
_GOOD = ("200", "401", "403")
"""HTTP status codes of a working registry."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One machine to check."""

    name: str
    """Its host name."""
    node: str
    """Its full name."""
    address: str
    role: str
    """`control-plane`, `arbiter` or `worker`."""
    facts: Facts


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """What the machines are to be."""

    release: str
    alone: bool
    """Whether it is the cluster's only machine."""
    missing: Mapping[str, str] = field(default_factory=dict[str, str])
    """Machines of the pool that failed earlier, or did not answer, and why, by host name."""


def found(cluster: Cluster, machines: list[Asked], overrides: Mapping[str, str]) -> dict[str, list[Finding]]:
    """Findings by host name. An error whose check is overridden becomes a warning with the reason."""
    all_of = {machine.name: list(_of(cluster, machine, machines)) for machine in machines}
    for name, why in cluster.missing.items():
        all_of[name] = [replace(error(why, "see its error; the others are not installed without it"), check="hosts")]
    return {name: overridden(findings, overrides) for name, findings in all_of.items()}


def table(findings: Mapping[str, list[Finding]]) -> str:
    """One part for each machine with problems, errors first."""
    told = [
        replace(each, host=name)
        for name in sorted(findings)
        for each in sorted(findings[name], key=lambda one: one.level != "error")
        if each.level != "ok"
    ]
    return "\n".join(by_host(told))


def _of(cluster: Cluster, machine: Asked, machines: list[Asked]) -> Iterator[Finding]:
    for name, rule in _RULES.items():
        for finding in rule(cluster, machine, machines):
            yield replace(finding, check=name)


def _memory(cluster: Cluster, machine: Asked, _: list[Asked]) -> Iterator[Finding]:
    has = machine.facts.memory_mib
    needs = sizes.least(machine.role, cluster.release, live=False, alone=cluster.alone)
    if has is None:
        yield warning("it does not report its memory", "check it yourself")
    elif has < needs.memory_mib * _KEPT_BY_FIRMWARE:
        what = f"it has {has / GIB:.1f} GiB of memory, and needs {needs.memory_mib / GIB:g} GiB, {needs.memory_source}"
        yield error(what, "use another server, or add memory")


def _processors(cluster: Cluster, machine: Asked, _: list[Asked]) -> Iterator[Finding]:
    has = machine.facts.processors
    needs = sizes.least(machine.role, cluster.release, live=False, alone=cluster.alone)
    if has is not None and has < needs.cpus:
        what = f"it has {has} CPUs, and {needs.asked_by} asks for {needs.cpus}"
        yield warning(what, "expect it to be slow, or use another machine")


def _disk_size(cluster: Cluster, machine: Asked, _: list[Asked]) -> Iterator[Finding]:
    disk = machine.facts.disk
    needs = sizes.least(machine.role, cluster.release, live=False, alone=cluster.alone)
    if disk.size < needs.disk_gb * 10**9:
        what = f"{disk.path} has {disk.size / 10**9:.0f} GB, and {needs.asked_by} asks for {needs.disk_gb} GB"
        yield error(what, "choose another disk by boot.install.device, or put in a larger one")


def _disk_latency(_: Cluster, machine: Asked, __: list[Asked]) -> Iterator[Finding]:
    disk = machine.facts.disk
    if machine.role != "worker" and disk.slowest > _ETCD_MS:
        what = (
            f"of {len(disk.latencies)} writes to {disk.path}, 99 of 100 took up to {disk.slowest:.1f} ms until the disk"
            f" had them, and etcd asks for {_ETCD_MS:g} ms"
        )
        yield error(what, "use a faster disk, such as an SSD with protection against power loss")


def _clock(_: Cluster, machine: Asked, machines: list[Asked]) -> Iterator[Finding]:
    mine, remedy = machine.facts, "set machineConfig.ntpServers, or correct the clock in its firmware"
    if abs(mine.ahead) - mine.uncertain > _APART_SECONDS:
        yield error(f"its clock is {_difference_text(mine.ahead)} of ours", remedy)
        return
    # Compare with the median, so that a single wrong clock is reported at its own machine.
    others = sorted(each.facts.ahead for each in machines)
    middle = others[len(others) // 2]
    far = mine.ahead - middle
    if abs(far) - mine.uncertain - max(each.facts.uncertain for each in machines) > _SKEW_SECONDS:
        yield error(f"its clock is {_difference_text(far)} of the other machines'", remedy)
    elif mine.clock is None:
        yield warning("it does not report whether its clock is synchronised: it has no chrony", remedy)
    elif not mine.clock.synchronised:
        yield warning("its clock is not synchronised with any server", remedy)


def _difference_text(seconds: float) -> str:
    return f"{abs(seconds):.0f} s {'ahead' if seconds > 0 else 'behind'}"


def _route(_: Cluster, machine: Asked, __: list[Asked]) -> Iterator[Finding]:
    if not machine.facts.routes:
        yield error("it has no default route", "correct platform.gateway, networkConfig or DHCP")


def _names(_: Cluster, machine: Asked, __: list[Asked]) -> Iterator[Finding]:
    for name, addresses in machine.facts.names.items():
        if not addresses:
            yield error(f"{name} does not resolve there", "correct its name servers, or the record")
    wrong = [name for name in machine.facts.reverse if name.rstrip(".") != machine.node]
    if wrong:
        what = f"its address {machine.address} has the name {', '.join(wrong)} in the DNS, not {machine.node}"
        yield warning(what, "correct the PTR record")


def _host_names(_: Cluster, machine: Asked, machines: list[Asked]) -> Iterator[Finding]:
    mine = machine.facts.hostname
    same = [each.name for each in machines if each is not machine and each.facts.hostname == mine]
    if same and mine not in _UNNAMED:
        what = f"DHCP or the DNS gives the name {mine} to it, and to {', '.join(same)}"
        yield error(what, "give each machine a name of its own, or none")


def _registries(_: Cluster, machine: Asked, __: list[Asked]) -> Iterator[Finding]:
    for place, status in machine.facts.registries.items():
        if status not in _GOOD:
            said = f"HTTP {status}" if status.isdecimal() else status
            yield error(
                f"the registry {place} cannot be used from there: {said}", "allow the connection to it, or correct it"
            )


def _mtu(_: Cluster, machine: Asked, machines: list[Asked]) -> Iterator[Finding]:
    broken: dict[int, list[str]] = defaultdict(list)
    for address, way in (machine.facts.peers or {}).items():
        if not way.whole and way.lost < 100:
            broken[way.mtu].append(_called(address, machines))
    for mtu, names in broken.items():
        what = f"packets of {mtu} bytes, which its MTU allows, do not reach {', '.join(names)} and return"
        yield error(what, "set one MTU on all machines and switches between them")


def _network(_: Cluster, machine: Asked, machines: list[Asked]) -> Iterator[Finding]:
    peers, remedy = machine.facts.peers, "look at cables, switches and packet filters between them"
    if peers is None:
        yield warning("it has no ping: the network between the machines was not checked", "check it yourself")
    for address, way in (peers or {}).items():
        to = _called(address, machines)
        if way.lost > _LOST_PERCENT[machine.role]:
            yield error(f"{way.lost:g} % of the packets to {to} are lost", remedy)
        elif way.ms is not None and way.ms > _AVERAGE_MS[machine.role]:
            yield error(f"{to} answers after {way.ms:.0f} ms, later than {_AVERAGE_MS[machine.role]:g} ms", remedy)


def _called(address: str, machines: list[Asked]) -> str:
    return next((each.name for each in machines if each.address == address), address)


_RULES = {
    "memory": _memory,
    "processors": _processors,
    "disk-size": _disk_size,
    "disk-latency": _disk_latency,
    "clock": _clock,
    "default-route": _route,
    "names": _names,
    "host-names": _host_names,
    "registries": _registries,
    "mtu": _mtu,
    "network": _network,
}
NAMES = (*_RULES, "hosts")
"""The names of all checks."""
