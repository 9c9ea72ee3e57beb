"""Machines of an Equinix Metal project, through the official provider.

A machine is ordered with `custom_ipxe`: Metal chains to our iPXE script and calls the machine active as soon as the
script was served, so an install is proved by SSH and never by state (Equinix's custom iPXE documentation).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import pulumi

from components.machines.contract import BgpNeighbour, MachineArgs
from components.machines.tags import reservation_tags, tags
from provider.types import EphemeralMachine, EphemeralMachineArgs

with warnings.catch_warnings():
    # The SDK imports pkg_resources, whose deprecation is its authors' business and not that of whoever runs `up`.
    warnings.filterwarnings("ignore", message="pkg_resources is deprecated")
    import pulumi_equinix_metal as metal

_OPERATING_SYSTEM = "custom_ipxe"
_BILLING = "hourly"
_LOCAL_ASN = 65000
"""What Metal assigns to every project whose addresses are announced within Metal alone."""
_NEIGHBOURS = "equinix-metal:index/getDeviceBgpNeighbors:getDeviceBgpNeighbors"
# Not acted on once a machine exists: any of these would re-install or re-order all machines at once, etcd included.
# A machine that is replaced by name gets the current values.
_KEPT = ["userData", "plan", "metro", "facilities", "operatingSystem", "projectId", "projectSshKeyIds"]


@dataclass(frozen=True, kw_only=True)
class EquinixMetalArgs:
    """A project, and what to order in it."""

    stack: str
    """The stack's name; marks every machine."""
    cluster: str
    """The cluster's domain; marks every machine."""
    auth_token: pulumi.Input[str]
    """An API token; secret."""
    project_id: str | None
    """An existing project's id; None creates one."""
    project_name: str | None
    """The name of the project to create."""
    organization_id: str | None
    """The owner of the project to create."""
    metro: str | None
    """A metro code, or None for a facility."""
    facility: str | None
    """A facility code, or None for a metro."""
    plans: dict[str, str]
    """Role → plan."""
    ssh_public_key: pulumi.Input[str]
    """A key that Metal lets in to the serial consoles."""


