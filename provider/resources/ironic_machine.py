"""`IronicMachine` and its inputs, for programs."""

from __future__ import annotations

from typing import Annotated, Any

import pulumi

from metal_ipi.provider.forms import Accept, Ipv4, Mac, Seconds, ShortName, form
from metal_ipi.provider.given import Given, default
from metal_ipi.provider.inputs import Inputs
from metal_ipi.provider.resources.base import Resource, computed


class IronicMachineArgs(Inputs):
    """Arguments of `IronicMachine`."""

    server: Given[Annotated[str, form(r"[A-Za-z0-9][A-Za-z0-9._~-]*", "a name in `ironic.servers`")]]
    """Its name in `ironic.servers` of the provider. A change replaces."""
    hostname: Given[ShortName]
    """Host name."""
    mac: Given[Mac]
    """MAC address of the interface it boots from."""
    public_ipv4: Given[Ipv4]
    """Its public address."""
    private_ipv4: Given[Ipv4 | None] = default()
    """Private address; default: the same as the public one."""
    accept: Given[Accept] = default("empty")
    """`empty`: an enrolled server must be switched off when it is claimed; `wipe`: everything on it may be lost."""
    timeout_seconds: Given[Seconds] = default(1800)
    """Seconds that one step in Ironic may take: verification, cleaning, deployment."""


class IronicMachine(Resource[IronicMachineArgs]):
    """A server in Ironic, claimed for the cluster by an allocation. `Installation` boots it; its deletion returns it to
    Ironic."""

    machine_id: pulumi.Output[str] = computed()
    """`<server>/<UUID of the node>`."""
    driver: pulumi.Output[str] = computed()
    """Ironic's hardware type."""
    resource_class: pulumi.Output[str] = computed()
    """Ironic's resource class."""
    memory_mib: pulumi.Output[float | None] = computed()
    """Memory in MiB, if Ironic has inspected it."""
    disks: pulumi.Output[list[dict[str, Any]]] = computed()
    """Its disks, {name, sizeBytes, model, serial}, if Ironic has inspected it."""
    nics: pulumi.Output[list[str]] = computed()
    """MAC addresses of its interfaces, if Ironic has inspected it."""
    public_ipv4: pulumi.Output[str] = computed()
    """Its public address."""
    private_ipv4: pulumi.Output[str] = computed()
    """Its private address."""
