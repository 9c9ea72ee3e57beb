"""Reads the installer's files as the installer does, with the line number of every value."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import yaml

from tools.errors import StackError

Tree = dict[str, Any]
_MOST = 100_000
"""Maximum number of values in a file: a few lines with aliases can expand to millions."""


class _Loader(yaml.SafeLoader):
    """A YAML loader without dates and base-60 numbers, which Go's YAML reader does not have: some MAC addresses look
    like them."""


_Loader.yaml_implicit_resolvers = {}
for _tag, _form, _first in (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"(?i:true|false|yes|no|on|off)", list("tTfFyYnNoO")),
    ("int", r"[-+]?(0|[1-9][0-9]*)", list("-+0123456789")),
    ("merge", r"<<", ["<"]),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(rf"^(?:{_form})$"), _first)
# An explicit tag also sets a type. Dates and bytes are removed, because a stack file cannot have them. The key None is
# for unknown tags.
_Loader.yaml_constructors = {
    tag: construct
    for tag, construct in yaml.SafeLoader.yaml_constructors.items()
    if tag is None or tag.rpartition(":")[2] in ("null", "bool", "int", "str")
}


@dataclass(frozen=True, kw_only=True)
class Document:
    """One file."""

    path: Path
    tree: Tree
    lines: dict[str, int]
    """Path of a value, such as `platform.baremetal.hosts[0].role`, to its line number."""

    @property
    def name(self) -> str:
        """The name of the file in messages."""
        return str(self.path)

    def at(self, where: str) -> Any:
        """The value at a path; None if there is none."""
        value: Any = self.tree
        for part in parts(where):
            if isinstance(part, int):
                value = value[part] if isinstance(value, list) and part < len(cast("list[Any]", value)) else None
            else:
                value = cast(Tree, value).get(part) if isinstance(value, dict) else None
        return value


def is_list(value: Any) -> bool:
    """Whether the value is a list, without telling the type checker of what."""
    return isinstance(value, list)


def parts(where: str) -> list[str | int]:
    """The parts of a path."""
    return [int(index) if index else name for name, index in re.findall(r"([^.\[\]]+)|\[(\d+)\]", where)]


def unreadable(path: Path, *causes: str) -> StackError:
    """The error for an unreadable file; each cause names its line."""
    return StackError(
        f"{path} cannot be read", why="\n       ".join(causes), remedy="correct it: the installer refuses it, too"
    )


_QUOTED = re.compile(r"'([^']*)'")


def _hidden(quoted: re.Match[str]) -> str:
    """Hides quoted text of a YAML error: an alleged alias or tag may be a password. Very short texts and `<stream end>`
    cannot be one."""
    return quoted[0] if len(quoted[1]) < 3 or quoted[1].startswith("<") else "'...'"


def read(path: Path) -> Document:
    """Reads a file. Raises StackError with the file, and line and cause of everything that cannot be read."""
    try:
        loader = _Loader(path.read_text())
        node = loader.get_single_node()
        reader = _Reader(loader)
        tree = reader.value(node, "") if node is not None else None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise unreadable(path, f"line {line}: {_QUOTED.sub(_hidden, str(error.problem))}") from None
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        raise unreadable(
            path, "aliases in a circle, or nested too deeply" if isinstance(error, RecursionError) else str(error)
        ) from None
    if not isinstance(tree, dict):
        raise unreadable(path, "line 1: it is not a mapping")
    if reader.twice:
        raise unreadable(path, *reader.twice)
    return Document(path=path, tree=cast(Tree, tree), lines=reader.lines)


class _Reader:
    """Converts YAML nodes to plain values."""

    def __init__(self, loader: _Loader) -> None:
        self._loader = loader
        self.lines: dict[str, int] = {}
        self.twice: list[str] = []
        self._seen = 0

    def value(self, node: yaml.Node, where: str) -> Any:
        self._seen += 1
        if self._seen > _MOST:
            raise ValueError(f"it has more than {_MOST} values")
        self.lines.setdefault(where, node.start_mark.line + 1)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(each, f"{where}[{number}]") for number, each in enumerate(node.value)]
        if not isinstance(node, yaml.MappingNode):
            try:
                return cast(Any, self._loader.construct_object(node))  # pyright: ignore[reportUnknownMemberType]
            except (LookupError, ValueError):
                why = "it is not a value of its type"
                raise yaml.constructor.ConstructorError(problem=why, problem_mark=node.start_mark) from None
        own = [str(key.value) for key, _ in node.value if key.tag != "tag:yaml.org,2002:merge"]
        line = node.start_mark.line + 1
        self.twice += [f"line {line}: '{key}' is there twice" for key in sorted({k for k in own if own.count(k) > 1})]
        self._loader.flatten_mapping(node)
        found: Tree = {}
        for key, each in node.value:
            place = f"{where}.{key.value}" if where else str(key.value)
            self.lines[place] = key.start_mark.line + 1
            found[str(key.value)] = self.value(each, place)
        return found
