"""The settings of a committed stack as a program in another language writes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.stacks.answers import settings

_ROOT = Path(__file__).resolve().parents[2]


def tree(stack: str = "da11", **changes: Any) -> dict[str, Any]:
    """Whole, with what whoever runs it adds; files are named by absolute paths, for the program is elsewhere."""
    found = {key: _value(text) for key, text in settings(stack, **changes).items()}
    if "streamFile" in found["boot"]:
        found["boot"]["streamFile"] = str(_ROOT / found["boot"]["streamFile"])
    return found


def _value(text: str) -> Any:
    return json.loads(text) if text[:1] in "{[" or text in {"true", "false"} else text
