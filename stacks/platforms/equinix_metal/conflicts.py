"""Settings that contradict each other on Equinix Metal."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from metal_ipi.provider.types import ANY, NEXT_AVAILABLE
from metal_ipi.stacks.platforms.equinix_metal.settings import (
    FIRST_CONTROL_PLANE,
    FIRST_WORKER,
    HYBRID_BONDED,
    EquinixMetal,
    Network,
)
from metal_ipi.stacks.problems import Found
from metal_ipi.stacks.sections.api_address import KubeVip
from metal_ipi.stacks.sections.artifacts import SshArtifacts
from metal_ipi.stacks.sections.service_addresses import MetalLbBgp

if TYPE_CHECKING:
    from metal_ipi.stacks.model import Settings

_ARCHITECTURES = {"arm": "aarch64", "arm64": "aarch64", "x86": "x86_64"}
"""The last part of a plan's name → its architecture, e.g. c3.large.arm64."""


def conflicts(settings: Settings, platform: EquinixMetal) -> Found:
    """All conflicts on Equinix Metal."""
    yield from _disk(settings)
    yield from _one_family(settings)
    yield from _matchbox(settings, platform)
    yield from _plans(settings, platform)
    yield from _reservations(settings, platform)
    yield from _pools(settings, platform)
    yield from _spot(settings, platform)
    yield from _reserved_addresses(settings, platform)
    yield from _network_type(platform)
    yield from _networks(settings, platform)


def _disk(settings: Settings) -> Found:
    """A node needs a disk: machine-config-daemon-firstboot.service writes the release's operating system to it, and
    reboots into that (openshift/machine-config-operator)."""
    if settings.boot.install is None and not settings.boot.diskless:
        yield (
            "boot.install",
            "(not set)",
            "an OpenShift node writes the release's operating system to its disk at the first boot, and no rule says "
            "to which disk",
            "set boot.install.device, for instance to {smallest: true}",
        )


def _one_family(settings: Settings) -> Found:
    """A machine's IPv6 address is in its metadata, and nothing here configures it from there."""
    networking = settings.install_config.networking
    if networking.has_ipv6:
        yield (
            "installConfig.networking",
            ", ".join(cidr for cidr in (*networking.service_network, *(n.cidr for n in networking.cluster_network))),
            "dual stack is not supported on Equinix Metal: the installer needs the machines' IPv6 network before they "
            "are ordered, and their IPv6 addresses are only known afterwards",
            "remove the IPv6 networks; dual stack needs listed servers (platform.type redfish or ironic)",
        )


def _matchbox(settings: Settings, platform: EquinixMetal) -> Found:
    artifacts = settings.artifacts
    if isinstance(artifacts, SshArtifacts) and artifacts.matchbox:
        yield (
            "artifacts.matchbox",
            artifacts.matchbox,
            f"platform {platform.type} boots its machines itself",
            "remove it: only servers with a BMC (platform.type redfish) are booted by the site",
        )


def _plans(settings: Settings, platform: EquinixMetal) -> Found:
    wanted = settings.boot.architecture
    own = {
        "bootstrapPlan": platform.bootstrap_plan,
        "controlPlanePlan": platform.control_plane_plan,
        "workerPlan": platform.worker_plan,
        **{f"pools.{name}.plan": pool.plan for name, pool in platform.pools.items()},
    }
    for name, plan in own.items():
        found = _ARCHITECTURES.get((plan or "").rpartition(".")[2])
        if found not in (None, wanted):
            yield (
                f"platform.{name}",
                str(plan),
                f"machines of this plan are {found}, and boot.architecture is {wanted}",
                f"choose a plan of {wanted}, or leave it out for a suitable one; a cluster has one architecture",
            )


@dataclass(frozen=True, kw_only=True)
class _Reserved:
    """The reserved servers of a role, or of a pool of workers."""

    path: str
    ids: tuple[str, ...]
    plan: str
    count: int
    """The number of machines."""
    whose: str
    """The same as a sentence for messages."""


