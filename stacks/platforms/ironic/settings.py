"""The section `platform` for your own servers through Ironic: enrolled there with their BMCs, or taken from those that
it has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from metal_ipi.provider.types import CREATES_RAID, DEPLOY_STEPS
from metal_ipi.stacks.platforms.listed import settings as listed
from metal_ipi.stacks.platforms.listed.forms import Account, AnyBmcUrl, BmcUrl, Password, SystemId
from metal_ipi.stacks.platforms.section import Needed, Tree, at, items
from metal_ipi.stacks.sections.base import REHEARSAL, Pem, Section, Words, matching, wrong

_Class = Annotated[
    str,
    matching(
        r"[A-Za-z0-9._-]{1,80}", "it is not a resource class", "use letters, digits, '.', '_' and '-', at most 80"
    ),
]
_NodeName = Annotated[
    str,
    matching(
        r"[A-Za-z0-9][A-Za-z0-9._~-]{0,254}",
        "it is not a name and no UUID of a node",
        "take it from `baremetal node list`",
    ),
]
_Verification = Annotated[
    str,
    matching(r"true|false|/[^\s]*", "it is neither true nor false nor a path", "give a path where the conductors run"),
]
_StepName = Annotated[
    str,
    matching(r"[a-z][a-z0-9_]{0,99}", "it is not a name of a step", "take it from Ironic's documentation of cleaning"),
]

BootMode = Literal["bios", "uefi"]


class Api(Section):
    """Ironic's API. A hub's stack has all of these values in its outputs."""

    endpoint: BmcUrl = Field(description="its https URL, e.g. https://hub.example.com:31385")
    username: Account | None = Field(default=None, description="an account (HTTP basic)")
    password: Password | None = Field(default=None, description="its password, as a secret")
    ca: Pem | None = Field(
        default=None, description="the authority (PEM) of its certificate; not set: the system's authorities"
    )


class Bmc(Section):
    """How Ironic reaches the BMCs of enrolled servers: settings that all BMCs share."""

    username: Account | None = Field(
        default=None, description="the user name of an account that you create for this purpose"
    )
    password: Password | None = Field(default=None, description="its password, as a secret")
    verify_ca: _Verification | None = Field(
        default=None,
        description=(
            "how Ironic's conductors verify the BMC's certificate: true: with their system's authorities; "
            "false: not at all; a path: with this file on the conductors; not set: true"
        ),
    )


class ServerBmc(Bmc):
    """One server's BMC; settings that are missing here are taken from platform.bmc."""

    address: AnyBmcUrl = Field(
        description=(
            "its URL for the conductors: https://10.0.0.11; with the driver ipmi: ipmi://10.0.0.11, with "
            ":<port> if it is not 623"
        )
    )
    system_id: SystemId | None = Field(default=None, description="the path of the System, where a BMC serves several")


class CleanStep(Section):
    """One of Ironic's clean steps. It runs before a server becomes available."""

    interface: Literal["bios", "raid", "firmware", "management", "power", "vendor", "deploy"] = Field(
        description="Ironic's interface that has the step"
    )
    step: _StepName = Field(description="its name, e.g. apply_configuration")
    args: dict[str, Any] = Field(default_factory=dict[str, Any], description="its arguments, as Ironic documents them")

    @model_validator(mode="after")
    def _complete(self) -> CleanStep:
        if (self.interface, self.step) == CREATES_RAID:
            raise wrong(
                "it makes the volumes of the node's target_raid_config, which nothing here sets",
                "with the drivers redfish and idrac use the deploy step apply_configuration of raid, and give it the"
                " volumes as raid_config; with ipmi make the volumes yourself",
                at="step",
            )
        return self


