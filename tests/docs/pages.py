"""Reads the documentation's pages: blocks of commands and of settings, what is said to the tests, headings, links.

What is said to the tests stands in HTML comments right before a block, which no reader sees:

    <!-- stdin: NAME, NAME -->    what its commands read, in their order (`-`: nothing); the scene knows the values
    <!-- expect: REGEX -->        must be found in what the block prints
    <!-- fails -->                its last command ends with another status than 0
    <!-- take: TEXT = REGEX -->   from here on TEXT stands for the REGEX's group in what was printed before
    <!-- given: NAME -->          something that the scene does first
    <!-- edit: FILE -->           a yaml block: its settings are written into the stack file
    <!-- file: FILE -->           the block is written into the file, as it stands
    <!-- holds: FILE -->          the block is what the file holds by now
    <!-- scene: NAME -->          anywhere: where the page's commands run; tests/docs/scenes.py has them
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
SHELLS = ("sh", "console")
_DIRECTIVES = ("stdin", "expect", "fails", "take", "given", "edit", "file", "holds", "scene")
_FENCE = re.compile(r"^( *)```(\w*)$")
_COMMENT = re.compile(r"^<!-- ([a-z]+)(?:: (.*))? -->$")
_LINK = re.compile(r"(!?)\[(?:[^\[\]]|\[[^\[\]]*\])*\]\(([^()\s]+(?:\([^()\s]*\)[^()\s]*)*)\)")


@dataclass(frozen=True, kw_only=True)
class Block:
    """A fenced block, and what is said to the tests about it."""

    page: str
    line: int
    language: str
    text: str
    said: tuple[tuple[str, str], ...] = field(default=())

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"

    def all(self, name: str) -> list[str]:
        """The values of a directive."""
        return [value for said, value in self.said if said == name]

    def one(self, name: str) -> str | None:
        """The value of a directive that stands there once at most."""
        found = self.all(name)
        assert len(found) <= 1, f"{self}: {name} is there twice"
        return found[0] if found else None

    @property
    def commands(self) -> list[str]:
        """The commands, as they are to be typed; continued lines joined, comments left out."""
        lines = self.text.replace("\\\n", " ").splitlines()
        if self.language == "console":
            lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
        bare = (re.sub(r"(^|\s)#\s.*$", "", line).strip() for line in lines)
        return [re.sub(r" {2,}", " ", line) for line in bare if line]

    @property
    def printed(self) -> list[str]:
        """What a `console` block shows that its commands print."""
        lines = self.text.splitlines() if self.language == "console" else []
        return [line for line in lines if not line.startswith("$ ") and line.strip()]


@dataclass(frozen=True, kw_only=True)
class Page:
    """One page."""

    name: str
    """Its path from the project's root."""
    text: str

    @property
    def scene(self) -> str:
        """Where its commands run."""
        found = [match[2] for line in self.text.splitlines() if (match := _COMMENT.match(line)) and match[1] == "scene"]
        assert len(found) <= 1, f"{self.name}: one scene"
        return found[0] if found else "user"

    @property
    def blocks(self) -> list[Block]:
        """Its fenced blocks, in order."""
        return list(_blocks(self))

    @property
    def commands(self) -> list[str]:
        """All its commands."""
        return [command for block in self.blocks if block.language in SHELLS for command in block.commands]

    @property
    def prose(self) -> str:
        """The page without its blocks."""
        kept: list[str] = []
        inside = False
        for line in self.text.splitlines():
            if _FENCE.match(line):
                inside = not inside
            elif not inside:
                kept.append(line)
        return "\n".join(kept)

    @property
    def anchors(self) -> set[str]:
        """What its headings are called in links: as mkdocs and the usual hosts of repositories make them."""
        found: dict[str, int] = {}
        for title in re.findall(r"^#{1,6} (.+)$", self.prose, re.MULTILINE):
            text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title)
            anchor = re.sub(r"[^\w\- ]", "", text.lower()).strip().replace(" ", "-")
            found[anchor] = found.get(anchor, 0) + 1
        return set(found)

    @property
    def links(self) -> list[str]:
        """Where its links and pictures lead."""
        code = re.compile(r"(`+).+?\1", re.DOTALL)
        return [match[2] for match in _LINK.finditer(code.sub("", self.prose))]


def pages() -> list[Page]:
    """README and everything below docs/, by name."""
    files = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
    return [Page(name=file.relative_to(ROOT).as_posix(), text=file.read_text()) for file in files]


def _blocks(page: Page) -> Iterator[Block]:
    said: list[tuple[str, str]] = []
    lines = page.text.splitlines()
    number = 0
    while number < len(lines):
        opened = _FENCE.match(lines[number])
        comment = _COMMENT.match(lines[number].strip())
        if opened:
            begin = number
            number += 1
            text: list[str] = []
            while lines[number].strip() != "```":
                text.append(lines[number].removeprefix(opened[1]))
                number += 1
            whole = "\n".join(text)
            yield Block(page=page.name, line=begin + 1, language=opened[2], text=whole, said=tuple(said))
            said = []
        elif comment:
            assert comment[1] in _DIRECTIVES, f"{page.name}:{number + 1}: nobody knows {comment[1]}"
            said += [] if comment[1] == "scene" else [(comment[1], comment[2] or "")]
        elif lines[number].strip():
            assert not said, f"{page.name}:{number + 1}: what is said to the tests stands right before a block"
        number += 1
