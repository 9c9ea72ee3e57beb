"""The section `platform` for servers that are ordered in an Equinix Metal project."""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, model_validator

from metal_ipi.provider.types import ANY, NEXT_AVAILABLE
from metal_ipi.stacks.platforms.section import Needed, PlatformSection, at
from metal_ipi.stacks.problems import Found
from metal_ipi.stacks.sections.base import Section, matching, wrong
from metal_ipi.stacks.sections.forms import Metro, Plan, PoolName, Title

_OUR_TAG = "metal-ipi"
"""The prefix of our own tags."""
HYBRID_BONDED = "hybrid-bonded"
FIRST_CONTROL_PLANE, FIRST_WORKER = 2, 6
"""The index in a subnet of the address of each role's first machine. The gateway's address comes first, and there is
room for four control plane machines before the workers; a fifth gets the last address."""
_PLANS = {
    "x86_64": {"bootstrap": "c3.small.x86", "control-plane": "c3.medium.x86", "worker": "c3.medium.x86"},
    "aarch64": dict.fromkeys(("bootstrap", "control-plane", "worker"), "c3.large.arm64"),
}
"""The smallest plan for the bootstrap machine, and suitable plans for the other roles (PR 436)."""
_UUID = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_NO_UUID = ("it is not a UUID", "copy the id from the project's (organization's, reservation's) page")
_LONGEST_TAG = 80


def _reservations(value: Any) -> Any:
    if value == NEXT_AVAILABLE:
        return (NEXT_AVAILABLE,)
    if not isinstance(value, list | tuple) or not value:
        raise wrong("it is not a list of reservations", f"give their ids, one per machine, or {NEXT_AVAILABLE}")
    return tuple(value)


def _ids(value: tuple[str, ...]) -> tuple[str, ...]:
    for each in () if value == (NEXT_AVAILABLE,) else value:
        if not re.fullmatch(_UUID, each):
            raise wrong(*_NO_UUID)
    return value


def _tag(value: str) -> str:
    if not value.strip() or not value.isprintable() or len(value) > _LONGEST_TAG:
        raise wrong(f"'{value[:20]}' is not a tag", f"write up to {_LONGEST_TAG} printable characters")
    if value.startswith(_OUR_TAG):
        raise wrong(
            f"tags that begin with '{_OUR_TAG}' are reserved: this program finds machines by them",
            "choose another name",
        )
    return value


def _network(value: str) -> str:
    try:
        network = ipaddress.IPv4Network(value)
    except ValueError as error:
        raise wrong(f"it is not an IPv4 network: {error}", "write it as 10.20.0.0/24") from None
    if "/" not in value or network.prefixlen > 29:
        raise wrong("it has no room for machines", "give a network of 8 addresses at least, such as 10.20.0.0/24")
    return value


def _some(value: tuple[str, ...]) -> tuple[str, ...]:
    if not value:
        raise wrong("it is empty", "list at least one")
    return value


Uuid = Annotated[str, matching(_UUID, *_NO_UUID)]
Reservation = Annotated[str, matching(f"{_UUID}|{NEXT_AVAILABLE}", *_NO_UUID)]
Facility = Annotated[
    str,
    matching(
        rf"[a-z]{{2,}}\d+|{ANY}",
        "it is not a facility's code",
        "write codes such as da11, or 'any', in order of preference",
    ),
]
NetworkName = Annotated[
    str,
    matching(
        r"[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?",
        "a network cannot have this name",
        "use up to 32 of a-z, 0-9 and '-', such as storage",
    ),
]
Interface = Annotated[
    str,
    matching(
        r"[a-zA-Z0-9_*?-]{1,15}",
        "it is neither an interface's name nor a pattern",
        "write enp65s0f0, or a pattern such as en*",
    ),
]
Reservations = Annotated[tuple[str, ...], BeforeValidator(_reservations), AfterValidator(_ids)]
"""Ids in the order of the machines' numbers; or only `next-available`: any free reservation."""
SubnetLength = Literal[28, 29, 30, 31]


class HardwareReservations(Section):
    """Reserved servers, which are paid for even when they are not used; by role."""

    bootstrap: Reservation | None = Field(
        default=None, description="a reservation's id, or next-available; not set: the machine is ordered on demand"
    )
    control_plane: Reservations = Field(
        default=(), description="ids by the machines' numbers, or next-available; not set: on demand"
    )
    worker: Reservations = Field(
        default=(), description="ids by the machines' numbers, or next-available; not set: on demand"
    )

    def of(self, role: str) -> tuple[str, ...]:
        """A role's reservations: empty, one id per machine, or only `next-available`."""
        if role == "bootstrap":
            return () if self.bootstrap is None else (self.bootstrap,)
        return self.control_plane if role == "control-plane" else self.worker


