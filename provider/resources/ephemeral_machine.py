"""`EphemeralMachine` and its inputs, for programs. Each platform has inputs of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import pulumi

from metal_ipi.provider.forms import Accept, Domain, Ipv4, Mac, Platform, Seconds, ShortName, Url, Whole, between, form
from metal_ipi.provider.given import LEFT_OUT, Given, GivenList, LateFlag, Secret, default
from metal_ipi.provider.inputs import Conflict, Inputs
from metal_ipi.provider.orders import CUSTOM_IPXE
from metal_ipi.provider.resources.base import computed
from metal_ipi.provider.resources.machine import Machine
from metal_ipi.provider.tags import identifying

ImageFile = Annotated[str, form(r"(/(?!\.{1,2}(/|$))[^/\x00-\x1f\x7f]+)+", "an absolute path where libvirt runs")]


class MachineArgs(Inputs):
    """Inputs that all platforms have."""

    hostname: Given[ShortName]
    """Host name, unique in the stack."""
    disposable: Given[LateFlag] = default(False)
    """Whether nothing is lost if the machine is replaced. While this is true and the machine exists, a change of what
    it boots replaces it."""
    timeout_seconds: Given[Seconds] = default(1800)
    """Seconds until it must be active, and seconds until it must be gone."""


class EphemeralMachineArgs(MachineArgs):
    """Arguments of `EphemeralMachine` on Equinix Metal. After the machine was created, changes apply only to the next
    installation, unless it is disposable."""

    platform: Given[Platform] = default("equinix-metal")
    """The driver that creates it."""
    project_id: Given[str]
    """UUID of the Metal project."""
    plan: Given[str]
    """Metal plan slug, `c3.small.x86`."""
    metro: Given[str | None] = default()
    """Metro code, `da`; give this or `facilities`."""
    facilities: Annotated[GivenList[str], LEFT_OUT] = default(())
    """Facility codes in order of preference, `da11`."""
    operating_system: Given[str] = default(CUSTOM_IPXE)
    """Metal operating system slug."""
    ipxe_script_url: Given[Url | None] = default()
    """URL of the iPXE script that a custom_ipxe machine boots."""
    always_pxe: Given[bool] = default(False)
    """Whether it always boots from the network."""
    user_data: Given[Secret[str] | None] = default()
    """User data: an Ignition config that only points to others, because everybody who reaches the metadata service can
    read it. Secret, as it contains secret URLs."""
    tags: GivenList[str] = default(())
    """Must contain `metal-ipi:stack=…`, `metal-ipi:cluster=…`, `metal-ipi:run=…` and `metal-ipi:name=…`: they identify
    the machine after a crash."""
    project_ssh_key_ids: Annotated[GivenList[str], LEFT_OUT] = default(())
    """SSH keys of the project that may log in to the serial console."""
    hardware_reservation_id: Given[str | None] = default()
    """The reserved server to use, or `next-available`; default: ordered on demand."""
    termination_time: Given[str | None] = default()
    """Time at which Metal deletes the machine, RFC 3339."""
    custom_data: Given[str | None] = default()
    """A JSON object for the machine's metadata."""
    public_subnet: Given[Annotated[Whole, between(28, 31)] | None] = default()
    """Prefix length of its own public IPv4 subnet, 28 to 31; default: 31."""
    bgp: Given[LateFlag] = default(False)
    """Whether it announces IPv4 addresses: then it gets a BGP session with its neighbours."""

    @classmethod
    def conflicts(cls, given: Mapping[str, Any]) -> Iterator[Conflict]:
        if len([key for key in ("metro", "facilities") if given.get(key) is not None]) != 1:
            yield ("metro",), "or `facilities` must be given, and not both"
        tags = given.get("tags")
        if isinstance(tags, list) and all(isinstance(tag, str) for tag in tags) and len(identifying(tags)) != 4:
            yield (
                ("tags",),
                "must contain metal-ipi:stack=…, metal-ipi:cluster=…, metal-ipi:run=… and metal-ipi:name=…: it is "
                "found "
                "by them after a crash",
            )


