"""The rooms and their doors: who may import whom, and who reads configuration."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parents[1]
_IN_WHEEL = ("cluster_api", "components", "provider", "stacks")
"""Rooms that the wheel has. Here and there they are imported as `metal_ipi.<room>`."""
_ROOMS = ("binaries", "cluster_api", "components", "lab", "metal_ipi", "policy", "provider", "stacks", "tools")
# What a room may import of ours besides itself. Everything else is closed, so a new room has no door at all.
# docs/architecture.md has the same arrows, for people.
_DOORS = {
    "binaries": (),
    "cluster_api": ("components", "provider", "stacks"),
    "components": ("provider.node_check", "provider.types"),
    "stacks": ("components", "provider.lexicon_services", "provider.types"),
    "metal_ipi": ("components", "provider", "stacks"),  # what other programs see
    "tools": ("binaries", "policy", "stacks"),  # the lab is run as a command
    "lab": ("binaries",),
    "policy": (),
    "provider": (),
}
# What a room may start as a process, or have started, besides itself.
_STARTS = {
    "binaries": (),
    "cluster_api": (),
    "components": (),
    "stacks": (),
    "metal_ipi": (),
    "tools": (
        "cluster_api",
        "lab",
        "metal_ipi",
        "policy",
        "provider.leftovers",
        "provider.preflight",
    ),
    "lab": (),
    "policy": ("tools.policy_pack",),  # its executable asks the plug-in host, where there is one
    "provider": ("metal_ipi.plugin",),  # its executable is the plug-in of all resources and components
}
# Modules that import each other, in a circle that is still to be undone. There is none.
_CIRCLES: tuple[set[str], ...] = ()
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


def _texts(room: str) -> dict[str, str]:
    """Path below the project and text of every Python file of a room, plug-in executables included."""
    folder = _ROOT / room
    paths = [path for path in _files(folder) if _is_python(path)] if folder.is_dir() else []
    return {path.relative_to(_ROOT).as_posix(): path.read_text() for path in paths}


@cache
def _modules(room: str) -> dict[str, ast.Module]:
    """The same with syntax trees."""
    return {path: ast.parse(text) for path, text in _texts(room).items()}


def _imports(path: str, tree: ast.Module) -> Iterator[str]:
    """Every module that a file imports, wherever in it, with `from a import b` as `a.b`; relative ones resolved."""
    package = path.split("/")[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (_in_room(alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            whole = ".".join([*base, *([node.module] if node.module else [])])
            yield from (_in_room(f"{whole}.{alias.name}") for alias in node.names)


def _in_room(module: str) -> str:
    """A module by its room's folder: `metal_ipi.stacks.settings` is stacks/settings.py, which metal_ipi/ links to."""
    package, _, rest = module.partition(".")
    return rest if package == "metal_ipi" and rest.partition(".")[0] in _IN_WHEEL else module


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


# --- circles -------------------------------------------------------------------------------------------------------


@cache
def _graph() -> dict[str, set[str]]:
    """Every module of ours, and the modules of ours that it imports anywhere: functions and TYPE_CHECKING included."""
    trees = {_name(path): (path, tree) for room in _ROOMS for path, tree in _modules(room).items()}
    return {
        name: {known for found in _imports(path, tree) if (known := _known(found, trees)) not in (None, name)}
        for name, (path, tree) in trees.items()
    }


