"""Base class of all machine resources."""

from __future__ import annotations

import pulumi

from metal_ipi.provider.resources.base import Args, Resource, computed


class Machine(Resource[Args]):
    """The outputs that every machine has."""

    machine_id: pulumi.Output[str] = computed()
    """The platform's id."""
    public_ipv4: pulumi.Output[str] = computed()
    """First public IPv4 address."""
    private_ipv4: pulumi.Output[str] = computed()
    """Private IPv4 address."""
    public_ipv6: pulumi.Output[str] = computed()
    """Public IPv6 address; empty if it has none."""
    console: pulumi.Output[str] = computed()
    """Host of the serial-over-SSH console; the user name is the machine's id."""
