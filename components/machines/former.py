"""Aliases for machines in states of earlier versions, in which each machine had a component of its own in its pool.

The component was one third of a worker's resources and added no information. A resource's URN contains its component's
type, so resources that were in it name the old URN as an alias. The engine then knows them as the same resources.
"""

from __future__ import annotations

import pulumi


def of_component(type_: str, name: str, opts: pulumi.ResourceOptions) -> pulumi.ResourceOptions:
    """`opts` with an alias for a resource that was in the component of this type and name, under `opts.parent`."""
    component = pulumi.create_urn(name, type_, opts.parent)
    return pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(aliases=[pulumi.Alias(parent=component)]))
