"""Where machines stood in the states of earlier versions: each in a component of its own, in the component of its pool.

The component was a third of a worker's resources and said nothing that the machine does not. Its URN is part of the
URNs of what stood in it, so whatever did names that one as an alias: the engine then takes it for the same resource.
"""

from __future__ import annotations

import pulumi


def of_component(type_: str, name: str, opts: pulumi.ResourceOptions) -> pulumi.ResourceOptions:
    """`opts` of a resource that stood in the component of that type and name, which stood in `opts.parent`."""
    component = pulumi.create_urn(name, type_, opts.parent)
    return pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(aliases=[pulumi.Alias(parent=component)]))
