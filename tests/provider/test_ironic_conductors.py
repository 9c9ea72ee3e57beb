"""Which conductors would have a server that is enrolled, before it is."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from metal_ipi.provider.errors import InvalidInputs, RemoteError
from metal_ipi.provider.ironic_settings import IronicServer, IronicSettings
from metal_ipi.provider.platforms.ironic.connection import Connection
from metal_ipi.provider.platforms.ironic.nodes import Nodes
from metal_ipi.provider.status import silent

_SERVER = IronicServer.read(
    {"driver": "redfish", "address": "https://10.0.0.1", "username": "u", "password": "p", "conductorGroup": "hall-b"}
)


def _conductor(*, active: bool, group: str = "hall-b", drivers: tuple[str, ...] = ("redfish",)) -> Any:
    return SimpleNamespace(hostname="ironic-0", active=active, conductor_group=group, drivers=list(drivers))


class _Ironic:
    """Knows no node and no allocation; answers one list of conductors after the other, the last one for ever."""

    where = "Ironic"

    def __init__(self, *answers: list[Any]) -> None:
        self.answers = list(answers)

    async def call(self, asked: str, operation: Callable[[Any], Any]) -> Any:
        return operation(self)

    async def find(self, asked: str, operation: Callable[[Any], Any]) -> None:
        return None

    def conductors(self, fields: list[str]) -> list[Any]:
        return self.answers[0]

    def drivers(self) -> list[Any]:
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        names = {name for each in answer for name in each.drivers}
        return [
            SimpleNamespace(name=name, hosts=[each.hostname for each in answer if each.active and name in each.drivers])
            for name in names
        ]


async def _seen(ironic: _Ironic, timeout: float) -> Any:
    settings = cast(IronicSettings, SimpleNamespace(claimant="c"))
    return await Nodes(cast(Connection, ironic), settings, silent, timeout=timeout).seen("worker-0", _SERVER)


async def test_one_that_is_late_is_waited_for() -> None:
    ironic = _Ironic([_conductor(active=False)], [_conductor(active=True)])
    assert await _seen(ironic, 30) is None
    assert len(ironic.answers) == 1


async def test_one_that_stays_away_is_told() -> None:
    with pytest.raises(RemoteError, match=r"has had no recent sign of a conductor for worker-0 \(ironic-0\)"):
        await _seen(_Ironic([_conductor(active=False)]), 0.05)


@pytest.mark.parametrize("other", [{"group": ""}, {"drivers": ("ipmi",)}])
async def test_others_are_not_waited_for(other: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputs, match="has no conductor of the group hall-b with the driver redfish"):
        await _seen(_Ironic([_conductor(active=True, **other)]), 30)
