"""Provides nmstatectl for stacks whose servers have their own networkConfig: from PATH, the cache, or built."""

from __future__ import annotations

import shutil

from binaries.crate import NMSTATECTL
from binaries.errors import ProgramMissing
from tools import stackfile
from tools.errors import StackError
from tools.notices import say


def ensure(document: stackfile.Tree) -> None:
    """Builds nmstatectl if a stack needs it and it is missing. Raises StackError."""
    if not stackfile.has_host_networks(document) or shutil.which(NMSTATECTL.name):
        return
    try:
        NMSTATECTL.ensure(say)
    except ProgramMissing as error:
        raise StackError(
            f"there is no {NMSTATECTL.name}, which makes the networks of servers (networkConfig)",
            why=str(error),
            remedy="install nmstate, or put nmstatectl on PATH, or put cargo on PATH",
        ) from error
