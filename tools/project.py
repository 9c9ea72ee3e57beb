"""The generated project directory in which the engine works, and the engine's environment.

The engine writes into the stack file and into its home. Both are copies below `.state/`, so a run changes neither the
work tree nor the user's `~/.pulumi`. `main` in Pulumi.yaml keeps the project's root as the directory of plug-ins.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import hmac
import json
import os
import re
import secrets
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import yaml

from tools.engine import Engine
from tools.errors import StackError
from tools.files import make_private, write_private
from tools.layout import Layout
from tools.stackfile import Config, Tree, get, put

PLUGIN = re.compile(r"^pulumi-resource-([a-z0-9-]+)$")
_ENCRYPTED = "metal-ipi:encrypted"
PASSPHRASE = ("PULUMI_CONFIG_PASSPHRASE", "PULUMI_CONFIG_PASSPHRASE_FILE")


def user_home() -> Path:
    """The user's own engine home, which contains installed official plug-ins."""
    return Path(os.environ.get("PULUMI_HOME") or Path.home() / ".pulumi")


def stand_ins(root: Path) -> dict[str, Path]:
    """The lab's plug-ins that replace official ones: those whose official plug-in is not installed in the pinned
    version."""
    found: dict[str, Path] = {}
    for file in sorted((root / "lab" / "plugins").glob("pulumi-resource-*")):
        match = PLUGIN.match(file.name)
        if match and os.access(file, os.X_OK) and not _official(match[1]):
            found[match[1]] = file.parent
    return found


def python_plugins(root: Path, *, with_stand_ins: bool) -> list[str]:
    """The modules of the Python plug-ins that an engine may start, in that order, for the plug-in host."""
    lab = [f"lab.plugins.{name.replace('-', '_')}.main" for name in stand_ins(root)] if with_stand_ins else []
    return ["tools.policy_pack", "metal_ipi.plugin", *lab]


def _official(name: str) -> bool:
    try:
        pinned = version(f"pulumi-{name}")
    except PackageNotFoundError:
        return False
    return (user_home() / "plugins" / f"resource-{name}-v{pinned}").is_dir()


def write_project(layout: Layout, *, with_stand_ins: bool) -> None:
    """Writes the generated Pulumi.yaml: the committed one with absolute paths, and with the lab's plug-ins if
    wanted."""
    document = cast(Tree, yaml.safe_load((layout.root / "Pulumi.yaml").read_text()))
    document.pop("stackConfigDir", None)
    document["main"] = str(layout.root)
    plugins: dict[str, list[Tree]] = {
        kind: [{**item, "path": str((layout.root / item["path"]).resolve())} for item in items]
        for kind, items in document.get("plugins", {}).items()
    }
    providers = plugins.setdefault("providers", [])
    if with_stand_ins:
        named = {provider["name"] for provider in providers}
        providers += [
            {"name": name, "path": str(path)} for name, path in stand_ins(layout.root).items() if name not in named
        ]
    document["plugins"] = plugins
    _write_if_changed(layout.project / "Pulumi.yaml", yaml.safe_dump(document, sort_keys=False))


def environment(layout: Layout, engine: Engine, *, own_passphrase: bool, acquire_plugins: bool) -> dict[str, str]:
    """The environment of the engine. Creates the directories and the passphrase file that it names."""
    make_private(layout.backend)
    make_private(layout.home)
    choose_log(layout.home, wanted=os.environ.get("ENGINE_LOG", "") not in ("", "0"))
    plugins = layout.home / "plugins"
    official = user_home() / "plugins"
    if not plugins.is_symlink() and official.is_dir():
        plugins.symlink_to(official, target_is_directory=True)
    result = {name: value for name, value in os.environ.items() if name not in PASSPHRASE}
    if own_passphrase:
        if not layout.passphrase.exists():
            write_private(layout.passphrase, secrets.token_urlsafe(32))
        result["PULUMI_CONFIG_PASSPHRASE_FILE"] = str(layout.passphrase)
    else:
        result |= {name: os.environ[name] for name in PASSPHRASE if name in os.environ}
    result |= {
        "PULUMI_HOME": str(layout.home),
        # Without `metadata=skip` the backend writes an attribute file (.attrs) for each of its files, and not
        # atomically:
        "PULUMI_BACKEND_URL": f"file://{layout.backend}?metadata=skip",
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PULUMI_AUTOMATION_API_SKIP_VERSION_CHECK": "true",
        # Plug-ins are Python programs: with this PATH they use this interpreter.
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), str(engine.path.parent), os.environ["PATH"]]),
    }
    if not acquire_plugins:
        result["PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION"] = "true"
    return result