class LentServerArgs(MachineArgs):
    """Arguments of `EphemeralMachine` for a server with a BMC that is used as bootstrap machine first, and installed as
    another machine later."""

    platform: Given[Platform] = default("redfish")
    """`redfish`."""
    server: Given[str]
    """Its name in the provider's section `bmcs`."""
    mac: Given[Mac]
    """MAC address of the interface it boots from."""
    public_ipv4: Given[Ipv4]
    """Its address while it is lent."""
    private_ipv4: Given[Ipv4 | None] = default()
    """Private address; default: the same as the public one."""
    script: Given[Secret[str]]
    """The iPXE script that it boots, published as `boot/mac-….ipxe`. Secret."""
    chain: Given[str]
    """Text of `boot/boot.ipxe`, which loads that script."""
    accept: Given[Accept] = default("empty")
    """`empty`: the server must be switched off; `wipe`: everything on it may be lost."""


class LentNodeArgs(MachineArgs):
    """Arguments of `EphemeralMachine` for a server of Ironic that is used as bootstrap machine first, and installed as
    another machine later. Its `IronicMachine` has claimed it before."""

    platform: Given[Platform] = default("ironic")
    """`ironic`."""
    server: Given[str]
    """Its name in `ironic.servers` of the provider."""
    mac: Given[Mac]
    """MAC address of the interface it boots from."""
    public_ipv4: Given[Ipv4]
    """Its address while it is lent."""
    private_ipv4: Given[Ipv4 | None] = default()
    """Private address; default: the same as the public one."""
    script: Given[Secret[str]]
    """The iPXE script from which its boot disc is made; with the driver ipmi, the script that it boots. Secret."""
    chain: Given[str | None] = default()
    """Text of `boot/boot.ipxe`, which loads that script; required with the driver ipmi."""


class LocalVmArgs(MachineArgs):
    """Arguments of `EphemeralMachine` for a virtual machine of the libvirt in the provider's section `libvirt`."""

    platform: Given[Platform] = default("local-vm")
    """`local-vm`."""
    cluster: Given[Domain]
    """The cluster's domain. The libvirt domain is called `<hostname>.<cluster>`, and is marked as the cluster's."""
    mac: Given[Mac]
    """MAC address of its network card."""
    public_ipv4: Given[Ipv4]
    """Its address while it bootstraps the cluster."""
    bridge: Given[Annotated[str, form(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,14}", "the name of a bridge")]]
    """The bridge that its network card is attached to."""
    memory_mib: Given[Annotated[Whole, between(1024)]]
    """Memory, in MiB."""
    cpus: Given[Annotated[Whole, between(1)]]
    """Virtual CPUs."""
    boot_image: Given[ImageFile | None] = default()
    """Path of an iPXE image on the libvirt host; default: the iPXE of the firmware, by DHCP."""
    script: Given[Secret[str]]
    """The iPXE script that it boots, published as `boot/mac-….ipxe`. Secret."""
    chain: Given[str]
    """Text of `boot/boot.ipxe`, which loads that script."""

    @property
    def domain(self) -> str:
        """The name of the libvirt domain."""
        return f"{self.hostname}.{self.cluster}"


ARGS: Mapping[str, type[MachineArgs]] = {
    "equinix-metal": EphemeralMachineArgs,
    "redfish": LentServerArgs,
    "ironic": LentNodeArgs,
    "local-vm": LocalVmArgs,
}
"""Platform to the inputs of its machines."""


def args_of(values: Mapping[str, Any]) -> type[MachineArgs]:
    """The input class of the platform that the values name; that of Equinix Metal if they name no known one."""
    platform = values.get("platform")
    return ARGS.get(platform if isinstance(platform, str) else "", EphemeralMachineArgs)


class EphemeralMachine(Machine[EphemeralMachineArgs | LentServerArgs | LentNodeArgs | LocalVmArgs]):
    """A machine that a `Removal` deletes within the same up. It is not created again."""

    present: pulumi.Output[bool] = computed()
    """Whether it existed when it was last looked at: at its creation, or at the last refresh."""
