"""Outputs that say by themselves what they come from, and whether they are known.

The state of a resource names all that its inputs come from, and once more for each input. Where one input says it, or
what the resource depends on anyway, the others need not: the order in which things are made and deleted is the same.
"""

from __future__ import annotations

import asyncio
from typing import Any, TypeVar, cast

import pulumi

_T = TypeVar("_T")


def coming_from(value: pulumi.Input[_T], *resources: pulumi.Resource) -> pulumi.Output[_T]:
    """The same value, known and secret as it was, as if it came from these resources only.

    What it really comes from must stand before them, or before what takes it in another way.
    """
    whole = pulumi.Output.from_input(value)

    async def told() -> set[pulumi.Resource]:
        return set(resources)

    same = pulumi.Output(told(), whole.future(with_unknowns=True), whole.is_known(), whole.is_secret())
    return cast("pulumi.Output[_T]", same)


def not_known() -> pulumi.Output[Any]:
    """What a preview does not know yet, though no resource makes it."""
    return pulumi.Output(set[pulumi.Resource](), _done(None), _done(False))


def _done(value: _T) -> asyncio.Future[_T]:
    future: asyncio.Future[_T] = asyncio.Future()
    future.set_result(value)
    return future
