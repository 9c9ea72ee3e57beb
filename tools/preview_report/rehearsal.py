"""A facility previewed without credentials or network, and what became of it, as plain data.

Facilities are rehearsed side by side, each in a process forked from one that has loaded what all need.
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
    """One resource that there would be."""

    urn: str
    type: str
    name: str
    inputs: Mapping[str, Any]
    """Plain values; what is not known yet, or secret, is called so."""


@dataclass(frozen=True, kw_only=True)
class Rehearsal:
    """What a preview told."""

    stack: str
    resources: tuple[Resource, ...] = ()
    """Those of providers; components have no inputs."""
    forbidden: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    """What policies refuse, by rule."""
    advice: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    """What they advise against, by rule."""
    problems: tuple[str, ...] = ()
    """Why there is no preview; what policies refuse is no such reason."""
    cost: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The stack's output `cost`; empty where nothing is ordered."""
    picture: str = ""
    """The topology, an SVG document; empty where there is no preview."""


JSON = TypeAdapter(Rehearsal)
"""Rehearsals on their way between processes."""


def rehearse(layout: Layout, engine: Engine, program: Callable[[], object]) -> Rehearsal:
    """Preview a stack file that is there; never raises for what is wrong with it."""
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
    told = [f"{title}: {text}" if title else text for title, text in progress.failures(policies=False)]
    return Rehearsal(
        stack=layout.stack,
        resources=_resources(seen, layout.root),
        forbidden=forbidden,
        advice={rule: list(messages) for rule, messages in progress.advice.items()},
        problems=tuple(told or ([problem] if problem and not forbidden else [])),
        cost=_together(costs),
        picture=topology.svg(model.planned(seen)) if events else "",
    )


def _together(costs: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """What the stacks of a facility cost; a sum is not known where one of them is not."""
    if len(costs) < 2:
        return dict(*costs)
    each = [cost.get("hourlyAtMost", cost.get("hourly")) for cost in costs]
    known = [float(value) for value in each if isinstance(value, int | float)]
    return {"hourly": sum(known)} if len(known) == len(each) else {}


def _resources(seen: Sequence[pictured.Resource], root: Path) -> tuple[Resource, ...]:
    """Paths of the project and of Python are relative, so that it does not matter where they are."""
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
    """Rehearse stacks of the project at `root`, and write what became of each to `<target>/<stack>.json`.

    Must be called while this process has no other threads.
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