def _name(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _known(module: str, modules: Collection[str]) -> str | None:
    """The module that an import reads: `a.b.c` is `a.b` where `c` is something in it."""
    return module if module in modules else (parent if (parent := module.rpartition(".")[0]) in modules else None)


def _circles(graph: Mapping[str, Collection[str]]) -> list[set[str]]:
    """The sets of modules that reach each other, of more than one module."""
    reached = {module: _reached(graph, module) for module in graph}
    found = [{each for each in reached[module] if module in reached[each]} for module in graph]
    return [each for number, each in enumerate(found) if len(each) > 1 and each not in found[:number]]


def _reached(graph: Mapping[str, Collection[str]], start: str) -> set[str]:
    waiting, seen = [start], set[str]()
    while waiting:
        for each in graph[waiting.pop()]:
            if each not in seen:
                seen.add(each)
                waiting.append(each)
    return seen


def test_no_modules_import_each_other_in_a_circle() -> None:
    circles = [each for each in _circles(_graph()) if not any(left <= each for left in _CIRCLES)]
    assert circles == []


def test_circles_are_found() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a", "e"}, "e": set[str]()}
    assert _circles(graph) == [{"a", "b", "c"}]


# --- processes -----------------------------------------------------------------------------------------------------

_OPTION = re.compile(rf"-m ({'|'.join(_ROOMS)})((?:\.\w+)*)")
_OF_SHELL = re.compile(rf"(?<![\w/.-])({'|'.join(_ROOMS)})((?:[./]\w+)+)|\$root/({'|'.join(_ROOMS)})\b")


def _starts(path: str, tree: ast.Module) -> Iterator[str]:
    """What a file starts as a process, or names for somebody who does: modules, and rooms by the paths of their files.

    - the name of a module as a text of its own, `"lab.network.boot"`; a room's after `-m`
    - `-m` and a module within a longer text, docstrings and comments apart
    - a text that begins with a room and goes on with a value, f"lab.plugins.{name}"; or `-m` and `module.__name__`
    - a room's folder below the project's, `root / "lab"`
    """
    documents = {id(each.value) for node in ast.walk(tree) for each in _alone(node)}
    imported = {found.rpartition(".")[2]: found for found in _imports(path, tree)}
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)) if id(node) not in documents:
                yield from (known for known in [_in_room(text)] if "." in text and known in _graph())
                yield from (_in_room(room + rest) for room, rest in _OPTION.findall(text))
            case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Call(args=parts):
                yield from (
                    second.value
                    for first, second in pairwise(parts)
                    if isinstance(second, ast.Constant) and second.value in _ROOMS and _is(first, "-m")
                )
            case ast.JoinedStr(values=[ast.Constant(value=str(text)), *_]) if text.split(".")[0] in _ROOMS:
                yield text.rstrip(".")
            case ast.BinOp(left=ast.Name() | ast.Attribute(), op=ast.Div(), right=ast.Constant(value=str(folder))):
                if folder in _ROOMS and ast.unparse(node.left).lower().split(".")[-1].endswith("root"):
                    yield folder
            case ast.Attribute(value=ast.Name(id=module), attr="__name__") if module in imported:
                yield imported[module]
            case _:
                pass


def _alone(node: ast.AST) -> Iterator[ast.Expr]:
    """The statements of a body that are expressions: docstrings among them."""
    return (each for each in ast.iter_child_nodes(node) if isinstance(each, ast.Expr))


def _is(node: ast.expr, text: str) -> bool:
    return isinstance(node, ast.Constant) and node.value == text


def _starts_of_shell(text: str) -> Iterator[str]:
    """The same for an executable in shell, its comments apart."""
    for line in text.splitlines():
        for room, rest, folder in _OF_SHELL.findall("" if line.lstrip().startswith("#") else line):
            yield folder or _in_room(room + rest.replace("/", "."))


def _executables(room: str) -> Iterator[Path]:
    """Files of a room that the engine starts, and which are no Python."""
    for path in _files(_ROOT / room):
        if path.name.startswith("pulumi-") and not path.suffix and not _is_python(path):
            yield path


@pytest.mark.parametrize("room", _ROOMS)
def test_processes_are_started_through_the_doors(room: str) -> None:
    found = [(path, module) for path, tree in _modules(room).items() for module in _starts(path, tree)]
    found += [
        (path.relative_to(_ROOT).as_posix(), module)
        for path in _executables(room)
        for module in _starts_of_shell(path.read_text())
    ]
    allowed = (room, *_DOORS[room], *_STARTS[room])
    assert [f"{path} starts {module}" for path, module in found if not any(_within(module, a) for a in allowed)] == []