class EquinixMetal(pulumi.ComponentResource):
    """The platform: project, SSH key, and the machines ordered from it."""

    kind = ephemeral_kind = "equinix-metal"
    ignition_platform = "packet"
    metadata_url: str | None = "https://metadata.packet.net/metadata"
    project_id: pulumi.Output[str]
    """The project's id."""

    def __init__(self, name: str, args: EquinixMetalArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("metal-ipi:machines:EquinixMetal", name, None, opts)
        self._args = args
        provider = metal.Provider(
            f"{name}-provider",
            auth_token=pulumi.Output.secret(args.auth_token),
            opts=pulumi.ResourceOptions(parent=self),
        )
        self._child = pulumi.ResourceOptions(parent=self, provider=provider)
        if args.project_id is not None:
            self.project_id = pulumi.Output.from_input(args.project_id)
        else:
            project = metal.Project(
                f"{name}-project",
                name=args.project_name,
                organization_id=args.organization_id,
                # Always: it costs nothing, and Metal has no way to take it back.
                bgp_config=metal.ProjectBgpConfigArgs(deployment_type="local", asn=_LOCAL_ASN),
                opts=self._child,
            )
            self.project_id = project.id
        ssh_key = metal.ProjectSshKey(
            f"{name}-ssh-key",
            name=f"metal-ipi:{args.stack}:{args.cluster}",
            project_id=self.project_id,
            public_key=args.ssh_public_key,
            opts=self._child,
        )
        self._ssh_key_ids = [ssh_key.id]
        self.register_outputs({"projectId": self.project_id})

    def machine(self, name: str, args: MachineArgs, opts: pulumi.ResourceOptions) -> EquinixMetalMachine:
        """Order a machine that stays."""
        return EquinixMetalMachine(name, args, self, pulumi.ResourceOptions.merge(self._child, opts))

    def ephemeral_machine(self, name: str, args: MachineArgs, opts: pulumi.ResourceOptions) -> EphemeralMetalMachine:
        """Order the machine that is gone again within the same `up`; `opts` carries our own provider."""
        return EphemeralMetalMachine(name, args, self, opts)

    def reserve_address(self, name: str) -> pulumi.Output[str]:
        """Reserve one public IPv4 address in the metro or facility; billed until it is released."""
        return self._reserve(name, 1).network

    def reserve_block(self, name: str, quantity: int) -> pulumi.Output[str]:
        """Reserve so many public IPv4 addresses there, a power of 2; billed until they are released."""
        return self._reserve(name, quantity).cidr_notation

    def _reserve(self, name: str, quantity: int) -> metal.ReservedIpBlock:
        metro, facilities = self.placement()
        return metal.ReservedIpBlock(
            name,
            project_id=self.project_id,
            type="public_ipv4",
            quantity=quantity,
            metro=metro,
            facility=facilities[0] if facilities else None,
            tags=reservation_tags(stack=self._args.stack, cluster=self._args.cluster, name=name),
            opts=self._child,
        )

    def placement(self) -> tuple[str | None, list[str] | None]:
        """Metro and facilities: exactly one of them is not None."""
        return self._args.metro, [self._args.facility] if self._args.facility else None

    def plan(self, role: str) -> str:
        """The plan of a role's machines."""
        return self._args.plans[role]

    def ssh_key_ids(self) -> list[pulumi.Output[str]]:
        """The project SSH keys that every machine carries."""
        return list(self._ssh_key_ids)

    def tags(self, args: MachineArgs) -> list[str]:
        """The tags of a machine of this stack."""
        return tags(stack=self._args.stack, cluster=self._args.cluster, hostname=args.hostname, role=args.role)


class EquinixMetalMachine(pulumi.ComponentResource):
    """A device of the project."""

    def __init__(
        self, name: str, args: MachineArgs, platform: EquinixMetal, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("metal-ipi:machines:EquinixMetalMachine", name, None, opts)
        metro, facilities = platform.placement()
        device = metal.Device(
            f"{name}-device",
            hostname=args.hostname,
            plan=platform.plan(args.role),
            metro=metro,
            facilities=facilities,  # pyright: ignore[reportArgumentType]  (the enum of facilities is not exhaustive)
            operating_system=_OPERATING_SYSTEM,
            billing_cycle=_BILLING,
            project_id=platform.project_id,
            project_ssh_key_ids=platform.ssh_key_ids(),
            ipxe_script_url=args.boot.ipxe_script_url,
            always_pxe=args.boot.always_pxe,
            user_data=args.boot.user_data,
            tags=platform.tags(args),
            opts=pulumi.ResourceOptions(
                delete_before_replace=True,
                ignore_changes=_KEPT,
                custom_timeouts=pulumi.CustomTimeouts(create=f"{args.timeout}s"),
                parent=self,
            ),
        )
        self._session = (
            metal.BgpSession(
                f"{name}-bgp",
                device_id=device.id,
                address_family="ipv4",
                opts=pulumi.ResourceOptions(parent=self, delete_before_replace=True),
            )
            if args.announces
            else None
        )
        self.resource: pulumi.Resource = device
        self.machine_id = device.id
        self.public_ipv4 = device.access_public_ipv4
        self.private_ipv4 = device.access_private_ipv4
        self.public_ipv6 = device.access_public_ipv6
        self.console = pulumi.Output.concat(device.id, "@sos.", device.deployed_facility, ".platformequinix.com")
        self.register_outputs({"machineId": self.machine_id, "publicIpv4": self.public_ipv4})

    def neighbours(self) -> pulumi.Output[Sequence[BgpNeighbour]]:
        """Asked of Metal by each run, so that no state holds the password, and a new one is found.

        The SDK's own function runs the event loop within itself, once more for each machine that waits for an answer.
        """
        assert self._session is not None, "it announces nothing"
        answer = pulumi.runtime.invoke_output(
            _NEIGHBOURS,
            {"deviceId": self.machine_id},
            pulumi.InvokeOutputOptions(parent=self, depends_on=[self._session]),
            typ=metal.GetDeviceBgpNeighborsResult,
        )
        return pulumi.Output.secret(answer.apply(_neighbours))


def _neighbours(answer: metal.GetDeviceBgpNeighborsResult) -> Sequence[BgpNeighbour]:
    return [
        BgpNeighbour(
            customer_as=each.customer_as,
            customer_ip=each.customer_ip,
            peer_as=each.peer_as,
            peer_ips=tuple(each.peer_ips or ()),
            md5_password=each.md5_password if each.md5_enabled else None,
            multihop=each.multihop,
        )
        for each in answer.bgp_neighbors
    ]


class EphemeralMetalMachine:
    """A device that our provider orders, because it must be able to disappear again within the same `up`."""

    def __init__(
        self, name: str, args: MachineArgs, platform: EquinixMetal, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        metro, facilities = platform.placement()
        machine = EphemeralMachine(
            name,
            EphemeralMachineArgs(
                platform=EquinixMetal.kind,
                hostname=args.hostname,
                plan=platform.plan(args.role),
                metro=metro,
                facilities=facilities,
                operating_system=_OPERATING_SYSTEM,
                project_id=platform.project_id,
                project_ssh_key_ids=platform.ssh_key_ids(),
                ipxe_script_url=args.boot.ipxe_script_url,
                always_pxe=args.boot.always_pxe,
                user_data=args.boot.user_data,
                tags=platform.tags(args),
                bgp=args.announces,
                timeout_seconds=args.timeout,
            ),
            # It is found by its tags: a second one beside it would be taken for the first.
            pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(delete_before_replace=True)),
        )
        self.resource: pulumi.Resource = machine
        self.machine_id = machine.machine_id
        self.public_ipv4 = machine.public_ipv4
        self.private_ipv4 = machine.private_ipv4
        self.public_ipv6 = machine.public_ipv6.apply(lambda address: address or "")
        self.console = pulumi.Output.concat(machine.machine_id, "@", machine.console)
