"""Files that hold what was rendered when somebody last looked; METAL_IPI_UPDATE_GOLDEN=1 writes them anew."""

from __future__ import annotations

import json
import os
from pathlib import Path

_FOLDER = Path(__file__).parent
_UPDATE = "METAL_IPI_UPDATE_GOLDEN"


def check(name: str, text: str) -> None:
    """Compare a rendered text with the golden file of that name."""
    path = _FOLDER / name
    if os.environ.get(_UPDATE) == "1":
        path.write_text(text)
    assert path.is_file(), f"there is no golden file {name}; {_UPDATE}=1 writes it"
    assert text == path.read_text(), f"{name} has changed; if that is meant, {_UPDATE}=1 writes it anew"


def check_json(name: str, text: str) -> None:
    """Compare a JSON document, indented for whoever reads the file; the order of keys counts."""
    check(name, json.dumps(json.loads(text), indent=2) + "\n")
