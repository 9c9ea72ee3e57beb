"""Whether anything has changed since the last `up` of a stack that asked the policies and succeeded. If not, the
policies need not be asked by a preview before the next `up`, and a pool needs neither that nor a preview.

What may change are the settings that the stack's program sees, the files that they name, the program, the policies, the
state, and the day: what depends on anything else, such as the answer of a server, is looked at a day later. See
docs/adr/0115 and 0117.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel, SecretStr

from tools import stackfile
from tools.automation import locks
from tools.files import write_private
from tools.layout import Layout
from tools.plugin_host import START, VARIABLE
from tools.policies import configuration, policies
from tools.project import PASSPHRASE, keyed_hash
from tools.state import SPOT_REQUEST
from tools.states import state_of

_CODE = ("components", "policy", "provider", "stacks")
_VARIABLES = ("METAL_IPI_", "PULUMI_")
_WITHOUT_EFFECT = {START, VARIABLE, *PASSPHRASE}
"""A passphrase must not be in a hash that is fast to compute."""
_RESULT = ("urn", "id", "modified", "outputs")
_UNSTEADY = {"dependencies", "propertyDependencies", "sourcePosition", "stackTrace"}
"""What is different after each `up`: the order of dependencies, and where the program was."""
_CIPHERTEXT = re.compile(r'"ciphertext": "[^"]*"')


def covers(layout: Layout, made_of: str) -> bool:
    """Whether the last `up` that asked the policies and succeeded was made of all that is there now.

    Args:
        made_of: see `about`.
    """
    return layout.last_up.exists() and layout.last_up.read_text() == _with_state(layout, made_of)


def write(layout: Layout, made_of: str) -> None:
    """Call this after an `up` that asked the policies and succeeded.

    Args:
        made_of: what `about` returned before the `up`: what is edited meanwhile was not in it.
    """
    write_private(layout.last_up, _with_state(layout, made_of))


def left_nothing_to_do(layout: Layout, config: stackfile.Config) -> bool:
    """Whether an `up` would change nothing: nothing has changed since the last one, and it was not interrupted. Never
    of a stack with machines of the spot market, since the next `up` replaces those that were evicted.

    Args:
        config: see `about`.
    """
    if not layout.exists or layout.running.exists() or locks(layout) or state_of(layout).has(SPOT_REQUEST):
        return False
    return covers(layout, about(layout, config))


def about(layout: Layout, config: stackfile.Config) -> str:
    """A hash of all that an `up` is made of, but for the state, which it changes. Raises SettingsError.

    Args:
        config: the stack file as the program gets it.
    """
    files = [*_code(layout.root), configuration(layout), *_named(layout.root, stackfile.read(layout.stack_file))]
    facts = (
        keyed_hash(layout, _settings(layout, config)),
        policies(layout).packs,
        list(_looks(files)),
        [sys.version, Path(sysconfig.get_path("purelib")).stat().st_mtime_ns],
        sorted(
            (name, value)
            for name, value in os.environ.items()
            if name.startswith(_VARIABLES) and name not in _WITHOUT_EFFECT
        ),
        datetime.now(UTC).date().isoformat(),
    )
    return _hash(facts)


def _settings(layout: Layout, config: stackfile.Config) -> object:
    """The settings with all secrets; of a facility with pools, what this stack's program sees of them."""
    if not stackfile.may_have_pools(config.document):
        return config.document, config.secrets
    # Not at the top: the program, which imports these too, is loaded while the engine opens the stack.
    from metal_ipi.stacks.pools.splitting import seen
    from metal_ipi.stacks.settings import parse

    settings = parse(stackfile.values(stackfile.without_secrets(config)), layout.stack)
    share = seen(settings, layout.stack, frozenset(state_of(layout.cluster).machines()))
    return _plain(share), stackfile.of_others(config.document), stackfile.secrets(config)


def _plain(value: Any) -> Any:
    """A value of settings as JSON has it, secrets included."""
    match value:
        case BaseModel():
            return _plain(value.__dict__)
        case SecretStr():
            return value.get_secret_value()
        case dict():
            return {str(key): _plain(each) for key, each in cast("dict[Any, Any]", value).items()}
        case list() | tuple():
            return [_plain(each) for each in cast("Sequence[Any]", value)]
        case set() | frozenset():
            return sorted(json.dumps(_plain(each), sort_keys=True) for each in cast("frozenset[Any]", value))
        case _ if dataclasses.is_dataclass(value):
            return _plain(value.__dict__)
        case None | bool() | int() | float():
            return value
        case _:
            return str(value)


def _with_state(layout: Layout, made_of: str) -> str:
    own = [{name: each[name] for name in each.keys() - _UNSTEADY} for each in state_of(layout).resources]
    # A pool's program reads outputs of the cluster's stack, which are made of those of its resources.
    cluster = state_of(layout.cluster).resources if layout.pool else []
    return _hash((made_of, _texts(own), _texts({name: each.get(name) for name in _RESULT} for each in cluster)))


def _hash(facts: Sequence[object]) -> str:
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def _code(root: Path) -> Iterator[Path]:
    """The files of program and policies, without stack files."""
    for folder in _CODE:
        for each in sorted((root / folder).rglob("*")):
            if each.parent.name != "__pycache__" and not each.match("stacks/Pulumi.*.yaml"):
                yield each


def _named(root: Path, value: object) -> Iterator[Path]:
    """The files, and the files in directories, whose paths are values in a stack file."""
    if isinstance(value, dict):
        value = list(cast("dict[str, Any]", value).values())
    if isinstance(value, list):
        for each in cast("list[Any]", value):
            yield from _named(root, each)
    elif isinstance(value, str):
        try:
            path = root / value
            yield from sorted(path.iterdir()) if path.is_dir() else [path]
        except (OSError, ValueError):  # it cannot be a path
            return


def _looks(files: Iterable[Path]) -> Iterator[tuple[str, int, int]]:
    for file in files:
        if file.is_file():
            stat = file.stat()
            yield str(file), stat.st_size, stat.st_mtime_ns


def _texts(resources: Iterable[stackfile.Tree]) -> list[str]:
    """Resources of a state, in an order that stays, without how secrets are encrypted, which is different after each
    `up`. One with a secret that changed has another time."""
    return sorted(_CIPHERTEXT.sub("", json.dumps(each, sort_keys=True)) for each in resources)
