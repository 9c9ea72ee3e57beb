"""What all resources are, as programs see them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, TypeVar

import pulumi
from pydantic.alias_generators import to_camel

from metal_ipi.provider.inputs import Inputs

_PACKAGE = "metal-ipi"
Args = TypeVar("Args", bound=Inputs | Mapping[str, Any])


class _Computed:
    """An output of the resource, by its name on the wire."""

    wire: str

    def __set_name__(self, owner: type, name: str) -> None:
        self.wire = to_camel(name)

    def __get__(self, instance: Any, owner: type) -> Any:
        return self if instance is None else pulumi.get(instance, self.wire)


def computed() -> Any:
    """An output, which the provider tells: `ends_at: pulumi.Output[str] = computed()`."""
    return _Computed()


class Resource(pulumi.CustomResource, Generic[Args]):
    """A resource of our provider, with its arguments. Its type is `metal-ipi:index:<class>`."""

    def __init__(self, name: str, args: Args, opts: pulumi.ResourceOptions | None = None) -> None:
        outputs = [
            each.wire for kind in type(self).__mro__ for each in vars(kind).values() if isinstance(each, _Computed)
        ]
        given = args.to_wire() if isinstance(args, Inputs) else args
        # Under their names on the wire, so that the keys of maps that users give are never renamed.
        super().__init__(f"{_PACKAGE}:index:{type(self).__name__}", name, {**dict.fromkeys(outputs), **given}, opts)
