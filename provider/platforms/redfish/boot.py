"""What a server boots next: once from the network, and after that from its disk.

A one-time boot override is set and read back. If a BMC refuses it, or accepts and loses it, a permanent override for
the network is set; if that fails too, the network is put first in the boot order. Both are withdrawn when the server
must boot from disk. Until then they do no harm, because a machine without a published script continues from the network
to its disk. Each fallback is reported.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from metal_ipi.provider import backoff
from metal_ipi.provider.backoff import Backoff
from metal_ipi.provider.bmc_settings import LIVE_ISO, BmcSettings
from metal_ipi.provider.errors import RemoteError
from metal_ipi.provider.platforms.redfish import boot_order, quirks
from metal_ipi.provider.platforms.redfish.connection import Connection, Refused, word
from metal_ipi.provider.platforms.redfish.inventory import power
from metal_ipi.provider.platforms.redfish.power import Patience
from metal_ipi.provider.status import Say

ONCE, EVERY_TIME, ORDER = "Once", "Continuous", "boot order"
_TARGETS = {"pxe": "Pxe", "uefi-http": "UefiHttp", "virtual-media": "Cd", LIVE_ISO: "Cd"}
_MODES = {"bios": "Legacy", "uefi": "UEFI"}
NETWORK = frozenset({"Pxe", "UefiHttp", "Cd", "UsbCd"})
"""Boot targets other than the disk."""
_STARTED = frozenset({"OSBootStarted", "OSRunning"})
_READS = 4
"""A BMC may need a moment until it shows a changed setting."""
_LEFT_OVER = 20.0
"""Seconds for which a BMC may still list a one-time boot after the operating system has started."""


@dataclass(frozen=True, kw_only=True)
class Override:
    """What the BMC will boot next."""

    enabled: str | None
    target: str | None
    progress: tuple[str | None, Any]
    """The progress of the boot, and the time of its last change."""
    power: str

    @property
    def from_network(self) -> bool:
        """Whether the next boot is not from the disk."""
        return self.target in NETWORK and self.enabled in (ONCE, EVERY_TIME)


async def read(connection: Connection) -> Override:
    """Read the boot override."""
    return await connection.call("what it boots next", _read)


def _read(system: Any) -> Override:
    boot, progress = system.boot or {}, system.boot_progress or {}
    last = progress.get("last_state")
    return Override(
        enabled=word(boot.get("enabled")),
        target=word(boot.get("target")),
        progress=(word(last), progress.get("last_state_updated_at")),
        power=power(system),
    )


async def arm(connection: Connection, mac: str, say: Say, *, every_time: bool = False) -> str:
    """Make the next boot come from the network. Returns how: ONCE, EVERY_TIME or ORDER. Raises RemoteError.

    `every_time` tries the permanent override first; not all BMCs have both. Only the boot order can name the interface,
    for which `mac` is needed.
    """
    settings = connection.settings
    target = await connection.call("which boots it offers", lambda system: _offered(connection, system))
    refusals: list[str] = []
    for kind in (EVERY_TIME, ONCE) if every_time else (ONCE, EVERY_TIME):
        try:
            await connection.call(f"to boot {target} ({kind})", _setting(settings, target, kind))
        except Refused as error:
            refusals.append(str(error))
            continue
        seen = await _read_until(connection, lambda it: it.from_network and it.target == target)
        if seen.enabled is None and seen.target is None:
            await say(
                f"{connection.where} does not report what it boots next, so it is not known whether it accepted "
                f"`{kind}`"
            )
            return kind
        if seen.from_network and seen.target == target and seen.enabled:
            if seen.enabled == EVERY_TIME:
                await say(f"{connection.where} boots from the network every time until it is installed, not just once")
            return seen.enabled
        refusals.append(
            f"{connection.where} accepted {target} ({kind}), but then reported {seen.target} ({seen.enabled})"
        )
    if await boot_order.network_first(connection, mac):
        await say(f"{connection.where} has the network first in its boot order until it is installed")
        return ORDER
    raise RemoteError(
        f"{connection.where} cannot be made to boot from the network: {'; '.join(refusals)}. Set another "
        "`bootMethod` in `bmcs`, update its firmware, or put the network first in its boot order by hand"
    )


def _offered(connection: Connection, system: Any) -> str:
    """The Redfish target of the boot method, if the System offers it. Raises RemoteError."""
    method = connection.settings.boot_method
    target = _TARGETS[method]
    offered: list[str] = list((system.boot or {}).get("allowed_values") or ())
    if target == "Cd" and "Cd" not in offered and "UsbCd" in offered:
        return "UsbCd"
    if offered and target not in offered:
        others = [other for other, each in _TARGETS.items() if each in offered]
        remedy = f"set `bootMethod` to {' or '.join(others)}" if others else "update its firmware"
        raise RemoteError(
            f"{connection.where} does not offer {target}, which `bootMethod: {method}` needs, but "
            f"{', '.join(offered)}: {remedy}"
        )
    return target


def _setting(settings: BmcSettings, target: str, kind: str) -> Any:
    def set_it(system: Any) -> None:
        import sushy

        mode = "uefi" if settings.boot_method == "uefi-http" else settings.boot_mode
        options = quirks.boot_options(
            system,
            sushy.BootSourceOverrideEnabled(kind),
            None if mode is None else sushy.BootSourceOverrideMode(_MODES[mode]),
        )
        system.set_system_boot_options(
            sushy.BootSource(target),
            http_boot_uri=settings.boot_url if settings.boot_method == "uefi-http" else None,
            **options,
        )

    return set_it


async def _read_until(connection: Connection, fits: Callable[[Override], bool]) -> Override:
    """Read the override until it fits, a few times."""
    for _ in range(_READS):
        seen = await read(connection)
        if fits(seen):
            return seen
        await backoff.clock.sleep(0.5)
    return await read(connection)


async def ignored(connection: Connection, before: Override, patience: Patience) -> bool:
    """Whether a BMC visibly ignored a one-time boot from the network after a reset.

    A BMC removes a one-time boot that it used. If it is still listed although the operating system has started since,
    it was ignored. If the BMC does not report the progress of the boot, that is unknown, and the answer is False.
    """
    waiting = Backoff(timeout=patience.post)
    started: float | None = None
    moved = False
    while not waiting.over:
        now = await read(connection)
        if now.enabled != ONCE:
            return False
        if now.progress[0] is None and waiting.elapsed >= patience.telling:
            return False
        moved = moved or now.progress != before.progress
        if moved and now.progress[0] in _STARTED:
            started = waiting.elapsed if started is None else started
            if waiting.elapsed - started >= min(_LEFT_OVER, patience.telling):
                return True
        await waiting.pause()
    return False


async def withdraw(connection: Connection, say: Say) -> None:
    """Make all later boots come from the disk, whatever was set before."""
    seen = await read(connection)
    if seen.from_network:
        await _to_disk(connection)
    await boot_order.restore(connection, say)


async def _to_disk(connection: Connection) -> None:
    refusals: list[str] = []
    for target, kind in ((None, "Disabled"), ("Hdd", EVERY_TIME)):
        try:
            await connection.call(f"to boot {target or 'as usual'} ({kind})", _unsetting(target, kind))
        except Refused as error:
            refusals.append(str(error))
            continue
        seen = await _read_until(connection, lambda it: not it.from_network)
        if not seen.from_network:
            return
        refusals.append(f"{connection.where} accepted {kind}, but then reported {seen.target} ({seen.enabled})")
    raise RemoteError(
        f"{connection.where} still boots from the network: {'; '.join(refusals)}. Remove its boot override by hand, "
        "and run the same command again"
    )


def _unsetting(target: str | None, kind: str) -> Any:
    def set_it(system: Any) -> None:
        import sushy

        options = quirks.boot_options(system, sushy.BootSourceOverrideEnabled(kind), None)
        # Firmware that requires all fields together also requires a target.
        source = target or ("None" if "mode" in options else None)
        system.set_system_boot_options(None if source is None else sushy.BootSource(source), **options)

    return set_it
