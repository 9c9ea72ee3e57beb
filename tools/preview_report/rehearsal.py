"""Previews a facility without credentials or network, and returns the result as plain data.

Facilities are rehearsed in parallel, each in a process that is forked from one with all imports done.
"""

from __future__ import annotations

import io
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from pulumi.automation import EngineEvent
from pulumi.automation.errors import CommandError
from pydantic import TypeAdapter
from rich.console import Console

from tools import facility_stacks, stackfile
from tools.automation import last_words
from tools.cost import Bill
from tools.engine import Engine
from tools.errors import ToolError
from tools.layout import Layout
from tools.operations import preview
from tools.pictures import model, topology
from tools.pictures import resources as pictured
from tools.policies import policies
from tools.progress import Progress
from tools.screen import Screen
from tools.session import Session


@dataclass(frozen=True, kw_only=True)
class Resource:
    """One resource of the preview."""

    urn: str
    type: str
    name: str
    inputs: Mapping[str, Any]
    """Plain values; unknown and secret ones are replaced by texts."""


@dataclass(frozen=True, kw_only=True)
class Rehearsal:
    """The result of a preview."""

    stack: str
    resources: tuple[Resource, ...] = ()
    """Resources of providers only; components have no inputs."""
    forbidden: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    """Rule name to the messages of violated policies."""
    advice: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    """Rule name to the messages of policies that only advise."""
    problems: tuple[str, ...] = ()
    """Why the preview failed, apart from policies."""
    cost: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The stack's output `cost`; empty if nothing is ordered."""
    picture: str = ""
    """The topology as SVG; empty without a preview."""


JSON = TypeAdapter(Rehearsal)
"""Converts rehearsals to and from JSON, to pass them between processes."""


def rehearse(layout: Layout, engine: Engine, program: Callable[[], object]) -> Rehearsal:
    """Previews a stack. Never raises because of errors in the stack file."""
    events: list[EngineEvent] = []
    progress = Progress(clock=time.monotonic)
    costs: list[Mapping[str, Any]] = []
    problem = ""
    try:
        rules = policies(layout)
        pools = facility_stacks.pools_of(layout, stackfile.read(layout.stack_file)).wanted
        for each in (layout, *map(layout.of_pool, pools)):
            bill = Bill()

            def note(event: EngineEvent, bill: Bill = bill) -> None:
                events.append(event)
                progress.handle(event)
                bill.handle(event)

            session = Session(each, engine, program, Screen(Console(file=io.StringIO())))
            preview(session.open_rehearsal(), rules, note)
            costs.append(bill.output)
    except CommandError as error:
        problem = last_words(error)
    except ToolError as error:
        problem = str(error)
    seen = pictured.of_events(events)
    forbidden = progress.violations()
    failures = [f"{title}: {text}" if title else text for title, text in progress.failures(policies=False)]
    return Rehearsal(
        stack=layout.stack,
        resources=_resources(seen, layout.root),
        forbidden=forbidden,
        advice={rule: list(messages) for rule, messages in progress.advice.items()},
        problems=tuple(failures or ([problem] if problem and not forbidden else [])),
        cost=_together(costs),
        picture=topology.svg(model.planned(seen)) if events else "",
    )


def _together(costs: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The costs of all stacks of a facility; empty if one of them is unknown."""
    if len(costs) < 2:
        return dict(*costs)
    each = [cost.get("hourlyAtMost", cost.get("hourly")) for cost in costs]
    known = [float(value) for value in each if isinstance(value, int | float)]
    return {"hourly": sum(known)} if len(known) == len(each) else {}


def _resources(seen: Sequence[pictured.Resource], root: Path) -> tuple[Resource, ...]:
    """The provider resources. Paths of the project and of Python become relative, so that their location does not
    matter."""
    return tuple(
        Resource(urn=each.urn, type=each.type, name=each.name, inputs=_moved(each.inputs, str(root)))
        for each in sorted(seen, key=lambda each: each.urn)
        if each.custom and not each.type.startswith("pulumi:")
    )


def _moved(value: Any, root: str) -> Any:
    if isinstance(value, Mapping):
        return {name: _moved(inner, root) for name, inner in cast("Mapping[str, Any]", value).items()}
    if isinstance(value, list):
        return [_moved(inner, root) for inner in cast("list[Any]", value)]
    return value.replace(sys.prefix, ".venv").replace(root, ".") if isinstance(value, str) else value


def rehearse_all(
    root: Path, stacks: Sequence[str], engine: Engine, program: Callable[[], object], target: Path
) -> None:
    """Rehearses stacks of the project at `root`, and writes the result of each to `<target>/<stack>.json`.

    This process must have no other threads.
    """
    with tempfile.TemporaryDirectory(prefix="metal-ipi-rehearsal-") as directory:
        children: dict[int, str] = {}
        for stack in stacks:
            layout = Layout(root=root, stack=stack, states=Path(directory))
            child = os.fork()
            if child == 0:
                _become(layout, engine, program, target / f"{stack}.json")
            children[child] = stack
        for child, stack in children.items():
            _, status = os.waitpid(child, 0)
            if status != 0:
                raise ToolError(f"the rehearsal of stack '{stack}' ended with {os.waitstatus_to_exitcode(status)}")


def _become(layout: Layout, engine: Engine, program: Callable[[], object], file: Path) -> None:
    status = 1
    try:
        file.write_bytes(JSON.dump_json(rehearse(layout, engine, program)))
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)
