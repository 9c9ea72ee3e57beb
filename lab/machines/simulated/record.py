"""What a simulated machine's directory says of it when nobody runs it: what it is, and whether it is up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from lab.machines.base import MachineSpec

NAME = "machine.json"
_SPEC = TypeAdapter(MachineSpec)


def saved(directory: Path) -> MachineSpec | None:
    """The specification of a machine that a former process had; None for a directory without it."""
    path = directory / NAME
    return _SPEC.validate_python(json.loads(path.read_text())["spec"]) if path.exists() else None


def is_up_at(directory: Path, address: str) -> bool:
    """Whether the machine is up, and has the address."""
    path = directory / NAME
    told: Any = json.loads(path.read_text()) if path.exists() else {"state": "off"}
    return told["state"] == "up" and address in [each["address"] for each in told["spec"]["addresses"]]
