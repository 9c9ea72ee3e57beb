"""`RedfishMachine`, as programs see it, and its inputs."""

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
    """Its address."""
    private_ipv4: Given[Ipv4 | None] = default()
    """Private address; not given: the same."""
    accept: Given[Accept] = default("empty")
    """`empty`: it must be switched off when it is claimed; `wipe`: whatever is on it may be lost."""
    minimum_memory_mib: Given[Annotated[float, between(0)] | None] = default()
    """Memory it must have."""
    timeout_seconds: Given[Seconds] = default(180)
    """How long its BMC may be busy or out of reach before that is an error."""


class RedfishMachine(Resource[RedfishMachineArgs]):
    """A server with a BMC, claimed for the cluster. Booting it is left to `Installation`; its end switches it off."""

    machine_id: pulumi.Output[str] = computed()
    """`<server>/<UUID of its System>`."""
    serial: pulumi.Output[str | None] = computed()
    """Serial number."""
    manufacturer: pulumi.Output[str | None] = computed()
    """Who made it."""
    model: pulumi.Output[str | None] = computed()
    """Model."""
    bios_version: pulumi.Output[str | None] = computed()
    """Version of its firmware."""
    memory_mib: pulumi.Output[float | None] = computed()
    """Memory, in MiB."""
    disks: pulumi.Output[list[dict[str, Any]]] = computed()
    """Its disks, {name, sizeBytes, model, serial, mediaType}, as far as its BMC knows them."""
    nics: pulumi.Output[list[str]] = computed()
    """MAC addresses of its interfaces."""
    boot_mode: pulumi.Output[str | None] = computed()
    """`bios` or `uefi`."""
    console: pulumi.Output[str] = computed()
    """Where to find its console: the BMC's host, and what it offers there. For people."""
    public_ipv4: pulumi.Output[str] = computed()
    """Its address."""
    private_ipv4: pulumi.Output[str] = computed()
    """Its private address."""