class Spot(Section):
    """Workers from the spot market: at the current price, and taken away when others pay more."""

    max_price: float = Field(gt=0, le=100_000, strict=False, description="the highest price for a worker, USD per hour")


class Gateway(Section):
    """A gateway of Metal in a VLAN, with a private subnet of its own."""

    size: Literal[8, 16, 32, 64, 128] = Field(
        description="the number of addresses in its private IPv4 subnet, 8 to 128"
    )


class Network(Section):
    """A VLAN of the project, and the roles whose machines are in it."""

    name: NetworkName = Field(description="its name within the stack, e.g. storage")
    vlan: int | None = Field(default=None, ge=2, le=3999, description="its number, 2 to 3999; not set: Metal chooses")
    description: str = Field(default="", max_length=100, description="what it is for; shown with the VLAN")
    roles: Annotated[tuple[Literal["control-plane", "worker"], ...], AfterValidator(_some)] = Field(
        strict=False, description="the roles whose machines are attached to it: control-plane, worker"
    )
    gateway: Gateway | None = Field(
        default=None, description="a gateway of Metal with a private subnet, from which the machines get addresses"
    )
    subnet: Annotated[str, AfterValidator(_network)] | None = Field(
        default=None, description="an IPv4 network of yours, from which the machines get addresses; else gateway"
    )

    @model_validator(mode="after")
    def _one_subnet(self) -> Network:
        if self.gateway is not None and self.subnet is not None:
            raise wrong("gateway and subnet are both set", "set gateway (Metal chooses a subnet), or subnet (yours)")
        if self.addressed and self.vlan is None:
            raise wrong(
                "its machines get addresses, and must know the number before the VLAN is there",
                "choose a number from 2 to 3999 that is free in the metro",
                at="vlan",
            )
        return self

    @property
    def addressed(self) -> bool:
        """Whether its machines get addresses in it."""
        return self.gateway is not None or self.subnet is not None

    @property
    def size(self) -> int:
        """The number of addresses in its subnet; 0 if it has none."""
        if self.gateway is not None:
            return self.gateway.size
        return 0 if self.subnet is None else ipaddress.IPv4Network(self.subnet).num_addresses


class MachineSubnets(Section):
    """The prefix length of a machine's own public IPv4 subnet, by role."""

    bootstrap: SubnetLength | None = Field(
        default=None, description="the prefix length, 28 to 31; not set: 31, Metal's default"
    )
    control_plane: SubnetLength | None = Field(default=None, description="the prefix length, 28 to 31; not set: 31")
    worker: SubnetLength | None = Field(default=None, description="the prefix length, 28 to 31; not set: 31")

    def of(self, role: str) -> int | None:
        """A role's prefix length; None for Metal's default."""
        return {"bootstrap": self.bootstrap, "control-plane": self.control_plane, "worker": self.worker}[role]


class MetalPool(Section):
    """The order for the machines of a pool of workers."""

    plan: Plan | None = Field(default=None, description="the plan of the pool's workers; not set: workerPlan")
    reservations: Reservations = Field(
        default=(),
        description="reserved servers: ids in the order of the pool's workers, or next-available; not set: on demand",
    )