class DeployStep(Section):
    """One of Ironic's deploy steps. It runs when a server is deployed, before it boots its installer."""

    interface: Literal["raid", "firmware"] = Field(description="Ironic's interface that has the step")
    step: Literal["delete_configuration", "apply_configuration", "update"] = Field(
        description="its name: delete_configuration and apply_configuration of raid, update of firmware"
    )
    args: dict[str, Any] = Field(default_factory=dict[str, Any], description="its arguments, as Ironic documents them")

    @model_validator(mode="after")
    def _known(self) -> DeployStep:
        if self.step not in DEPLOY_STEPS[self.interface]:
            known = ", ".join(DEPLOY_STEPS[self.interface])
            raise wrong(f"{self.interface} has no deploy step {self.step}", f"use {known}", at="step")
        return self


class Server(listed.Server):
    """One server and its role. It is enrolled (driver), or one of Ironic's by name (node), or any of a resource
    class."""

    driver: Literal["redfish", "idrac", "ipmi"] | None = Field(
        default=None,
        description=(
            "Ironic's hardware type: this program enrols the server in Ironic; only with bmc. With redfish and "
            "idrac the server boots from a disc that its BMC attaches, with ipmi from the network, which needs "
            "DHCP"
        ),
    )
    bmc: ServerBmc | None = Field(
        default=None, description="address and account of its BMC, for Ironic; only with driver"
    )
    conductor_group: _Class | None = Field(default=None, description="its conductor group in Ironic; only with driver")
    node: _NodeName | None = Field(default=None, description="name or UUID of a node that exists in Ironic")
    resource_class: _Class | None = Field(
        default=None,
        description=(
            "with driver: the resource class that the enrolled server gets; not set: baremetal. Without driver "
            "and node: the resource class from which Ironic chooses a server"
        ),
    )
    traits: Words = Field(
        default=(), description="traits that the chosen server must have; only without driver and node"
    )
    clean_steps: tuple[CleanStep, ...] | None = Field(
        default=None,
        strict=False,
        description=(
            "cleaning steps that Ironic runs once, in this order, before the server is available; only with "
            "driver; not set: as in platform.cleanSteps"
        ),
    )
    deploy_steps: tuple[DeployStep, ...] | None = Field(
        default=None,
        strict=False,
        description=(
            "deployment steps that Ironic runs, in this order, before the server boots its installer; only "
            "with the driver redfish or idrac; not set: as in platform.deploySteps"
        ),
    )
    boot: Literal["disc", "network"] | None = Field(
        default=None,
        description=(
            "how it boots its installer; only without driver; not set: disc. With network it boots by iPXE, "
            "and Ironic must have a port with its mac"
        ),
    )
    boot_mode: BootMode | None = Field(
        default=None, description="the boot mode to set, bios or uefi; not set: as in platform.bootMode"
    )

    @property
    def by_network(self) -> bool:
        """Whether it boots from the network: IPMI has no virtual media."""
        return self.driver == "ipmi" or self.boot == "network"

    @model_validator(mode="after")
    def _one_way(self) -> Server:
        if (self.driver is None) != (self.bmc is None):
            raise wrong("only one of driver and bmc is set", "set both to enrol the server, or neither")
        if self.driver is not None and (self.node is not None or self.traits):
            raise wrong(
                "driver is set together with node or traits", "remove node and traits, or remove driver and bmc"
            )
        if self.driver is not None and self.boot is not None:
            raise wrong(
                f"the driver {self.driver} boots {'the network' if self.driver == 'ipmi' else 'discs'}",
                "remove it, or use a server that Ironic has already",
                at="boot",
            )
        if self.bmc is not None and self.by_network != self.bmc.address.startswith("ipmi:"):
            raise wrong(
                f"the driver {self.driver} does not use such an address",
                "write ipmi://<host> with the driver ipmi, and https://<host> with the others",
                at="bmc.address",
            )
        if self.bmc is not None and self.by_network and (self.bmc.system_id or self.bmc.verify_ca):
            raise wrong("systemId and verifyCa are for Redfish, not for IPMI", "remove them", at="bmc")
        if self.driver is None and self.conductor_group is not None:
            raise wrong("conductorGroup is only for servers that are enrolled", "set driver and bmc, or remove it")
        for steps, name in ((self.clean_steps, "cleanSteps"), (self.deploy_steps, "deploySteps")):
            if self.driver is None and steps:
                raise wrong(f"{name} are only for servers that are enrolled", "set driver and bmc, or remove them")
        if self.node is not None and (self.resource_class is not None or self.traits):
            raise wrong(
                "node is set together with resourceClass or traits", "set only node, or only resourceClass and traits"
            )
        if self.driver is None and self.node is None and self.resource_class is None:
            raise wrong("nothing says which server it is", "set driver and bmc, or node, or resourceClass")
        return self