_STARTING = (
    ('run([sys.executable, "-m", "lab", "up"])', ["lab"]),
    ('COMMAND = (sys.executable, "-m", "metal_ipi.provider.preflight")', ["provider.preflight"]),
    ('python = (sys.executable, "-m")\nService(argv=(*python, "lab.network.boot"))', ["lab.network.boot"]),
    ('import_module("metal_ipi.plugin")', ["metal_ipi.plugin"]),
    ('x = [f"lab.plugins.{name}.main"]', ["lab.plugins"]),
    ("from . import driver\nx = f\"exec '{sys.executable}' -m {driver.__name__}\"", ["components.install.driver"]),
    ('raise E("start it with `python -m lab up`")', ["lab"]),
    ('pack = layout.root / "policy"', ["policy"]),
    ('lab = self.root / ".state" / "lab"', []),
    ('"""Started with python -m lab."""', []),
    ('x = "lab"', []),
)


@pytest.mark.parametrize(("source", "modules"), _STARTING)
def test_starts_are_found(source: str, modules: list[str]) -> None:
    assert list(_starts("components/install/x.py", ast.parse(source))) == modules


def test_starts_of_executables_are_found() -> None:
    text = (
        '# lab.setup\n[ -z "$x" ] || exec "$python" "$root/tools/plugin_start.py" "$0" lab.plugins.command.main "$@"\n'
    )
    assert list(_starts_of_shell(text)) == ["tools", "lab.plugins.command.main"]
    assert list(_starts_of_shell('exec "$python" -m metal_ipi.plugin "$@"')) == ["metal_ipi.plugin"]
    assert len([path for room in _ROOMS for path in _executables(room)]) >= 5


_BARE = ("tests/metal_ipi/test_wheel.py", "tests/test_architecture.py")


def test_rooms_of_the_wheel_have_one_name() -> None:
    """A module that is imported by two names is there twice, with classes that are not each other's."""
    assert {path.name: path.resolve() for path in (_ROOT / "metal_ipi").iterdir() if path.is_symlink()} == {
        room: _ROOT / room for room in _IN_WHEEL
    }
    bare = re.compile(rf"^\s*(?:from|import) (?:{'|'.join(_IN_WHEEL)})\b", re.MULTILINE)
    texts = {path: text for room in (*_ROOMS, "tests") for path, text in _texts(room).items()}
    # The wheel's own test has a program with a folder `components`.
    wrong = [path for path, text in texts.items() if bare.search(text) and path not in _BARE]
    assert wrong == []


def test_every_package_is_a_known_room() -> None:
    packages = {path.name for path in _ROOT.iterdir() if path.is_dir() and path.name not in _FOREIGN}
    with_code = {name for name in packages if any(_is_python(path) for path in _files(_ROOT / name))}
    assert with_code - {"tests"} <= set(_ROOMS)


_SOURCES = (
    ("import lab.supervisor", ["lab.supervisor"]),
    ("from metal_ipi.provider import types", ["provider.types"]),
    ("from . import driver", ["components.install.driver"]),
    ("from ..boot import ipxe", ["components.boot.ipxe"]),
    ("def f():\n    from metal_ipi.stacks.settings import load", ["stacks.settings.load"]),
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
    assert found == ["stacks/reading.py"]


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
    pattern = re.compile(b"|".join(re.escape(str(place).encode()) + rb"(?![-\w])" for place in places))
    wrong = [
        f"{path.relative_to(_ROOT)}, at byte {found.start()}"
        for path in _files(_ROOT)
        if path != Path(__file__).resolve() and (found := pattern.search(path.read_bytes()))
    ]
    assert wrong == []