def _reserved(settings: Settings, platform: EquinixMetal) -> Iterator[_Reserved]:
    paths = {"bootstrap": "bootstrap", "control-plane": "controlPlane", "worker": "worker"}
    counts = {"bootstrap": 1, "control-plane": settings.control_plane.count, "worker": settings.workers.count}
    plans = platform.plans(settings.boot.architecture)
    for role, name in paths.items():
        yield _Reserved(
            path=f"platform.reservations.{name}",
            ids=platform.reservations.of(role),
            plan=plans[role],
            count=counts[role],
            whose=f"there are {counts[role]} machines of this role",
        )
    sizes = {pool.name: pool.count for pool in settings.workers.pools}
    for name, pool in platform.pools.items():
        if name in sizes:
            yield _Reserved(
                path=f"platform.pools.{name}.reservations",
                ids=pool.reservations,
                plan=pool.plan or plans["worker"],
                count=sizes[name],
                whose=f"the pool has {sizes[name]} workers",
            )


def _reservations(settings: Settings, platform: EquinixMetal) -> Found:
    reserved = [each for each in _reserved(settings, platform) if each.ids]
    named = [each for each in reserved if each.ids != (NEXT_AVAILABLE,)]
    seen: dict[str, str] = {}
    for each in reserved:
        if each not in named:
            for other in named:
                if other.plan == each.plan:
                    yield (
                        each.path,
                        NEXT_AVAILABLE,
                        f"it could use a server that {other.path} names: both have the plan {each.plan}",
                        f"give ids to both, or {NEXT_AVAILABLE}",
                    )
            continue
        if len(each.ids) < each.count:
            yield (
                each.path,
                f"{len(each.ids)} ids",
                f"{each.whose}, and a reservation is one server",
                f"name as many, or {NEXT_AVAILABLE}",
            )
        for index, reservation in enumerate(each.ids):
            path = each.path + ("" if each.path.endswith(".bootstrap") else f"[{index}]")
            if reservation in seen:
                why = f"{seen[reservation]} is the same"
                yield path, reservation, why, "give each machine a reservation of its own"
            seen.setdefault(reservation, path)


def _pools(settings: Settings, platform: EquinixMetal) -> Found:
    names = {pool.name for pool in settings.workers.pools}
    for name, pool in platform.pools.items():
        if pool.reservations and platform.spot is not None:
            yield (
                f"platform.pools.{name}.reservations",
                ", ".join(pool.reservations),
                "workers come from the spot market (platform.spot), where nothing is reserved",
                "set one of them",
            )
        if name not in names:
            yield f"platform.pools.{name}", "{...}", "there is no such pool", f"name one of workers.pools, not {name}"


def _spot(settings: Settings, platform: EquinixMetal) -> Found:
    spot = platform.spot
    if spot is None:
        return
    price = f"{{maxPrice: {spot.max_price:g}}}"
    if not any(name.startswith("worker-") for name in settings.machines):
        yield (
            "platform.spot",
            price,
            "only workers come from the spot market, and there are no workers",
            "remove it, or set workers.count",
        )
    for path, taken, why, remedy in (
        (
            "platform.facilities",
            platform.facilities if ANY in platform.facilities else (),
            f"requests on the spot market (platform.spot) need named places, and '{ANY}' is not one",
            "name facilities, or set platform.metro",
        ),
        (
            "platform.reservations.worker",
            platform.reservations.worker,
            "workers come from the spot market (platform.spot), where nothing is reserved",
            "set one of them",
        ),
        (
            "platform.machineSubnets.worker",
            platform.machine_subnets.worker,
            "machines from the spot market (platform.spot) get the addresses that Metal gives them",
            "remove it, or platform.spot",
        ),
        (
            "platform.lifetimeHours",
            platform.lifetime_hours,
            "the provider sets no end for machines from the spot market (platform.spot): they would stay, and be "
            "billed",
            "remove it, or platform.spot",
        ),
    ):
        if taken:
            shown = ", ".join(map(str, taken)) if isinstance(taken, tuple) else str(taken)
            yield path, shown, why, remedy


