"""The stream of simulated machines, as the lab publishes it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lab.layout import Layout
from lab.network import stream


def published(directory: Path, architecture: str) -> tuple[Layout, dict[str, Any]]:
    """A lab's layout with the stream's files, and the formats in which the stream has an architecture's metal image."""
    layout = Layout.of(directory)
    layout.make()
    stream.publish(layout, "simulated")
    document = json.loads((layout.boot / "streams/lab.json").read_text())
    return layout, document["architectures"][architecture]["artifacts"]["metal"]["formats"]
