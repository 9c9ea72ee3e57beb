"""`EphemeralMachine`, as programs see it, and its inputs: of each platform its own."""

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
    """What the platforms have in common."""

    hostname: Given[ShortName]
    """Host name, unique in the stack."""
    disposable: Given[LateFlag] = default(False)
    """Whether nothing is lost with it: as long as that is so and the machine is there, a change of what it boots makes
    another machine of it."""
    timeout_seconds: Given[Seconds] = default(1800)
    """How long it may take to become active, and as long again to be gone."""


class EphemeralMachineArgs(MachineArgs):
    """Arguments of `EphemeralMachine`. Once the machine was made, changes wait for the next installation, unless it is
    disposable."""

    platform: Given[Platform] = default("equinix-metal")
    """Which driver makes it."""
    project_id: Given[str]
    """UUID of the Metal project."""
    plan: Given[str]
    """Metal plan slug, `c3.small.x86`."""
    metro: Given[str | None] = default()
    """Metro code, `da`; this or `facilities`."""
    facilities: Annotated[GivenList[str], LEFT_OUT] = default(())
    """Facility codes in order of preference, `da11`."""
    operating_system: Given[str] = default(CUSTOM_IPXE)
    """Metal operating system slug."""
    ipxe_script_url: Given[Url | None] = default()
    """The iPXE script a custom_ipxe machine boots."""
    always_pxe: Given[bool] = default(False)
    """Boot from the network every time."""
    user_data: Given[Secret[str] | None] = default()
    """Plain Ignition that only holds pointers: whoever reaches the metadata service reads it. Secret, as its URLs."""
    tags: GivenList[str] = default(())
    """Holds `metal-ipi:stack=…`, `metal-ipi:cluster=…` and `metal-ipi:name=…`: by these it is found after a crash."""
    project_ssh_key_ids: Annotated[GivenList[str], LEFT_OUT] = default(())
    """SSH keys of the project that may open the serial console."""
    hardware_reservation_id: Given[str | None] = default()
    """The reserved server to use, or `next-available`; not given: it is ordered on demand."""
    termination_time: Given[str | None] = default()
    """When Metal deletes it by itself, RFC 3339."""
    custom_data: Given[str | None] = default()
    """A JSON object that it finds in its metadata."""
    public_subnet: Given[Annotated[Whole, between(28, 31)] | None] = default()
    """The prefix length of its own public IPv4 subnet, 28 to 31; not given: 31."""
    bgp: Given[LateFlag] = default(False)
    """Whether it announces IPv4 addresses: it gets a BGP session with its neighbours."""

    @classmethod
    def conflicts(cls, given: Mapping[str, Any]) -> Iterator[Conflict]:
        if len([key for key in ("metro", "facilities") if given.get(key) is not None]) != 1:
            yield ("metro",), "or `facilities` must be given, and not both"
        tags = given.get("tags")
        if isinstance(tags, list) and all(isinstance(tag, str) for tag in tags) and len(identifying(tags)) != 4:
            yield (
                ("tags",),
                "must hold metal-ipi:stack=…, metal-ipi:cluster=…, metal-ipi:run=… and metal-ipi:name=…: it is found "
                "by them after a crash",
            )


class LentServerArgs(MachineArgs):
    """Arguments of `EphemeralMachine` for a server with a BMC that is lent, and later installed as something else."""

    platform: Given[Platform] = default("redfish")
    """`redfish`."""
    server: Given[str]
    """Its name in the provider's section `bmcs`."""
    mac: Given[Mac]
    """MAC address of the interface it boots from."""
    public_ipv4: Given[Ipv4]
    """The address it has while it is lent."""
    private_ipv4: Given[Ipv4 | None] = default()
    """Private address; not given: the same."""
    script: Given[Secret[str]]
    """The iPXE script it boots, published as `boot/mac-….ipxe`. Secret."""
    chain: Given[str]
    """Text of `boot/boot.ipxe`, which leads there."""
    accept: Given[Accept] = default("empty")
    """`empty`: it must be switched off; `wipe`: whatever is on it may be lost."""


class LentNodeArgs(MachineArgs):
    """Arguments of `EphemeralMachine` for a server of Ironic's that is lent, and later installed as something else. It
    was claimed before, by its `IronicMachine`."""

    platform: Given[Platform] = default("ironic")
    """`ironic`."""
    server: Given[str]
    """Its name in `ironic.servers` of the provider."""
    mac: Given[Mac]
    """MAC address of the interface it boots from."""
    public_ipv4: Given[Ipv4]
    """The address it has while it is lent."""
    private_ipv4: Given[Ipv4 | None] = default()
    """Private address; not given: the same."""
    script: Given[Secret[str]]
    """The iPXE script that its disc is made of, or, with the driver ipmi, that it boots. Secret."""
    chain: Given[str | None] = default()
    """Text of `boot/boot.ipxe`, which leads there; needed with the driver ipmi."""


class LocalVmArgs(MachineArgs):
    """Arguments of `EphemeralMachine` for a virtual machine of the libvirt that the provider's section names."""

    platform: Given[Platform] = default("local-vm")
    """`local-vm`."""
    cluster: Given[Domain]
    """The cluster's domain: libvirt's domain is called `<hostname>.<cluster>`, and marked as the cluster's."""
    mac: Given[Mac]
    """MAC address of its network card."""
    public_ipv4: Given[Ipv4]
    """The address it gets there."""
    bridge: Given[Annotated[str, form(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,14}", "the name of a bridge")]]
    """The bridge that its network card is on."""
    memory_mib: Given[Annotated[Whole, between(1024)]]
    """Memory."""
    cpus: Given[Annotated[Whole, between(1)]]
    """Virtual CPUs."""
    boot_image: Given[ImageFile | None] = default()
    """Path, where libvirt runs, of an image with iPXE to boot; not given: the firmware's iPXE, by DHCP."""
    script: Given[Secret[str]]
    """The iPXE script it boots, published as `boot/mac-….ipxe`. Secret."""
    chain: Given[str]
    """Text of `boot/boot.ipxe`, which leads there."""

    @property
    def domain(self) -> str:
        """What libvirt's domain is called."""
        return f"{self.hostname}.{self.cluster}"


ARGS: Mapping[str, type[MachineArgs]] = {
    "equinix-metal": EphemeralMachineArgs,
    "redfish": LentServerArgs,
    "ironic": LentNodeArgs,
    "local-vm": LocalVmArgs,
}
"""What a machine is made of, by its platform."""


def args_of(values: Mapping[str, Any]) -> type[MachineArgs]:
    """The inputs of the platform that values name; of the first one where they name none that is known."""
    platform = values.get("platform")
    return ARGS.get(platform if isinstance(platform, str) else "", EphemeralMachineArgs)


class EphemeralMachine(Machine[EphemeralMachineArgs | LentServerArgs | LentNodeArgs | LocalVmArgs]):
    """A machine that is removed within the same up by a `Removal`, and stays gone."""

    present: pulumi.Output[bool] = computed()
    """Whether it was there when last looked at: at its creation, or at the last refresh."""
