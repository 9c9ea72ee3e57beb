"""Write the schema: `python -m metal_ipi.schema`."""

from __future__ import annotations

import json
from pathlib import Path

from metal_ipi.provider import plugin
from metal_ipi.schema import schema

PATH = Path(plugin.__file__).with_name("schema.json")


def text() -> str:
    """The content of schema.json."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    PATH.write_text(text())
