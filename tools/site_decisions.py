"""A hook of mkdocs (`mkdocs.yml`): lists the decision records in the navigation, so that a new one needs no line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

SECTION = "Decisions"
FOLDER = "adr"


def on_config(config: Any) -> Any:
    """Fill the section, in the order of the records' numbers; a page's title is its first heading."""
    records = sorted(Path(config["docs_dir"], FOLDER).glob("*.md"))
    for item in config["nav"]:
        if SECTION in item:
            item[SECTION] = [f"{FOLDER}/{record.name}" for record in records]
    return config