class EquinixMetal(PlatformSection):
    """Servers that are ordered in an Equinix Metal project."""

    needed: ClassVar[tuple[Needed, ...]] = (
        Needed(path="platform.authToken", when=lambda tree: True),
        Needed(
            path="platform.organizationId",
            when=lambda tree: bool(at(tree, "platform.projectName")) and not at(tree, "platform.projectId"),
        ),
        Needed(
            path="platform.projectId",
            when=lambda tree: not at(tree, "platform.projectName"),
            why="the machines need a project",
            remedy="set projectId to use a project, or projectName and organizationId to create one",
        ),
    )
    type: Literal["equinix-metal"] = "equinix-metal"
    auth_token: SecretStr | None = Field(default=None, description="an API token (user or project), as a secret")
    project_id: Uuid | None = Field(
        default=None, description="the id (UUID) of an existing project; else set projectName"
    )
    project_name: Title | None = Field(
        default=None, description="the name of a project to create; needs organizationId"
    )
    organization_id: Uuid | None = Field(default=None, description="the id (UUID) of the organization of a new project")
    metro: Metro | None = Field(default=None, description="a metro code such as 'da'; else set facilities")
    facilities: tuple[Facility, ...] = Field(
        default=(),
        strict=False,
        description="facility codes such as 'da11' in order of preference, or 'any'; else set metro",
    )
    bootstrap_plan: Plan | None = Field(
        default=None, description="the plan of the bootstrap machine; not set: c3.small.x86, or c3.large.arm64"
    )
    control_plane_plan: Plan | None = Field(
        default=None, description="the plan of control plane machines; not set: c3.medium.x86, or c3.large.arm64"
    )
    worker_plan: Plan | None = Field(
        default=None, description="the plan of workers; not set: c3.medium.x86, or c3.large.arm64"
    )
    reservations: HardwareReservations = Field(
        default_factory=HardwareReservations, description="reserved servers to use, by role"
    )
    pools: dict[PoolName, MetalPool] = Field(
        default_factory=dict, description="plan and reserved servers of pools, by their names in workers.pools"
    )
    spot: Spot | None = Field(default=None, description="take workers from the spot market; not set: on demand")
    lifetime_hours: int | None = Field(
        default=None,
        ge=1,
        le=24 * 365,
        description=(
            "hours after the first `up` until Metal deletes all machines, whatever runs on them; for test installations"
        ),
    )
    custom_data: dict[str, Any] = Field(
        default_factory=dict, description="an object for the metadata of each machine (`customdata`); no secrets"
    )
    tags: tuple[Annotated[str, AfterValidator(_tag)], ...] = Field(
        default=(), strict=False, description="further tags of every machine and every reserved address"
    )
    networks: tuple[Network, ...] = Field(
        default=(), strict=False, description="VLANs, each with the roles whose machines are attached to it"
    )
    network_type: Literal["layer3", "hybrid-bonded", "hybrid", "layer2-bonded", "layer2-individual"] | None = Field(
        default=None, description="layer3, or hybrid-bonded; not set: hybrid-bonded for machines in a VLAN, else layer3"
    )
    bond_interfaces: Annotated[tuple[Interface, ...], AfterValidator(_some)] = Field(
        default=("en*", "eth*"),
        strict=False,
        description="the interfaces of the machines' bond, as patterns; exact names for plans with more than 2 ports",
    )
    machine_subnets: MachineSubnets = Field(
        default_factory=MachineSubnets, description="prefix lengths of each machine's own public IPv4 subnet, by role"
    )

    @model_validator(mode="after")
    def _one_of_each(self) -> EquinixMetal:
        if self.project_id is not None and self.project_name is not None:
            raise wrong(
                "projectId and projectName are both set", "set projectId to use a project, projectName to create one"
            )
        if (self.metro is None) == (not self.facilities):
            raise wrong(
                "exactly one of metro and facilities must be set",
                "set metro (any of its facilities), or facilities in order of preference",
            )
        return self

    def against_pools(self) -> Found:
        for name, value in (("networks", len(self.networks)), ("projectName", self.project_name)):
            if value:
                yield (
                    f"platform.{name}",
                    f"{value} networks" if name == "networks" else str(value),
                    "it is made by the cluster's stack, and the workers of other stacks cannot be in it yet",
                    "have one stack (workers.perStack: 0, and no workers.pools)"
                    + (", or use a project that exists (projectId)" if name == "projectName" else ""),
                )

    def narrowed(self, machines: frozenset[str], pool: str | None) -> Self:
        own, ids = self.pools.get(pool or ""), self.reservations.worker
        if own is None and ids != (NEXT_AVAILABLE,):  # ids belong to machine numbers
            ids = tuple(each for number, each in enumerate(ids) if f"worker-{number}" in machines)
        worker = ids if own is None else own.reservations
        return self.model_copy(
            update={
                "worker_plan": (own and own.plan) or self.worker_plan,
                "reservations": self.reservations.model_copy(update={"worker": worker}),
            }
        )

    def plans(self, architecture: str) -> dict[str, str]:
        """Role → plan."""
        own = {
            "bootstrap": self.bootstrap_plan,
            "control-plane": self.control_plane_plan,
            "worker": self.worker_plan,
        }
        return {role: own[role] or plan for role, plan in _PLANS[architecture].items()}
