"""Nodes whose conductor dies while it answers or works."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from metal_ipi.provider.errors import RemoteError
from metal_ipi.provider.ironic_settings import IronicServer, IronicSettings
from metal_ipi.provider.platforms.ironic.connection import Connection, Refused
from metal_ipi.provider.platforms.ironic.nodes import Nodes
from metal_ipi.provider.status import silent

_DIED = "The deleting state can't be resumed by conductor ironic-0. Moving to fail state."


class _Ironic:
    """One node, which is claimed. Each look at it is answered by the next of some states; the last one stays."""

    where = "Ironic"

    def __init__(self, *states: str, refuses: bool = False, why: str | None = None) -> None:
        self._states, self._refuses, self._why = list(states), refuses, why
        self.instance: str | None = "claim"
        self.asked: list[str] = []
        self.dropped = False

    async def call(self, asked: str, operation: Callable[[Any], Any]) -> Any:
        return operation(self)

    find = call

    def get_node(self, node: str) -> Any:
        state = self._states.pop(0) if len(self._states) > 1 else self._states[0]
        return SimpleNamespace(
            id=node,
            name=node,
            instance_id=self.instance,
            provision_state=state,
            last_error=self._why if state in ("error", "clean failed", "manageable") else None,
            driver="redfish",
            maintenance_reason=None,
            reservation=None,
            target_power_state=None,
            power_state="power off",
            is_maintenance=False,
            extra={},
        )

    def get_allocation(self, name: str) -> Any:
        return SimpleNamespace(id="claim", state="active", node_id="node")

    def delete_allocation(self, name: str, *, ignore_missing: bool) -> None:
        self.dropped = True

    def set_node_provision_state(self, node: str, verb: str) -> None:
        self.asked.append(verb)
        if self._refuses:
            raise Refused("the requested action can not be performed on node while it is in another state", 400)


async def _give_back(ironic: _Ironic) -> None:
    settings = cast(IronicSettings, SimpleNamespace(claimant="c", release="available"))
    await Nodes(cast(Connection, ironic), settings, silent, timeout=30).give_back("worker-0", "node", None)


@pytest.mark.parametrize(
    "states", [("active", "active", "deleting", "cleaning", "available"), ("active", "active", "available")]
)
async def test_a_request_whose_answer_was_lost_is_not_refused(states: tuple[str, ...]) -> None:
    """Its repetition is: the node is on its way, or there."""
    ironic = _Ironic(*states, refuses=True)
    await _give_back(ironic)
    assert ironic.asked == ["deleted"] and ironic.dropped


async def test_a_request_that_is_refused_from_the_beginning_is_told() -> None:
    ironic = _Ironic("active", refuses=True)
    with pytest.raises(RemoteError, match="can not be performed"):
        await _give_back(ironic)
    assert not ironic.dropped


async def test_a_node_whose_conductor_died_while_it_was_given_back_is_given_back_again() -> None:
    ironic = _Ironic("active", "active", "error", "available", why=_DIED)
    await _give_back(ironic)
    assert ironic.asked == ["deleted", "deleted"] and ironic.dropped


@pytest.mark.parametrize(("why", "times"), [(_DIED, 3), ("Failed to tear down", 1)])
async def test_a_node_that_cannot_be_given_back_is_told(why: str, times: int) -> None:
    ironic = _Ironic("active", "active", "error", why=why)
    with pytest.raises(RemoteError, match=f"is in the state error: {why[:20]}"):
        await _give_back(ironic)
    assert ironic.asked == ["deleted"] * times and not ironic.dropped


_CLEANS = ("manageable", "manageable", "clean failed", "clean failed")
"""A node whose cleaning is begun, and fails."""


async def _enrolled(ironic: _Ironic) -> None:
    settings = cast(IronicSettings, SimpleNamespace(claimant="c", release="remove"))
    server = IronicServer(driver="redfish", address="https://bmc.test", username="u", password="p")
    nodes = Nodes(cast(Connection, ironic), settings, silent, timeout=30)
    await nodes._make_available("node", server, "empty")  # pyright: ignore[reportPrivateUsage]


async def test_a_node_whose_conductor_died_while_it_was_cleaned_is_cleaned_again() -> None:
    ironic = _Ironic(*_CLEANS, "manageable", "manageable", "available", why=_DIED.replace("deleting", "cleaning"))
    ironic.instance = None
    await _enrolled(ironic)
    assert ironic.asked == ["provide", "manage", "provide"]


@pytest.mark.parametrize(("why", "times"), [(_DIED, 4), ("Agent returned error for clean step", 1)])
async def test_a_node_that_cannot_be_cleaned_is_told(why: str, times: int) -> None:
    ironic = _Ironic(*(_CLEANS * 5), why=why)
    ironic.instance = None
    with pytest.raises(RemoteError, match=why[:20]):
        await _enrolled(ironic)
    assert ironic.asked.count("provide") == times
