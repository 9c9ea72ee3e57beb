"""Outputs with given dependencies, and outputs that are unknown in a preview.

The state of a resource lists all resources that its inputs depend on, and lists them again for each input. If one input
has a dependency, or the resource depends on it anyway, the other inputs need not have it: the order of creation and
deletion is the same.
"""

from __future__ import annotations

import asyncio
from typing import Any, TypeVar, cast

import pulumi

_T = TypeVar("_T")


def coming_from(value: pulumi.Input[_T], *resources: pulumi.Resource) -> pulumi.Output[_T]:
    """The same value, known or secret as before, as if it depended on these resources only.

    Its real dependencies must come before these resources, or before its user in another way.
    """
    whole = pulumi.Output.from_input(value)

    async def told() -> set[pulumi.Resource]:
        return set(resources)

    same = pulumi.Output(told(), whole.future(with_unknowns=True), whole.is_known(), whole.is_secret())
    return cast("pulumi.Output[_T]", same)


def not_known() -> pulumi.Output[Any]:
    """A value that a preview does not know, although no resource provides it."""
    return pulumi.Output(set[pulumi.Resource](), _done(None), _done(False))


def _done(value: _T) -> asyncio.Future[_T]:
    future: asyncio.Future[_T] = asyncio.Future()
    future.set_result(value)
    return future
