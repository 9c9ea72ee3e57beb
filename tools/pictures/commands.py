"""`make topology` and `make timeline`: draw a picture from a stack's files, or from a rehearsal."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path

from pulumi.automation import EngineEvent
from rich.console import Console

from tools import engine, facility_stacks, stackfile
from tools.errors import StackError, ToolError
from tools.files import make_private
from tools.layout import Layout
from tools.notices import say
from tools.pictures import model, record
from tools.pictures import timeline as timeline_picture
from tools.pictures import topology as topology_picture
from tools.rehearsal import rehearse
from tools.screen import Screen
from tools.states import state_of


def topology(layout: Layout) -> Path:
    """Draws the stack's state, or without a state the result of a rehearsal; returns the file."""
    document = stackfile.read(layout.stack_file)
    states = [state_of(each) for each in (layout, *map(layout.of_pool, layout.pools))]
    if resources := [resource for state in states for resource in state.resources]:
        return _write(layout, "topology", topology_picture.svg(model.from_state(resources)))
    events: list[EngineEvent] = []
    output = io.StringIO()
    try:
        screen = Screen(Console(file=output, highlight=False, soft_wrap=True))
        pools = tuple(facility_stacks.pools_of(layout, document).wanted)
        rehearse(layout, engine.ensure(say), screen, events.append, pools=pools)
    except ToolError:
        sys.stderr.write(output.getvalue())
        raise
    return _write(layout, "topology", topology_picture.svg(model.from_events(events)))


def timeline(layout: Layout) -> Path:
    """Draws the record of the stack's last `up`; returns the file. Raises StackError if there is no record."""
    stackfile.read(layout.stack_file)
    try:
        run = record.read(layout.timeline.read_text())
    except FileNotFoundError:
        raise StackError(
            f"there is no timeline of stack '{layout.stack}'",
            why="no `up` of it has ended since its last `down`",
            remedy=f"`make up STACK={layout.stack}`, and then this again",
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StackError(
            f"the timeline of stack '{layout.stack}' cannot be read",
            why=f"{layout.timeline}: {type(error).__name__} {error}",
            remedy="remove that file; the next `up` writes it anew",
        ) from error
    return _write(layout, "timeline", timeline_picture.svg(run))


def _write(layout: Layout, kind: str, text: str) -> Path:
    """Writes to OUT, or to the default path."""
    path = Path(os.environ.get("OUT") or layout.picture(kind))
    try:
        make_private(path.parent)
        path.write_text(text)
    except OSError as error:
        raise StackError(
            f"{path} cannot be written", why=error.strerror or str(error), remedy="name another file with OUT=<file>"
        ) from error
    return path
