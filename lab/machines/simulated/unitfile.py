"""systemd unit files, as far as simulated machines run them: pure parsing."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

_SYSTEM = "etc/systemd/system"
_VARIABLE = re.compile(r"\$\{(\w+)\}|\$(\w+)\b")
SSH_UNITS = ("ssh.service", "sshd.service")


@dataclass
class UnitFile:
    """A unit with its drop-ins applied: (section, key) → values in order."""

    name: str
    values: dict[tuple[str, str], list[str]] = field(default_factory=dict[tuple[str, str], "list[str]"])

    def all(self, section: str, key: str) -> list[str]:
        """Every value of a key."""
        return self.values.get((section, key), [])

    def last(self, section: str, key: str, default: str = "") -> str:
        """The value that counts for a key that takes one."""
        return (self.all(section, key) or [default])[-1]

    def names(self, section: str, key: str) -> list[str]:
        """The words of a list of units."""
        return [name for value in self.all(section, key) for name in value.split()]

    def feed(self, text: str) -> None:
        """Read a file; an empty assignment forgets what came before, as in systemd."""
        section = ""
        for raw in text.replace("\\\n", " ").splitlines():
            line = raw.strip()
            if not line or line[0] in "#;":
                continue
            if line.startswith("["):
                section = line.strip("[]")
                continue
            key, _, value = line.partition("=")
            place = (section, key.strip())
            if value.strip():
                self.values.setdefault(place, []).append(self._specified(value.strip()))
            else:
                self.values[place] = []

    def _specified(self, value: str) -> str:
        base = self.name.rpartition(".")[0]
        prefix, _, instance = base.partition("@")
        known = {"%n": self.name, "%N": base, "%p": prefix, "%i": instance, "%I": instance, "%%": "%"}
        return re.sub(r"%[nNpiI%]", lambda match: known[match.group(0)], value)


def load(root: Path, name: str) -> UnitFile | None:
    """A unit of a machine; None when there is no file for it or it is masked."""
    directory = root / _SYSTEM
    prefix, at, rest = name.partition("@")
    template = f"{prefix}@.{rest.rpartition('.')[2]}" if at else name
    path = next((directory / entry for entry in (name, template) if (directory / entry).is_file()), None)
    if path is None or is_masked(root, name):
        return None
    unit = UnitFile(name)
    unit.feed(path.read_text())
    for dropin in sorted((directory / f"{name}.d").glob("*.conf")):
        unit.feed(dropin.read_text())
    return unit


def is_masked(root: Path, name: str) -> bool:
    """Whether a unit must not start."""
    path = root / _SYSTEM / name
    return path.is_symlink() and str(path.readlink()) == "/dev/null"


def enabled(root: Path) -> list[str]:
    """Units that Ignition's preset file enables; the last word on a unit counts."""
    preset = root / "etc/systemd/system-preset/20-ignition.preset"
    verdicts: dict[str, bool] = {}
    for line in preset.read_text().splitlines() if preset.exists() else []:
        verb, _, name = line.partition(" ")
        verdicts[name] = verb == "enable"
    return [name for name, verdict in verdicts.items() if verdict]


def wanted(root: Path) -> dict[str, UnitFile | None]:
    """Enabled units and what they pull in; None for those that have no file here (they belong to the image)."""
    result: dict[str, UnitFile | None] = {}
    queue = enabled(root)
    while queue:
        name = queue.pop(0)
        if name in result:
            continue
        unit = result[name] = load(root, name)
        if unit is not None:
            queue += [*unit.names("Unit", "Requires"), *unit.names("Unit", "Wants")]
    return result


def order(units: Mapping[str, UnitFile]) -> dict[str, set[str]]:
    """What comes before each of some units, among them: as they say it of themselves, or others of them.

    A target comes after all that it pulls in, and after what has itself pulled in by it.
    """
    before: dict[str, set[str]] = {name: set() for name in units}

    def add(first: str, then: str) -> None:
        if first in units and then in units and first != then and then not in before[first]:
            before[then].add(first)

    for name, unit in units.items():
        for other in unit.names("Unit", "After"):
            add(other, name)
        for other in unit.names("Unit", "Before"):
            add(name, other)
        for other in (*unit.names("Install", "WantedBy"), *unit.names("Install", "RequiredBy")):
            if other.endswith(".target"):
                add(name, other)
        if name.endswith(".target"):
            for other in (*unit.names("Unit", "Requires"), *unit.names("Unit", "Wants")):
                add(other, name)
    return before


def environment(unit: UnitFile, root: Path) -> dict[str, str]:
    """`Environment=` and `EnvironmentFile=`, and what every service gets (`DefaultEnvironment=`). Files that are
    missing count only without `-`."""
    result: dict[str, str] = {}
    manager = UnitFile("system.conf")
    for path in sorted((root / "etc/systemd/system.conf.d").glob("*.conf")):
        manager.feed(path.read_text())
    for value in (*manager.all("Manager", "DefaultEnvironment"), *unit.all("Service", "Environment")):
        for word in shlex.split(value):
            key, _, text = word.partition("=")
            result[key] = text
    for value in unit.all("Service", "EnvironmentFile"):
        path = root / value.lstrip("-").lstrip("/")
        if not path.exists() and value.startswith("-"):
            continue
        for line in path.read_text().splitlines():
            if line.strip() and line.strip()[0] not in "#;":
                key, _, text = line.strip().partition("=")
                result[key] = " ".join(shlex.split(text))
    return result


def arguments(line: str, variables: dict[str, str]) -> tuple[list[str], bool]:
    """The words of an Exec line and whether its failure is ignored (`-`)."""
    stripped = line.lstrip("-@:+!")
    ignored = "-" in line[: len(line) - len(stripped)]
    words: list[str] = []
    for word in shlex.split(stripped):
        whole = re.fullmatch(r"\$(\w+)", word)
        if whole:
            words += variables.get(whole.group(1), "").split()
        else:
            words.append(_VARIABLE.sub(lambda m: variables.get(m.group(1) or m.group(2), ""), word))
    return words, ignored
