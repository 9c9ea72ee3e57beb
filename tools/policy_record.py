"""Whether the policies must be asked before an `up`, which takes a preview. Not if the last `up` asked them about the
same, and succeeded.

The same are the settings, the files that they name, the program, the policies, the state, and the day: what depends on
anything else, such as the answer of a server, is asked about again a day later. The policies are part of each `up`
anyway, and refuse a resource before it is changed.
"""

from __future__ import annotations

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

from tools import stackfile
from tools.files import write_private
from tools.layout import Layout
from tools.plugin_host import START, VARIABLE
from tools.policies import configuration
from tools.project import PASSPHRASE
from tools.states import state_of

_CODE = ("components", "policy", "provider", "stacks")
_VARIABLES = ("METAL_IPI_", "PULUMI_")
_WITHOUT_EFFECT = {START, VARIABLE, *PASSPHRASE}
"""A passphrase must not be in a hash that is fast to compute."""
_UNSTEADY = {"dependencies", "propertyDependencies", "sourcePosition", "stackTrace"}
_CIPHERTEXT = re.compile(r'"ciphertext": "[^"]*"')


def covers(layout: Layout, asked: str) -> bool:
    """Whether the last `up` asked the policies about all that is there now, and succeeded.

    Args:
        asked: see `about`.
    """
    return layout.policy_record.exists() and layout.policy_record.read_text() == _with_state(layout, asked)


def write(layout: Layout, asked: str) -> None:
    """Call this after an `up` that asked the policies and succeeded.

    Args:
        asked: what `about` returned before the `up`: what is edited meanwhile, nobody was asked about.
    """
    write_private(layout.policy_record, _with_state(layout, asked))


def about(layout: Layout) -> str:
    """A hash of all that the policies are asked about, but for the state, which the `up` changes."""
    files = [*_code(layout.root), configuration(layout), *_named(layout.root, stackfile.read(layout.stack_file))]
    facts = (
        layout.config_stamp.read_text(),
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


def _with_state(layout: Layout, asked: str) -> str:
    # A pool's program reads outputs of the cluster's stack.
    return _hash((asked, _resources(layout), _resources(layout.cluster) if layout.pool else []))


def _hash(facts: Sequence[object]) -> str:
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def _code(root: Path) -> Iterator[Path]:
    for folder in _CODE:
        yield from (each for each in sorted((root / folder).rglob("*")) if each.parent.name != "__pycache__")


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


def _resources(layout: Layout) -> list[str]:
    """All resources in a state, without what is different after each `up`: how secrets are encrypted, the order of
    resources and dependencies, and where the program was. A resource that changed has another time."""
    resources = [{name: each[name] for name in each.keys() - _UNSTEADY} for each in state_of(layout).resources]
    return sorted(_CIPHERTEXT.sub("", json.dumps(each, sort_keys=True)) for each in resources)
