"""Runs a page as its reader would, from top to bottom."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

import pytest

from tests.docs.declared import INSTEAD
from tests.docs.pages import SHELLS, Block, Page, pages
from tests.docs.scenes import Scene, scene
from tests.docs.terminal import Ran

_COLUMN = 12.2
"""How wide rich draws a character."""


_LONG = ("facility", "first-cluster", "gates", "operating", "preflight", "redfish", "sweep", "testing")
_AT_NIGHT = ("README.md", *(f"docs/{name}.md" for name in _LONG))
"""Pages whose commands take long, and which tests/end_to_end gives for the most part, too."""


def with_commands(*scenes: str, at_night: bool = False) -> list[Any]:
    """The names of the pages that have commands, and are run in these scenes: those of every run, or of the night."""
    names = [page.name for page in pages() if page.commands and page.scene in scenes]
    marks = [pytest.mark.nightly] * at_night
    return [pytest.param(name, id=name, marks=marks) for name in names if (name in _AT_NIGHT) == at_night]


def run(name: str, directory: Path) -> list[Ran]:
    """Run a page's commands in a fresh scene; what each printed. Raises AssertionError for one that is not as told."""
    with scene(_page(name).scene, directory) as where:
        return run_in(name, where)


def run_in(name: str, where: Scene) -> list[Ran]:
    """The same in a scene in which other pages were run."""
    page = _page(name)
    ran: list[Ran] = []
    for block in page.blocks:
        for given in block.all("given"):
            assert given in where.givens, f"{block}: the scene {page.scene} has no '{given}'"
            where.givens[given]()
        for taken in block.all("take"):
            text, _, pattern = taken.partition(" = ")
            found = re.search(pattern, ran[-1].printed)
            assert found, f"{block}: there is no {pattern} in:\n{ran[-1].printed}"
            where.said[text] = found[1]
        for written in block.all("file"):
            (where.project.root / written).write_text(f"{block.text}\n")
        for held in block.all("holds"):
            assert (where.project.root / held).read_text() == f"{block.text}\n", f"{block}: {held} is another"
        file = block.one("edit")
        if file is not None:
            where.edit(block, file)
        elif block.language in SHELLS:
            ran += _run(block, where)
    return ran


def _page(name: str) -> Page:
    (page,) = (page for page in pages() if page.name == name)
    return page


def _run(block: Block, where: Scene) -> list[Ran]:
    names = [name.strip() for name in (block.one("stdin") or "").split(",") if name.strip()]
    fails = block.one("fails") is not None
    commands = block.commands
    assert len(names) <= len(commands), f"{block}: more to read than commands"
    ran: list[Ran] = []
    for number, command in enumerate(commands):
        instead = INSTEAD.get(command)
        text = where.translate(instead.run if instead else command)
        done = where.terminal.run(text, where.values[names[number]] if number < len(names) else "")
        bad = fails and number == len(commands) - 1
        assert (done.status != 0) == bad, f"{block}: `{text}` ended with {done.status}:\n{done.printed}"
        ran.append(done)
    printed = "\n".join(done.printed for done in ran)
    for expected in block.all("expect"):
        assert re.search(where.translate(expected), printed, re.MULTILINE), f"{block}: no {expected} in:\n{printed}"
    for line in block.printed:
        assert squeezed(line) in squeezed(printed), f"{block}: no '{line}' in:\n{printed}"
    return ran


def squeezed(text: str) -> str:
    """A text without what differs between two runs: numbers, digests, where it was run, lengths of lines and spaces."""
    text = re.sub(r"[0-9a-f]{12,}|\d+(\.\d+)*", "0", re.sub(r"\(\S*/\.state/lab\)", "(.state/lab)", text))
    return re.sub(r"[\s━─┬┴┳┻╇]+", " ", text).strip()


def drawn(picture: Path) -> list[str]:
    """The lines of text of a picture that tools/capture.py has drawn."""
    rows: dict[float, str] = {}
    for tag, text in re.findall(r"(<text [^>]*)>([^<]*)</text>", picture.read_text()):
        place = {name: float(value) for name, value in re.findall(r' (x|y)="([\d.]+)"', tag)}
        line = rows.get(place["y"], "").ljust(round(place["x"] / _COLUMN))
        rows[place["y"]] = line + html.unescape(text).replace("\xa0", " ")
    return [rows[y].rstrip() for y in sorted(rows)]
