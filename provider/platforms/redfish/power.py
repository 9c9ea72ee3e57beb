"""Power states. The state is read until it is as requested, because a BMC's answer only says that it will try."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from metal_ipi.provider.backoff import Backoff
from metal_ipi.provider.errors import RemoteError
from metal_ipi.provider.platforms.redfish.connection import Connection, Refused
from metal_ipi.provider.platforms.redfish.inventory import power
from metal_ipi.provider.status import Say

_ON = ("On", "ForceOn")
_AT_ONCE = ("ForceRestart", "PowerCycle")
_LONGEST_PAUSE = 3.0
_REFUSALS = 3


@dataclass(frozen=True, kw_only=True)
class Patience:
    """Timeouts and pauses, in seconds."""

    power: float = 300
    """Until the power state is as requested."""
    again: float = 30
    """Until the request is repeated."""
    grace: float = 30
    """For an operating system to shut down."""
    telling: float = 15
    """For a BMC to report that a one-time boot was used."""
    post: float = 600
    """For the firmware to start the boot, if the BMC reports the progress."""


async def state(connection: Connection) -> str:
    """`On`, `Off`, `PoweringOn`, `PoweringOff` or `Unknown`."""
    return await connection.call("for its power state", power)


async def turn_off(connection: Connection, patience: Patience, say: Say, *, graceful: bool) -> None:
    """Return once it is off. An operating system that does not shut down within the grace period is switched off."""
    if graceful and await state(connection) == "On" and await _offers(connection, "GracefulShutdown"):
        if await _turn(connection, "Off", ("GracefulShutdown",), patience.grace, patience.grace):
            return
        await say(f"{connection.where} did not shut down within {patience.grace:g} s: it is switched off")
    if not await _turn(connection, "Off", ("ForceOff",), patience.power, patience.again):
        raise await _still(connection, "Off", patience.power)


async def start_over(
    connection: Connection, patience: Patience, say: Say, *, prepare: Callable[[], Awaitable[None]] | None = None
) -> None:
    """Boot it, whether it is on or off, without a shutdown; returns once it is on.

    `prepare` sets a one-time boot, and is awaited before every reset. If an answer is lost, the reset may have happened
    and used up the one-time boot: so both are repeated. The same if it must be switched on again, because it may have
    been on for a moment.
    """
    backoff = Backoff(timeout=patience.power, longest=_LONGEST_PAUSE)
    while True:
        if prepare:
            await prepare()
        try:
            await _reset(connection, patience, say)
            break
        except RemoteError as error:
            if not error.passing or backoff.over:
                raise
        await backoff.pause()
    if not await _turn(connection, "On", _ON, patience.power, patience.again, prepare=prepare):
        raise await _still(connection, "On", patience.power)


async def _reset(connection: Connection, patience: Patience, say: Say) -> None:
    now = await _settled(connection, patience)
    if now == "Off":
        return
    offered = [kind for kind in _AT_ONCE if await _offers(connection, kind)]
    if not offered:
        await turn_off(connection, patience, say, graceful=False)
        return
    try:
        await connection.call(
            f"to reset it ({offered[0]})", lambda system: _ask(connection, system, offered), once=True
        )
    except Refused as error:
        # If it went off in the meantime, there is nothing to reset.
        if error.status not in (400, 409) or await state(connection) != "Off":
            raise


async def _settled(connection: Connection, patience: Patience) -> str:
    """Wait while the power state is changing; returns the state."""
    backoff = Backoff(timeout=patience.power, longest=_LONGEST_PAUSE)
    while (now := await state(connection)).startswith("Powering") and not backoff.over:
        await backoff.pause()
    return now


async def _turn(
    connection: Connection,
    wanted: str,
    kinds: Sequence[str],
    timeout: float,
    again: float,
    *,
    prepare: Callable[[], Awaitable[None]] | None = None,
) -> bool:
    """Whether the wanted state was reached in time; `prepare` is awaited before all requests except the first."""
    backoff = Backoff(timeout=timeout, longest=_LONGEST_PAUSE)
    due, refusals = 0.0, 0
    while await state(connection) != wanted:
        if backoff.over:
            return False
        if backoff.elapsed >= due:
            if due and prepare:
                await prepare()
            due = backoff.elapsed + again
            try:
                await connection.call(f"to switch {wanted.lower()}", lambda system: _ask(connection, system, kinds))
            except Refused as error:
                # It may be in the wanted state already, and the BMC's report may be late.
                refusals += 1
                if error.status not in (400, 409) or refusals == _REFUSALS:
                    raise
        await backoff.pause()
    return True


def _ask(connection: Connection, system: Any, kinds: Sequence[str]) -> None:
    """Request the first of the resets that is offered. Raises RemoteError if none is."""
    from sushy.resources.constants import ResetType

    offered = {kind.value for kind in system.get_allowed_reset_system_values()}
    kind = next((kind for kind in kinds if kind in offered), None)
    if kind is None:
        raise RemoteError(
            f"{connection.where} offers none of the resets {', '.join(kinds)}, but {', '.join(sorted(offered))}: "
            "update the BMC's firmware, or its licence"
        )
    system.reset_system(ResetType(kind))


async def _offers(connection: Connection, kind: str) -> bool:
    return await connection.call(
        "which resets it offers",
        lambda system: kind in {offered.value for offered in system.get_allowed_reset_system_values()},
    )


async def _still(connection: Connection, wanted: str, timeout: float) -> RemoteError:
    now = await state(connection)
    return RemoteError(
        f"{connection.where} is still {now} {timeout:g} s after it was asked to change to {wanted}: look at the "
        "machine and its BMC; run the same command again to go on"
    )
