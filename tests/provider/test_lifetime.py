"""When a rehearsal's machines end."""

from __future__ import annotations

import asyncio

import pytest

from metal_ipi.provider.configuration import Settings
from metal_ipi.provider.errors import InvalidInputs
from metal_ipi.provider.lifetime import Lifetime
from metal_ipi.provider.resource import Context
from metal_ipi.provider.status import NoLog, Status
from metal_ipi.provider.values import has_unknown

_HOUR = 3600.0


def _context() -> Context:
    return Context(urn="urn::lifetime", settings=Settings(), status=Status(NoLog(), "urn::lifetime"))


def test_the_end_is_fixed_when_it_is_made() -> None:
    now = [1_767_225_600.5]  # 2026-01-01T00:00:00Z
    lifetime = Lifetime(lambda: now[0])
    assert has_unknown(lifetime.preview(_context(), None, {"hours": 12})["endsAt"])
    made = asyncio.run(lifetime.create(_context(), {"hours": 12}))
    assert made.outputs == {"endsAt": "2026-01-01T12:00:00Z"}
    old = {"hours": 12.0, **made.outputs}
    now[0] += 11 * _HOUR
    found = lifetime.diff(_context(), old, {"hours": 12.0})
    assert found.changes == {} and found.warning.endswith("every machine of this cluster at 2026-01-01T12:00:00Z")


def test_a_time_that_is_over_is_refused() -> None:
    now = [1_767_225_600.0]
    lifetime = Lifetime(lambda: now[0])
    old = {"hours": 12.0, **asyncio.run(lifetime.create(_context(), {"hours": 12})).outputs}
    now[0] += 12 * _HOUR
    new, told = {"hours": 12.0}, r"ended at 2026-01-01T12:00:00Z.*Run `make down`, and `make up`"
    assert lifetime.diff(_context(), old, new).changes
    with pytest.raises(InvalidInputs, match=told):
        lifetime.preview(_context(), old, new)
    with pytest.raises(InvalidInputs, match=told):
        asyncio.run(lifetime.update(_context(), "id", old, new))


def test_check() -> None:
    assert Lifetime().check({"hours": 1}) == []
    assert [problem.path for problem in Lifetime().check({"hours": 0, "days": 1})] == ["days", "hours"]