def choose_log(home: Path, *, wanted: bool) -> None:
    """Have an engine with this home keep a log of all that it does, or not. It has no setting for that, but goes on
    without one where the directory of its logs cannot be made (docs/adr/0114)."""
    logs = home / "logs"
    if wanted and logs.is_file():
        logs.unlink()
    elif not wanted and not logs.is_file():
        shutil.rmtree(logs, ignore_errors=True)
        with contextlib.suppress(IsADirectoryError):  # another engine writes its log: the next command tries again
            logs.write_text("With ENGINE_LOG=1 this is a directory, in which the engine logs all that it does.\n")


def has_own_passphrase() -> bool:
    """Whether the user has set a passphrase."""
    return any(name in os.environ for name in PASSPHRASE)


def write_config(layout: Layout, config: Config, engine: Engine, env: dict[str, str]) -> None:
    """Writes the copy of the stack file, with secrets encrypted by the engine; does nothing if nothing changed.

    Each secret needs one call of the engine (0.3 s), so several run in parallel, and those that have not changed are
    taken from the copy before. Keyed hashes tell what has changed.
    """
    hashes = {path: keyed_hash(layout, value) for path, value in config.secrets.items()}
    stamp = {"settings": keyed_hash(layout, config.document), "secrets": hashes}
    before, known = _read(layout.config), _read(layout.config_stamp)
    if before and known == stamp:
        return
    layout.config_stamp.unlink(missing_ok=True)
    made, same = Tree(), cast(Tree, known.get("secrets") or {})
    for path, its in hashes.items():
        if same.get(path) == its:
            with contextlib.suppress(KeyError, IndexError, TypeError):  # somebody has changed the copy
                made[path] = get(before["config"], path)
    document = copy.deepcopy(config.document)
    if "encryptionsalt" in before:  # it is kept, so that state and copy use the same key
        document.setdefault("encryptionsalt", before["encryptionsalt"])
    if changed := [each for each in config.secrets.items() if each[0] not in made]:
        write_private(layout.config, yaml.safe_dump(document, sort_keys=False))
        encrypt = partial(_encrypted, layout, engine, env)
        if "encryptionsalt" not in document:  # the copy was lost
            document["encryptionsalt"] = encrypt(("the first one", "of a new salt"))["encryptionsalt"]
            write_private(layout.config, yaml.safe_dump(document, sort_keys=False))
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for (path, _), found in zip(changed, pool.map(encrypt, changed), strict=True):
                made[path] = found["config"][_ENCRYPTED]
    for path, value in made.items():
        put(document["config"], path, value)
    write_private(layout.config, yaml.safe_dump(document, sort_keys=False))
    write_private(layout.config_stamp, json.dumps(stamp))


def keyed_hash(layout: Layout, value: object) -> str:
    """A hash of a value with secrets, which cannot be guessed without the stack's own passphrase. If a stack has none,
    all secrets that reach this are encrypted."""
    key = (layout.passphrase.read_text() if layout.passphrase.exists() else "").encode()
    return hmac.new(key, json.dumps(value, sort_keys=True).encode(), hashlib.sha256).hexdigest()


def _encrypted(layout: Layout, engine: Engine, env: dict[str, str], secret: tuple[str, str]) -> Tree:
    """Encrypts one secret: lets the engine set it in a copy of the file, and returns that copy's content.

    The secret is passed on standard input, because other users can read argument lists.
    """
    path, value = secret
    with TemporaryDirectory(dir=layout.state) as directory:
        file = Path(directory) / "config.yaml"
        shutil.copyfile(layout.config, file)
        command = [str(engine.path), "config", "set", "--non-interactive", "--stack", layout.stack]
        result = subprocess.run(
            [*command, "--secret", "--raw", "--config-file", str(file), _ENCRYPTED],
            input=value,
            cwd=layout.project,
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
        if result.returncode != 0:
            raise StackError(
                f"the engine did not accept the secret {path}",
                why=result.stderr.strip().replace(value, "[secret]"),
                remedy=f"remove {layout.config} and run the same command again",
            )
        return cast(Tree, yaml.safe_load(file.read_text()))


def _read(path: Path) -> Tree:
    """A file that an earlier run wrote; empty if it is not there, or not as that wrote it."""
    try:
        document: Any = yaml.safe_load(path.read_text())
    except (OSError, yaml.YAMLError):
        return {}
    return cast(Tree, document) if isinstance(document, dict) else {}


def _write_if_changed(path: Path, text: str) -> None:
    if not path.exists() or path.read_text() != text:
        write_private(path, text)
