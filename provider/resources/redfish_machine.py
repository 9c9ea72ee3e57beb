"""`RedfishMachine` and its inputs, for programs."""

from __future__ import annotations

from typing import Annotated, Any

import pulumi

from metal_ipi.provider.forms import Accept, Ipv4, Mac, Seconds, ShortName, between, form
from metal_ipi.provider.given import Given, default
from metal_ipi.provider.inputs import Inputs
from metal_ipi.provider.resources.base import Resource, computed


class RedfishMachineArgs(Inputs):
    """Arguments of `RedfishMachine`."""

    server: Given[Annotated[str, form(r"[^/\s]+", "a name in `bmcs`, without a slash")]]
    """Its name in the provider's section `bmcs`. A change replaces."""
    hostname: Given[ShortName]
    """Host name."""
    mac: Given[Mac]
    """MAC address of the interface it boots from."""
    public_ipv4: Given[Ipv4]
    """Its public address."""
    private_ipv4: Given[Ipv4 | None] = default()
    """Private address; default: the same as the public one."""
    accept: Given[Accept] = default("empty")
    """`empty`: the server must be switched off when it is claimed; `wipe`: everything on it may be lost."""
    minimum_memory_mib: Given[Annotated[float, between(0)] | None] = default()
    """Memory that it must have, in MiB."""
    timeout_seconds: Given[Seconds] = default(180)
    """Seconds that its BMC may be busy or unreachable before that is an error."""


class RedfishMachine(Resource[RedfishMachineArgs]):
    """A server with a BMC, claimed for the cluster. `Installation` boots it; its deletion switches it off."""

    machine_id: pulumi.Output[str] = computed()
    """`<server>/<UUID of its System>`."""
    serial: pulumi.Output[str | None] = computed()
    """Serial number."""
    manufacturer: pulumi.Output[str | None] = computed()
    """Its manufacturer."""
    model: pulumi.Output[str | None] = computed()
    """Its model."""
    bios_version: pulumi.Output[str | None] = computed()
    """Version of its firmware."""
    memory_mib: pulumi.Output[float | None] = computed()
    """Memory, in MiB."""
    disks: pulumi.Output[list[dict[str, Any]]] = computed()
    """Its disks, {name, sizeBytes, model, serial, mediaType}, as far as its BMC reports them."""
    nics: pulumi.Output[list[str]] = computed()
    """MAC addresses of its interfaces."""
    boot_mode: pulumi.Output[str | None] = computed()
    """`bios` or `uefi`."""
    console: pulumi.Output[str] = computed()
    """Where to find its console: the BMC's host, and the consoles that it offers. For people."""
    public_ipv4: pulumi.Output[str] = computed()
    """Its public address."""
    private_ipv4: pulumi.Output[str] = computed()
    """Its private address."""
