"""What a simulated machine finds around itself."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

Progress = Callable[[str, str], Awaitable[None]]
"""Told of each step of an installation: the machine's id, what was written; it may take its time."""


async def at_once(_machine_id: str, _step: str) -> None:
    """An installation that nothing delays."""


_METADATA = "https://metadata.packet.net"
"""Built into Ignition's and Afterburn's packet providers."""


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """Settings that are the same for all machines of a facility."""

    ca: Path
    """The authority of publicly trusted names, which the image trusts; of the facility's own it knows nothing."""
    boot_server: str
    """The server from which the firmware loads /ipxe/<id>, unless DHCP names another boot file."""
    lab_openshift: Path
    """The program lab-openshift: the image has it, and by other names it asks the hardware."""
    base_config: str = ""
    """What the image adds to machines' Ignition configs, JSON."""
    ssh_port: int = 22
    metadata: str = _METADATA
    boot_delay: float = 0.3
    """Seconds of firmware self test."""
    boot_retry: float = 5.0
    """Seconds until firmware that found nothing to boot begins again."""
    progress: Progress = at_once
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
