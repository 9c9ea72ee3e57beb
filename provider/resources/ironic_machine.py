"""`IronicMachine`, as programs see it, and its inputs."""

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
    """Its address."""
    private_ipv4: Given[Ipv4 | None] = default()
    """Private address; not given: the same."""
    accept: Given[Accept] = default("empty")
    """`empty`: an enrolled server must be switched off when it is claimed; `wipe`: whatever is on it may be lost."""
    timeout_seconds: Given[Seconds] = default(1800)
    """How long one step of Ironic's may take: to verify it, to clean it, to deploy it."""


class IronicMachine(Resource[IronicMachineArgs]):
    """A server that Ironic has, claimed for the cluster by an allocation. Booting it is left to `Installation`; its end
    gives it back."""

    machine_id: pulumi.Output[str] = computed()
    """`<server>/<UUID of the node>`."""
    driver: pulumi.Output[str] = computed()
    """Ironic's hardware type."""
    resource_class: pulumi.Output[str] = computed()
    """Ironic's resource class."""
    memory_mib: pulumi.Output[float | None] = computed()
    """Memory, in MiB, where Ironic has inspected it."""
    disks: pulumi.Output[list[dict[str, Any]]] = computed()
    """Its disks, {name, sizeBytes, model, serial}, as far as Ironic has inspected them."""
    nics: pulumi.Output[list[str]] = computed()
    """MAC addresses of its interfaces, likewise."""
    public_ipv4: pulumi.Output[str] = computed()
    """Its address."""
    private_ipv4: pulumi.Output[str] = computed()
    """Its private address."""
