"""What is wrong with a simulated machine's system, by request: its clock, its network, the name that DHCP gives it.

It is a file in the machine's directory, which is read at each question: `python -m lab quirk` writes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

_FILE = "quirks.json"


@dataclass(frozen=True, kw_only=True)
class Quirks:
    """Without any, all is well."""

    clock_ahead: float = 0.0
    """Seconds that its clock is ahead; it is not synchronised then."""
    mtu: int = 1500
    """The MTU of its network card, bytes."""
    hostname: str = ""
    """The host name from DHCP; empty: its own name."""


_QUIRKS = TypeAdapter(Quirks)


def load(directory: Path) -> Quirks:
    """The quirks of the machine in a directory."""
    path = directory / _FILE
    return _QUIRKS.validate_json(path.read_bytes()) if path.exists() else Quirks()


def save(directory: Path, quirks: Quirks) -> None:
    """Save the quirks of a machine, which may not exist yet."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / _FILE).write_bytes(_QUIRKS.dump_json(quirks))
