"""The groups of tests that `python -m tests` runs beside each other, and the files that each of them reads.

To read a file of tests costs processor time, most of it for what it imports: no process reads a file that has nothing
for it. A test's markers say of which group it is; a file says by their names which ones its tests have.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Set
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

_TESTS = Path(__file__).parent
_ROOT = _TESTS.parent
_LONGEST = _TESTS / "end_to_end"
_CONFORMANCE = _TESTS / "conformance"
"""Its tests have their marker from their conftest.py."""
_SHARED = {
    "engine": ("needs_engine", "ON_A_HUB"),
    "lab": ("ON_A_HUB",),
    "libvirt": ("ON_A_HUB",),
    "servers": ('"no_waiting"',),
}
"""How a file names lists of markers that files share, and the fixture that gives a marker to all who use it."""
_OF_ALL = re.compile(r"^pytestmark = .+?^(?=\S)", re.MULTILINE | re.DOTALL)
"""What all tests of a file have."""


@dataclass(frozen=True, kw_only=True)
class Group:
    """Tests that have one of some markers (without any such: whatever they have), and none of others."""

    wants: tuple[str, ...] = ()
    but: tuple[str, ...]

    @property
    def by_day(self) -> Group:
        """Without those of the night."""
        return replace(self, but=(*self.but, "nightly"))

    @property
    def expression(self) -> str:
        """What pytest's `-m` is given."""
        wanted = [f"({' or '.join(self.wants)})"] if self.wants else []
        return " and ".join([*wanted, *(f"not {marker}" for marker in self.but)])

    def files(self) -> list[str]:
        """The files that may have such tests, those that take longest first."""
        found = [path for path in sorted(_TESTS.rglob("test_*.py")) if self.reads(path)]
        found.sort(key=lambda path: not path.is_relative_to(_LONGEST))
        return [str(path.relative_to(_ROOT)) for path in found]

    def reads(self, file: Path) -> bool:
        """Whether a file is one of them."""
        return _reads(file, self.wants, self.but)

    def has(self, markers: Set[str]) -> bool:
        """Whether a test with these markers is one of the group."""
        return markers.isdisjoint(self.but) and not (self.wants and markers.isdisjoint(self.wants))


@cache
def _reads(file: Path, wants: tuple[str, ...], but: tuple[str, ...]) -> bool:
    text = file.read_text()
    of_all = _OF_ALL.search(text)
    if of_all and _names(of_all[0], but):
        return False
    if "conformance" in but and file.is_relative_to(_CONFORMANCE):
        return False
    return not wants or _names(text, wants)


def _names(text: str, markers: Iterable[str]) -> bool:
    return any(
        re.search(rf"\bmark\.{marker}\b", text) or any(name in text for name in _SHARED.get(marker, ()))
        for marker in markers
    )


_ELSEWHERE = ("libvirt", "conformance", "ironic")
_STARTERS = ("engine", "lab", "programs")
STARTING = Group(wants=_STARTERS, but=_ELSEWHERE)
"""They start the engine, labs or other programs."""
IRONIC = Group(wants=("ironic",), but=("libvirt",))
"""They run a real Ironic, and wait for it most of the time."""
EMULATED = Group(wants=("libvirt",), but=())
"""They boot emulated machines."""
REST = Group(but=(*_STARTERS, *_ELSEWHERE))
QUICK = Group(but=(*REST.but, "servers"))
"""The tests of `make check`."""
ALL = tuple(each for group in (STARTING, IRONIC, EMULATED, REST, QUICK) for each in (group, group.by_day))
