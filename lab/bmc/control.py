"""The lab's control socket for a rack, in the state directory: one JSON document in, one out.

    {"do": "servers"}                                          power, boots and faults of every server
    {"do": "power", "server": NAME, "to": TO, "seconds": N}    off, on, cycle, shutdown, loss (N seconds), bmc-reboot
    {"do": "boot", "server": NAME, "target": T, "enabled": E}  the boot source override, in Redfish's words
    {"do": "hardware", "server": NAME, "memory_gib": N, "cpus": N, "disk_gib": N, "tpm": T, "link": B,
     "health": {PART: HEALTH}, "same_as": NAME, "secure_boot": B, "raid_on_reset": B, "dell": B}
        what its BMC tells (lab.bmc.told.Told), whether Secure Boot is on (in UEFI mode then), whether volumes change
        when the server restarts, and whether it is an iDRAC; what is not given stays; 0 GiB of memory: it does not
        tell; 0 GiB of disk: as at first; `same_as`: whose UUID and serial number it tells
    {"do": "fault", "server": NAME, "fault": {"kind": ...}}    see lab.bmc.faults
    {"do": "clear", "server": NAME}                            no faults any more
`server` may be `all`.
"""

from __future__ import annotations

import asyncio
import json
import socket
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab.bmc import faults
from lab.bmc.faults import Refused
from lab.bmc.names import LOSS_SECONDS, POWERS
from lab.errors import LabError
from lab.layout import Layout, short_path
from lab.machines.base import BackendError

if TYPE_CHECKING:
    from lab.bmc.rack import Bmc, Rack

_NAME = "control"
_SECONDS = 60.0


def ask(layout: Layout, request: dict[str, Any]) -> Any:
    """Ask a running rack; raises LabError with its refusal, or because it does not answer."""
    try:
        with short_path(layout.rack, _NAME) as path, socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(_SECONDS)
            connection.connect(path)
            connection.sendall(json.dumps(request).encode() + b"\n")
            answer: dict[str, Any] = json.loads(connection.makefile().readline() or "{}")
    except FileNotFoundError as error:
        raise LabError(f"no rack runs in {layout.state}: start one with `python -m lab up --rack N`") from error
    except OSError as error:
        raise LabError(f"the rack in {layout.state} does not answer: {error}") from error
    if "error" in answer:
        raise LabError(answer["error"])
    return answer["answer"]


class Control:
    """The server side of the socket, in the service's event loop."""

    def __init__(self, rack: Rack, directory: Path) -> None:
        self._rack = rack
        self._directory = directory
        self._server: asyncio.AbstractServer | None = None

    async def open(self) -> None:
        """Listen."""
        (self._directory / _NAME).unlink(missing_ok=True)
        listening = socket.socket(socket.AF_UNIX)
        with short_path(self._directory, _NAME) as path:
            listening.bind(path)
        self._server = await asyncio.start_unix_server(self._serve, sock=listening)

    async def close(self) -> None:
        """Stop."""
        if self._server is not None:
            self._server.close()
            (self._directory / _NAME).unlink(missing_ok=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            answer: dict[str, Any] = {"answer": await self.do(json.loads(await reader.readline()))}
        except (Refused, BackendError, ValueError, TypeError) as error:
            answer = {"error": str(error)}
        writer.write(json.dumps(answer).encode() + b"\n")
        writer.close()

    async def do(self, request: dict[str, Any]) -> Any:
        """Carry out one request; raises Refused and BackendError."""
        from lab.bmc.server import Override

        kind = request.get("do")
        if kind == "servers":
            return {name: await _shown(bmc) for name, bmc in self._rack.bmcs.items()}
        chosen = self._chosen(str(request.get("server")))
        if kind == "fault":
            for bmc in chosen:
                bmc.server.faults.active.append(faults.parse(dict(request["fault"])))
        elif kind == "clear":
            for bmc in chosen:
                bmc.server.faults.active.clear()
        elif kind == "boot":
            wanted = Override(enabled=str(request.get("enabled")), target=str(request.get("target")))
            for bmc in chosen:
                bmc.server.set_override(wanted)
        elif kind == "hardware":
            for bmc in chosen:
                self._set_hardware(bmc, request)
        elif kind == "power":
            seconds = float(request.get("seconds") or LOSS_SECONDS)
            await asyncio.gather(*(_power(bmc, str(request.get("to")), seconds) for bmc in chosen))
        else:
            raise Refused(f"do: {kind!r} is not one of servers, power, boot, hardware, fault, clear")
        return {bmc.identity.name: await _shown(bmc) for bmc in chosen}

    def _set_hardware(self, bmc: Bmc, request: dict[str, Any]) -> None:
        given = {key: value for key, value in request.items() if value is not None}
        changes = {key: given[key] for key in ("tpm", "link") if key in given}
        changes["health"] = {**bmc.server.settings.told.health, **given.get("health", {})}
        changes |= {key: float(given[key]) or None for key in ("memory_gib", "disk_gib") if key in given}
        if "cpus" in given:
            changes["cpus"] = int(given["cpus"])
        if "same_as" in given:
            other, *more = self._chosen(str(given["same_as"]))
            if more:
                raise Refused("same_as: name one server")
            changes |= {"uuid": other.identity.uuid, "serial": other.identity.serial}
        bmc.server.set_told(**changes)
        work = bmc.server.settings.work
        bmc.server.set_kind(
            raid_on_reset=bool(given.get("raid_on_reset", work.on_reset)),
            dell=bool(given.get("dell", bmc.server.settings.dell)),
        )
        if "secure_boot" in given:
            if given["secure_boot"]:
                bmc.server.set_mode("UEFI")
            bmc.server.set_secure_boot(bool(given["secure_boot"]))

    def _chosen(self, name: str) -> list[Bmc]:
        bmcs = self._rack.bmcs
        if name != "all" and name not in bmcs:
            raise Refused(f"there is no {name}; there are {', '.join(bmcs)}, or all")
        return list(bmcs.values()) if name == "all" else [bmcs[name]]


async def _power(bmc: Bmc, to: str, seconds: float) -> None:
    resets = {"off": "ForceOff", "on": "On", "cycle": "ForceRestart", "shutdown": "GracefulShutdown"}
    if to in resets:
        await bmc.server.reset(resets[to])
    elif to == "loss":
        await bmc.server.lose_power(seconds)
        bmc.restart()
    elif to == "bmc-reboot":
        bmc.restart()
    else:
        raise Refused(f"to: {to!r} is not one of {', '.join(POWERS)}")


async def _shown(bmc: Bmc) -> dict[str, Any]:
    settings = bmc.server.settings
    return {
        "power": await bmc.server.power(),
        "mains": not bmc.server.lost_power,
        "override": settings.override.target if settings.override.enabled != "Disabled" else "",
        "mode": settings.mode,
        "medium": settings.medium,
        **asdict(settings.told),
        "secure_boot": settings.secure_boot,
        "boots": settings.boots,
        "faults": [faults.show(fault) for fault in bmc.server.faults.active],
    }
