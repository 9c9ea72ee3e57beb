"""The rooms and their doors: who may import whom, who reads configuration, and how large a module may be."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parents[1]
_ROOMS = ("components", "lab", "metal_ipi", "policy", "provider", "stacks", "tools")
# What a room may import of ours besides itself. Everything else is closed, so a new room has no door at all.
_DOORS = {
    "components": ("provider.types",),
    "stacks": ("components", "provider.types"),
    "metal_ipi": ("components", "provider", "stacks"),  # what other programs see
    "tools": ("policy", "stacks"),  # the lab is run as a command
    "lab": (),
    "policy": (),
    "provider": (),
}
_LONGEST = 330
# Modules that may be longer, and why. An entry that is not needed any more fails.
_LONGER = {
    "provider/types.py": "one declarative class per resource type, nothing else",
}
_MEASURED = ("components", "lab", "metal_ipi", "policy", "provider", "stacks", "tools")
_FOREIGN = {".git", ".venv", ".state", ".hypothesis", ".pytest_cache", ".ruff_cache", "__pycache__", "node_modules"}


def _files(folder: Path) -> Iterator[Path]:
    """All files of the project below a folder; not what tools leave behind."""
    for path in sorted(folder.iterdir()):
        if path.name in _FOREIGN:
            continue
        if path.is_dir() and not path.is_symlink():
            yield from _files(path)
        elif path.is_file():
            yield path


def _is_python(path: Path) -> bool:
    if path.suffix == ".py":
        return True
    with path.open("rb") as file:
        first = file.readline(80)
    return not path.suffix and first.startswith(b"#!") and b"python" in first


@cache
def _modules(room: str) -> dict[str, ast.Module]:
    """Path below the project and syntax tree of every Python file of a room, plug-in executables included."""
    folder = _ROOT / room
    paths = [path for path in _files(folder) if _is_python(path)] if folder.is_dir() else []
    return {path.relative_to(_ROOT).as_posix(): ast.parse(path.read_text()) for path in paths}


def _imports(path: str, tree: ast.Module) -> Iterator[str]:
    """Every module that a file imports, wherever in it, with `from a import b` as `a.b`; relative ones resolved."""
    package = path.split("/")[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            whole = ".".join([*base, *([node.module] if node.module else [])])
            yield from (f"{whole}.{alias.name}" for alias in node.names)


def _within(module: str, allowed: str) -> bool:
    return module == allowed or module.startswith(f"{allowed}.")


@pytest.mark.parametrize("room", _ROOMS)
def test_imports_go_through_the_doors(room: str) -> None:
    ours = {path.name for path in _ROOT.iterdir() if path.is_dir() and any(path.glob("*.py"))} | set(_ROOMS)
    wrong = [
        f"{path} imports {module}"
        for path, tree in _modules(room).items()
        for module in _imports(path, tree)
        if module.split(".")[0] in ours and not any(_within(module, allowed) for allowed in (room, *_DOORS[room]))
    ]
    assert wrong == []


def test_every_package_is_a_known_room() -> None:
    packages = {path.name for path in _ROOT.iterdir() if path.is_dir() and path.name not in _FOREIGN}
    with_code = {name for name in packages if any(_is_python(path) for path in _files(_ROOT / name))}
    assert with_code - {"tests"} <= set(_ROOMS)


_SOURCES = (
    ("import lab.world", ["lab.world"]),
    ("from provider import types", ["provider.types"]),
    ("from . import driver", ["components.install.driver"]),
    ("from ..boot import ipxe", ["components.boot.ipxe"]),
    ("def f():\n    from stacks.settings import load", ["stacks.settings.load"]),
    ("if TYPE_CHECKING:\n    import tools", ["tools"]),
)


@pytest.mark.parametrize(("source", "modules"), _SOURCES)
def test_imports_are_found_wherever_they_stand(source: str, modules: list[str]) -> None:
    assert list(_imports("components/install/x.py", ast.parse(source))) == modules


def _reads_configuration(path: str, tree: ast.Module) -> bool:
    names = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    touched = {*names, *_imports(path, tree)}
    return any(_within(name, closed) for name in touched for closed in ("pulumi.Config", "pulumi.runtime.config"))


def test_only_the_settings_read_configuration() -> None:
    found = [path for room in _ROOMS for path, tree in _modules(room).items() if _reads_configuration(path, tree)]
    assert found == ["stacks/settings.py"]


def test_modules_are_short() -> None:
    lengths = {path: len((_ROOT / path).read_text().splitlines()) for room in _MEASURED for path in _modules(room)}
    assert {path: length for path, length in lengths.items() if length > _LONGEST and path not in _LONGER} == {}
    assert [path for path in _LONGER if lengths.get(path, 0) <= _LONGEST] == [], "exceptions that are not needed"


def test_components_end_with_their_outputs() -> None:
    """`register_outputs`: once per component, at the end of its constructor, and never empty."""
    for path, tree in _modules("components").items():
        for item in ast.walk(tree):
            if not (isinstance(item, ast.ClassDef) and "ComponentResource" in map(_last_name, item.bases)):
                continue
            (constructor,) = (
                node for node in item.body if isinstance(node, ast.FunctionDef) and node.name == "__init__"
            )
            calls = [node for node in ast.walk(item) if isinstance(node, ast.Call)]
            (registering,) = (call for call in calls if ast.unparse(call.func) == "self.register_outputs")
            last = constructor.body[-1]
            assert isinstance(last, ast.Expr) and last.value is registering, f"{path}: {item.name}"
            (outputs,) = registering.args
            assert isinstance(outputs, ast.Dict) and outputs.keys, f"{path}: {item.name}"


def _last_name(node: ast.expr) -> str:
    return ast.unparse(node).rpartition(".")[2]


def test_type_tokens_are_their_own_and_name_their_room() -> None:
    tokens: list[tuple[str, str]] = []
    for path, tree in _modules("components").items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                tokens += [(node.value, path) for _ in re.findall(r"^metal-ipi:[a-z_]+:[A-Z]\w+$", node.value)]
    assert len({token for token, _ in tokens}) == len(tokens) >= 8
    assert [token for token, path in tokens if token.split(":")[1] != path.split("/")[1]] == []


def test_no_file_names_this_machine() -> None:
    """Absolute paths of the checkout, of its interpreter or of somebody's home work on one machine only."""
    places = {_ROOT, Path.home(), Path(sys.prefix)} - {Path("/root"), Path(sys.base_prefix)}
    pattern = re.compile("|".join(rf"{re.escape(str(place))}(?![-\w])" for place in places))
    wrong = [
        f"{path.relative_to(_ROOT)}:{number}: {line.strip()}"
        for path in _files(_ROOT)
        for number, line in enumerate(_text(path).splitlines(), start=1)
        if path != Path(__file__).resolve() and pattern.search(line)
    ]
    assert wrong == []


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except UnicodeDecodeError:  # a binary file names no path that anybody reads
        return ""
