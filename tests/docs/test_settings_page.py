"""The reference of settings is what the generator makes of the models, and has all of them."""

from __future__ import annotations

import re

from tests.docs.pages import DOCS, ROOT
from tools import settings_reference

_WITHOUT_UNIT = {
    "aggregationLength", "count", "cpus", "first", "hostPrefix", "installation", "maxUnavailable", "overprovisionRatio",
    "peersPerNode", "perStack", "port", "prefix", "replicas", "reserve", "threshold", "vlan",
}  # fmt: skip
"""Numbers that count things, or name them."""


def test_the_page_is_up_to_date() -> None:
    page = ROOT / settings_reference.DOCUMENT
    assert page.read_text() == settings_reference.document(), "run `python -m tools.settings_reference`"
    hub = ROOT / settings_reference.HUB_DOCUMENT
    assert hub.read_text() == settings_reference.hub_document(), "run `python -m tools.settings_reference`"


def test_every_setting_is_there() -> None:
    text = (DOCS / "settings.md").read_text()
    paths = list(settings_reference.paths())
    assert len(paths) > 150
    assert [path for path in paths if not path.endswith(".type") and f"`metal-ipi:{path}`" not in text] == []


def test_every_setting_says_what_it_is() -> None:
    rows = re.findall(r"^\| `(?:metal-ipi:)(\S+)` \|.*\| (.*) \|$", (DOCS / "settings.md").read_text(), re.MULTILINE)
    assert [path for path, text in rows if not text.strip()] == []


def test_every_number_has_a_unit_or_needs_none() -> None:
    text = (DOCS / "settings.md").read_text()
    rows = re.findall(r"^\| `metal-ipi:(\S+)` \| (?:whole )?number(?!s)( \(.*?\))?", text, re.MULTILINE)
    assert {path.rpartition(".")[2] for path, unit in rows if not unit} == _WITHOUT_UNIT