def _lacks(key: str) -> Callable[[Tree], bool]:
    """Whether an enrolled server has no such setting of its own, so that the shared setting is required."""
    return lambda tree: any(
        at(server, "driver") is not None and at(server, f"bmc.{key}") in (None, "", REHEARSAL)
        for server in items(at(tree, "platform.servers"))
    )


class Ironic(listed.ListedServers[Server]):
    """Servers of your own, through Ironic."""

    needed: ClassVar[tuple[Needed, ...]] = (
        *(Needed(path=f"platform.api.{key}") for key in ("username", "password")),
        *(Needed(path=f"platform.bmc.{key}", when=_lacks(key)) for key in ("username", "password")),
    )
    type: Literal["ironic"] = "ironic"
    api: Api = Field(description="address and account of Ironic's API")
    bmc: Bmc = Field(default_factory=Bmc, description="defaults for the BMCs of all enrolled servers")
    boot_mode: BootMode | None = Field(
        default=None, description="the boot mode to set on servers, bios or uefi; not set: it is not changed"
    )
    clean_steps: tuple[CleanStep, ...] = Field(
        default=(),
        strict=False,
        description="cleaning steps that Ironic runs once on each enrolled server, before it is available",
    )
    deploy_steps: tuple[DeployStep, ...] = Field(
        default=(),
        strict=False,
        description=(
            "deployment steps that Ironic runs on an enrolled server before it boots its installer; not with ipmi"
        ),
    )
    release: Literal["keep", "remove"] = Field(
        default="keep",
        description=(
            "what to do with enrolled servers when they are no longer used: keep them in Ironic, or remove them"
        ),
    )

    def reached(self) -> list[tuple[str, str]]:
        found: list[tuple[str, str]] = []
        for index, server in enumerate(self.servers):
            if server.bmc is not None:
                system = f"{server.bmc.address} {server.bmc.system_id or ''}"  # one BMC may serve several servers
                found.append((f"platform.servers[{index}].bmc.address", system))
            if server.node is not None:
                found.append((f"platform.servers[{index}].node", server.node))
        return found

    def bmc_of(self, server: Server) -> ServerBmc | None:
        """An enrolled server's BMC, with the shared settings merged in; None for a server that Ironic has already."""
        if server.bmc is None:
            return None
        own, common = (bmc.model_dump(by_alias=True, exclude_none=True) for bmc in (server.bmc, self.bmc))
        return ServerBmc.model_validate({**common, **own})

    def clean_steps_of(self, server: Server) -> tuple[CleanStep, ...]:
        """The clean steps of an enrolled server; empty for a server that Ironic has already."""
        if server.driver is None:
            return ()
        return self.clean_steps if server.clean_steps is None else server.clean_steps

    def deploy_steps_of(self, server: Server) -> tuple[DeployStep, ...]:
        """The deploy steps of an enrolled server; empty for a server that Ironic has already."""
        if server.driver is None:
            return ()
        return self.deploy_steps if server.deploy_steps is None else server.deploy_steps

    @property
    def live_iso_machines(self) -> tuple[str, ...]:
        """The servers to which Ironic attaches a disc that is made for them."""
        return tuple(server.name for server in self.servers if not server.by_network)
