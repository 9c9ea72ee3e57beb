"""The page about gates knows every kind, every gate and every timeout that there is."""

from __future__ import annotations

import re

from metal_ipi.provider.resources.gate_kinds import KINDS
from metal_ipi.stacks.sections.install import Timeouts
from tests.docs.pages import DOCS, ROOT

_TEXT = (DOCS / "gates.md").read_text()
_TABLE = _TEXT[_TEXT.index("## The gates") : _TEXT.index("## What to do")]
_TROUBLE = _TEXT[_TEXT.index("## What to do") : _TEXT.index("## Rehearse")]


def test_kinds() -> None:
    """In the table of gates, and in the one of what to do."""
    assert set(re.findall(r"^\| `.*?` \| `([a-z-]+)` \|", _TABLE, re.MULTILINE)) == set(KINDS)
    assert re.findall(r"^\| `([a-z-]+)` \|", _TROUBLE, re.MULTILINE) == list(
        dict.fromkeys(re.findall(r"^\| `([a-z-]+)` \|", _TROUBLE, re.MULTILINE))
    )
    assert set(re.findall(r"^\| `([a-z-]+)` \|", _TROUBLE, re.MULTILINE)) == set(KINDS)


def test_names() -> None:
    """All that the committed stacks have, and no other; kube-vip's is in none of the snapshots."""
    snapshots = (ROOT / "tests" / "golden").glob("urns-*.txt")
    there = {name for file in snapshots for name in re.findall(r"index:Gate::([a-z0-9-]+)", file.read_text())}
    rows = re.findall(r"^\| (`.*?`) \| `[a-z-]+` \|", _TABLE, re.MULTILINE)
    told = {name for row in rows for name in re.findall(r"`([a-z-]+)`", row)}
    assert told == there | {"api-address-announced"}


def test_timeouts() -> None:
    names = {field.alias for field in Timeouts.model_fields.values()}
    assert set(re.findall(r"`timeouts\.(\w+)`", _TEXT)) == names