def _reserved_addresses(settings: Settings, platform: EquinixMetal) -> Found:
    """A reserved address belongs to one metro; machines in another metro cannot announce it.

    The settings do not tell a facility's metro: preflight asks the platform.
    """
    if ANY not in platform.facilities:
        return
    services = settings.service_addresses
    announced = (settings.api_address, settings.ingress_address)
    reserved = any(isinstance(each, KubeVip) and each.address is None for each in announced)
    if isinstance(services, MetalLbBgp):
        reserved = reserved or any(pool.reserve for pool in services.pools)
    if reserved:
        yield (
            "platform.facilities",
            ", ".join(platform.facilities),
            "addresses are reserved in one metro, and machines in another could not announce them",
            "list facilities of one metro, or set platform.metro",
        )


def _network_type(platform: EquinixMetal) -> Found:
    chosen = platform.network_type
    if chosen is not None and chosen.startswith("layer2"):
        yield (
            "platform.networkType",
            chosen,
            "machines without layer 3 have no address: they could neither be booted nor reached",
            f"set it to {HYBRID_BONDED}: VLANs beside the addresses that machines have",
        )
    elif chosen == "hybrid":
        yield (
            "platform.networkType",
            chosen,
            "it takes a port out of the bond, so the machine is lost if the other port's switch fails",
            f"set it to {HYBRID_BONDED}: VLANs on the whole bond",
        )
    elif chosen == "layer3" and platform.networks:
        yield (
            "platform.networkType",
            chosen,
            "machines with layer3 cannot be in a VLAN, and platform.networks lists VLANs",
            f"set it to {HYBRID_BONDED}, or remove it",
        )
    elif chosen == HYBRID_BONDED and not platform.networks:
        yield (
            "platform.networkType",
            chosen,
            "a bond is hybrid once a VLAN is on it, and platform.networks has none",
            "list a network, or remove it",
        )


def _networks(settings: Settings, platform: EquinixMetal) -> Found:
    if platform.networks and platform.metro is None:
        yield (
            "platform.networks",
            f"{len(platform.networks)} networks",
            "VLANs and gateways belong to a metro, and platform.facilities names facilities",
            "set platform.metro",
        )
    counts = {"control-plane": settings.control_plane.count, "worker": settings.workers.count}
    seen: dict[str, str] = {}
    subnets: list[tuple[str, ipaddress.IPv4Network]] = []
    for index, network in enumerate(platform.networks):
        path = f"platform.networks[{index}]"
        for name, value in (("name", network.name), ("vlan", str(network.vlan))):
            if network.vlan is None and name == "vlan":
                continue
            if f"{name} {value}" in seen:
                yield f"{path}.{name}", value, f"{seen[f'{name} {value}']} is the same", "give each its own"
            seen.setdefault(f"{name} {value}", f"{path}.{name}")
        for place, role in enumerate(network.roles):
            if not counts[role]:
                yield f"{path}.roles[{place}]", role, "there are no machines of this role", "leave it out"
        yield from _room(path, network, counts)
        if network.subnet is not None:
            subnet = ipaddress.IPv4Network(network.subnet)
            for other, taken in subnets:
                if subnet.overlaps(taken):
                    yield f"{path}.subnet", network.subnet, f"it overlaps {other}, {taken}", "let each have its own"
            subnets.append((f"{path}.subnet", subnet))


def _room(path: str, network: Network, counts: dict[str, int]) -> Found:
    """Check that a subnet has enough addresses. Its last address is the broadcast address."""
    if not network.addressed:
        return
    first = {"control-plane": FIRST_CONTROL_PLANE, "worker": FIRST_WORKER}
    ends = {role: first[role] + counts[role] for role in network.roles if counts[role]}
    at_the_end = max(ends.get("control-plane", 0) - FIRST_WORKER, 0)
    needed = max(ends.get("worker", 0), ends.get("control-plane", 0) - at_the_end) + at_the_end + 1
    if needed > network.size:
        name = "gateway.size" if network.gateway else "subnet"
        yield (
            f"{path}.{name}",
            str(network.gateway.size if network.gateway else network.subnet),
            f"it has {network.size} addresses, and {needed} are needed: addresses follow from machines' numbers, "
            f"control plane from the {FIRST_CONTROL_PLANE}nd on (a fifth from the end) and workers from the"
            f" {FIRST_WORKER}th on",
            "make it larger",
        )
