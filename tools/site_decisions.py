"""A hook of mkdocs (`mkdocs.yml`): adds the decision records to the navigation, so that it need not list them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

SECTION = "Decisions"
FOLDER = "adr"


def on_config(config: Any) -> Any:
    """Adds the records in the order of their numbers. The title of a page is its first heading."""
    records = sorted(Path(config["docs_dir"], FOLDER).glob("*.md"))
    for item in config["nav"]:
        if SECTION in item:
            item[SECTION] = [f"{FOLDER}/{record.name}" for record in records]
    return config
