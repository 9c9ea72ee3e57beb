"""Base class of all resources, for programs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, TypeVar

import pulumi
from pydantic.alias_generators import to_camel

from metal_ipi.provider.inputs import Inputs

_PACKAGE = "metal-ipi"
Args = TypeVar("Args", bound=Inputs | Mapping[str, Any])


class _Computed:
    """An output of the resource, with its name on the wire."""

    wire: str

    def __set_name__(self, owner: type, name: str) -> None:
        self.wire = to_camel(name)

    def __get__(self, instance: Any, owner: type) -> Any:
        return self if instance is None else pulumi.get(instance, self.wire)


def computed() -> Any:
    """Declares an output that the provider sets: `ends_at: pulumi.Output[str] = computed()`."""
    return _Computed()


class Resource(pulumi.CustomResource, Generic[Args]):
    """A resource of this provider, with its arguments. Its type is `metal-ipi:index:<class>`."""

    def __init__(self, name: str, args: Args, opts: pulumi.ResourceOptions | None = None) -> None:
        outputs = [
            each.wire for kind in type(self).__mro__ for each in vars(kind).values() if isinstance(each, _Computed)
        ]
        given = args.to_wire() if isinstance(args, Inputs) else args
        # With their names on the wire, so that Pulumi does not rename keys of users' maps.
        super().__init__(f"{_PACKAGE}:index:{type(self).__name__}", name, {**dict.fromkeys(outputs), **given}, opts)
