"""The outer process of each command: sets up, starts the lab if the stack needs it, and starts the inner process.

Modules that load Pulumi's SDK or the models of the settings are imported inside functions. The SDK takes 0.2 s of
processor time and the models 0.4 s, and most commands need both only in the inner process.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import IO

from tools import choices, clusterctl, engine, facility_stacks, nmstate, stackfile
from tools.choices import Asked
from tools.containment import HAS_WORK, LEFT, LOOKING, STOP, RunLock, at_work, python_module, run_leashed
from tools.errors import RunFailed, StackError
from tools.facility import Facility
from tools.fork_server import ForkServer
from tools.layout import ROOT, Layout
from tools.notices import say
from tools.program import import_from


def setup(layout: Layout, asked: Asked) -> None:
    """Build or install what the other commands need: the engine, and for a lab stack the lab's packages and images."""
    document = stackfile.read(layout.stack_file)
    engine.ensure(say)
    nmstate.ensure(document)
    wanted = choices.lab(layout, asked, document)
    if wanted is not None:
        Facility(layout=layout).setup(wanted)


def up(layout: Layout, asked: Asked) -> None:
    """Create or change a stack's resources as its configuration says; REPLACE=<machine,...> replaces these machines."""
    _with_lab("up", layout, asked)


def refresh(layout: Layout, asked: Asked) -> None:
    """Update a stack's state from the real resources."""
    from tools.outputs import existing

    existing(layout)
    _with_lab("refresh", layout, asked)


def down(layout: Layout, asked: Asked) -> None:
    """Delete a stack's resources, its state and its lab, and also the hub's stack if no other stack has servers from
    it; KEEP_LAB=1 keeps hub and lab."""
    document = stackfile.read(layout.stack_file)
    is_lab = stackfile.lab_machines(document) is not None
    if users := _users_of(layout):
        raise StackError(
            f"stack '{layout.stack}' is in use, and nothing was deleted",
            why=f"these stacks have servers of its Ironic:  {', '.join(users)}",
            remedy=f"run `make down STACK={users[0]}` first",
        )
    if layout.exists:
        _with_lab("down", layout, asked)
    else:
        say(f"stack '{layout.stack}' has no state, so it has no known resources")
    if is_lab and os.environ.get("KEEP_LAB", "") in ("", "0"):
        hub = _hub_of(layout, document)
        if hub is not None and hub.exists and not _users_of(hub):
            say(f"\nstack '{hub.stack}', because no other stack has servers from it")
            _with_lab("down", hub, Asked())
        _end_lab(layout, _in_lab(layout))
    with at_work(layout.lab.parent, alone=True) as alone:
        for directory in (layout.state.parent, layout.lab.parent) if alone else ():
            with contextlib.suppress(OSError):  # other stacks may have their state there
                directory.rmdir()


def _end_lab(layout: Layout, users: list[str]) -> None:
    """Stops the lab, unless other stacks exist in it or another command is using it."""
    with at_work(layout.lab.parent, alone=True) as alone:
        if users:
            say(f"the lab stays, because these stacks use it: {', '.join(users)}")
        elif not alone:
            say("the lab stays, because another command uses it")
        else:
            Facility(layout=layout).down()


def preview(layout: Layout, asked: Asked) -> None:
    """Show what `up` would do. For a stack without a state this is a rehearsal: no credentials, no network, and nothing
    is kept."""
    document = stackfile.read(layout.stack_file)
    if layout.exists:
        is_lab = stackfile.lab_machines(document) is not None
        with at_work(layout.lab.parent) if is_lab else contextlib.nullcontext():
            operate(layout, document, "preview", is_lab=is_lab)
        return
    from tools.rehearsal import rehearse
    from tools.screen import Screen

    pools = tuple(facility_stacks.pools_of(layout, document).wanted)
    rehearse(layout, engine.ensure(say), Screen(), pools=pools)


def topology(layout: Layout, asked: Asked) -> None:
    """Draw a stack's cluster, from its state or from a rehearsed `up`; OUT=<file.svg>."""
    from tools.pictures import commands

    print(commands.topology(layout))


def timeline(layout: Layout, asked: Asked) -> None:
    """Draw the last `up` of a stack; OUT=<file.svg>."""
    from tools.pictures import commands

    print(commands.timeline(layout))


def preview_report(root: Path, base: str, target: Path, pictures: str) -> None:
    """Writes a report of what a change does to every facility, and prints its path."""
    from tools.preview_report import command

    print(command.write(root, base, target, engine.ensure(say), pictures=pictures))


def fleet(root: Path, hubs: Sequence[str], target: Path) -> None:
    """Write a page and a picture of all clusters, and print the page's path."""
    from tools import fleet as whole

    page, counted = whole.write(root, hubs, target)
    print(counted)
    print(page)


def preflight(layout: Layout, asked: Asked) -> None:
    """Check everything that can be checked before `up` orders anything."""
    _look("preflight", layout, asked)


def sweep(layout: Layout, asked: Asked) -> None:
    """List what stacks left in the project; OF=<stack> SWEEP=delete deletes what that stack left."""
    _look("sweep", layout, asked)


def _look(operation: str, layout: Layout, asked: Asked) -> None:
    """Runs an operation that does not use the state. For a lab stack it runs in the lab, which is started if
    necessary."""
    document = stackfile.read(layout.stack_file)
    if stackfile.lab_machines(document) is None:
        operate(layout, document, operation, is_lab=False)
        return
    _check_settings(layout, document)
    with at_work(layout.lab.parent):
        _start_lab(layout, asked, document)
        operate(layout, document, operation, is_lab=True)


def hub(layout: Layout, asked: Asked) -> None:
    """Start the hub of a lab stack: a real one-node Kubernetes in the stack's lab, which is started if necessary. For a
    stack with `clusterApi` also install Cluster API and the providers in it, or bring them up to date."""
    document = stackfile.read(layout.stack_file)
    if stackfile.lab_machines(document) is None:
        raise StackError(
            f"stack '{layout.stack}' is not a lab stack",
            why="its stack file has no metal-ipi:lab, and only the lab has a hub of its own",
            remedy="name a lab stack, such as `make hub STACK=lab`",
        )
    with at_work(layout.lab.parent):
        _start_lab(layout, asked, document, hub=True)
        _give_providers(layout, document)


def hub_down(layout: Layout, asked: Asked) -> None:
    """Remove the hub, and the lab too if no stack in it has a state."""
    Facility(layout=layout).hub_down()
    if os.environ.get("KEEP_LAB", "") in ("", "0"):
        _end_lab(layout, list(layout.checkpoints()))


def output(layout: Layout, asked: Asked) -> None:
    """Print the outputs of a stack and of its pools as one JSON document; secrets are masked."""
    from tools.outputs import of_facility

    print(of_facility(layout, engine.ensure(say)))


def kubeconfig(layout: Layout, asked: Asked) -> None:
    """Print the administrator's kubeconfig, which is a secret."""
    from tools.outputs import outputs

    found = json.loads(outputs(layout, engine.ensure(say), secrets=True)).get("kubeconfig")
    if not found:
        raise StackError(
            f"the stack '{layout.stack}' has no kubeconfig yet",
            why="its `up` has not made the install assets yet",
            remedy=f"run `make up STACK={layout.stack}` until it ends",
        )
    print(found, end="" if found.endswith("\n") else "\n")


def _with_lab(operation: str, layout: Layout, asked: Asked) -> None:
    """Runs an operation, for a lab stack in its lab. `up` first runs on the hub that the stack gets its servers from,
    if any."""
    facility_stacks.check_wanted()  # before a lab is started
    document = stackfile.read(layout.stack_file)
    if operation == "up":
        nmstate.ensure(document)
    if stackfile.lab_machines(document) is None:
        operate(layout, document, operation, is_lab=False)
        return
    hub = _hub_of(layout, document) if operation == "up" else None
    stacks = [layout] if hub is None else [hub, layout]
    if operation == "up":
        for each in stacks:
            _check_settings(each, stackfile.read(each.stack_file))
    wanted = choices.lab(layout, asked, document)
    if hub is not None and wanted is not None:  # the hub gets the machines and the installer of the lab it is in
        choices.lab(hub, Asked(machines=wanted.machines, installer=wanted.installer), stackfile.read(hub.stack_file))
    with at_work(layout.lab.parent):
        machines, installer = _start_lab(layout, asked, document)
        if operation == "up":
            _give_providers(layout, document)
        for each in stacks:
            if hub is not None:
                say(f"\nstack '{each.stack}'")
            its = document if each is layout else stackfile.read(each.stack_file)
            operate(each, its, operation, is_lab=True, made_of=(machines, installer))


def _hub_of(layout: Layout, document: stackfile.Tree) -> Layout | None:
    """The stack of the hub whose Ironic provides the servers of a lab stack; None if there is none. Raises StackError
    if that stack is not a hub."""
    name = stackfile.hub_of(document)
    if name is None:
        return None
    hub = replace(layout, stack=name)
    other = stackfile.read(hub.stack_file)
    if not stackfile.is_hub(other) or stackfile.lab_machines(other) is None:
        raise StackError(
            f"stack '{layout.stack}' cannot get its servers from stack '{name}'",
            why="metal-ipi:lab.hub names it, and it is not the stack of a hub in the lab",
            remedy="name one that has metal-ipi:provisioning and metal-ipi:lab, such as hub",
        )
    return hub


def _in_lab(layout: Layout) -> list[str]:
    """The other stacks that exist in the lab."""
    return [
        name for name in layout.checkpoints() if name != layout.stack and replace(layout, stack=name).machines.exists()
    ]


def _users_of(layout: Layout) -> list[str]:
    """The existing stacks whose servers come from this stack's Ironic."""
    files = [(name, replace(layout, stack=name).stack_file) for name in _in_lab(layout)]
    return [name for name, file in files if file.exists() and stackfile.hub_of(stackfile.read(file)) == layout.stack]


def _start_lab(layout: Layout, asked: Asked, document: stackfile.Tree, *, hub: bool = False) -> tuple[str, str]:
    """Starts the lab if it is not running, and also the hub if the stack needs one or `hub` is set. Returns the lab's
    kind of machines, and the installer."""
    wanted = choices.lab(layout, asked, document)
    assert wanted is not None, "a stack of the lab"
    engine.ensure(say)  # first, because the lab's set-up uses what this learns about unreachable hosts
    facility = Facility(layout=layout)
    hub = hub or stackfile.is_managed(document) or stackfile.is_hub(document) or stackfile.hub_of(document) is not None
    facility.setup(wanted, hub=hub)
    facts = facility.up(wanted)
    if hub:
        facility.hub()
    facility.reserve(stackfile.reservations(document))
    return facts["machines"], wanted.installer


def _give_providers(layout: Layout, document: stackfile.Tree) -> None:
    """Installs what a stack with `clusterApi` needs in the running hub."""
    if stackfile.is_managed(document):
        clusterctl.give_to_lab(Facility(layout=layout))


def _check_settings(layout: Layout, document: stackfile.Tree) -> None:
    """Reports errors in a stack file early, before the lab is set up, which takes minutes the first time."""
    import_from(layout.root)
    from metal_ipi.stacks.kinds import parse

    try:
        parse(stackfile.values(stackfile.for_rehearsal(document)), layout.stack)
    except ValueError as error:
        raise StackError(str(error)) from error


def operate(
    layout: Layout, document: stackfile.Tree, operation: str, *, is_lab: bool, made_of: tuple[str, str] | None = None
) -> None:
    """Runs an operation on all stacks of a facility: the cluster's first, then those of its pools in parallel; `down`
    in the opposite order.

    Args:
        made_of: the lab's machines and its installer, which are stored with the state.
    """
    # These operations work on existing stacks, and must also work with an invalid stack file.
    of_states = operation in ("down", "refresh", "sweep")
    facility_stacks.check_wanted()
    several = bool(layout.pools) or (not of_states and stackfile.may_have_pools(document))
    with _stopping() as stopping, _forks(layout, is_lab=is_lab) if several else contextlib.nullcontext() as forks:
        # What the settings say is found out while the fork server imports what it needs.
        pools = facility_stacks.Pools() if of_states else facility_stacks.pools_of(layout, document)
        anew = facility_stacks.replaced(pools, os.environ.get("REPLACE", ""))
        inner = partial(_inner, stopping=stopping, forks=forks, is_lab=is_lab)

        def beside(operation: str, which: Mapping[str, tuple[str, ...]]) -> None:
            def run(each: Layout) -> None:
                stopping.refuse()
                inner(each, operation, replace=anew.get(each.pool, ""))

            facility_stacks.beside(operation, layout, which, run)

        if operation == "preview" and pools.wanted:
            _previews(layout, pools, stopping, inner)
            return
        if operation == "down":
            beside("down", facility_stacks.made(layout))
        if operation == "up" and _only_pools_have_work(layout, pools, anew, forks, inner):
            say(f"nothing has changed since the last `up` of the cluster's own stack, '{layout.stack}'")
        else:
            inner(layout, operation, made_of=made_of, replace=anew.get(None, ""))
        if operation == "up":
            beside("down", dict.fromkeys(pools.gone, ()))
            beside("up", pools.wanted)
        elif operation == "refresh":
            beside(operation, facility_stacks.made(layout))
        elif not of_states:
            _say_gone(pools)
            for pool in pools.wanted:
                say(f"\npool {pool}")
                inner(layout.of_pool(pool), operation)


def _only_pools_have_work(
    layout: Layout,
    pools: facility_stacks.Pools,
    anew: Mapping[str | None, str],
    forks: ForkServer | None,
    inner: Callable[..., None],
) -> bool:
    """Whether an `up` of a facility has nothing to do in the cluster's stack, and something in that of a pool. False
    also where it would take long to find out."""
    if not (pools.wanted or pools.gone) or None in anew or facility_stacks.all_wanted():
        return False
    if forks is None or not forks.is_ready():
        return False

    def has_work(pool: str | None) -> bool:
        try:
            inner(layout.of_pool(pool) if pool else layout, LEFT)
        except SystemExit as ended:
            if ended.code != HAS_WORK:
                raise
            return True
        return False

    stacks = [None, *(pool for pool in pools.wanted if pool not in anew)]
    with ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="work") as workers:
        of_cluster, *of_pools = workers.map(has_work, stacks)
    return not of_cluster and (any(of_pools) or bool(pools.gone) or bool(anew))


def _say_of(pool: str, text: str) -> None:
    print(f"{pool}: {text}", flush=True)


def _say_gone(pools: facility_stacks.Pools) -> None:
    for pool in pools.gone:
        say(f"\npool {pool} is not in the stack file any more: `up` takes it down")


def _previews(layout: Layout, pools: facility_stacks.Pools, stopping: _Stopping, inner: Callable[..., None]) -> None:
    """Previews all stacks of a facility, as many in parallel as there are processors and memory for. Each output is
    shown as a whole, in the order of the stacks, until one has failed."""
    stacks = {None: layout} | {pool: layout.of_pool(pool) for pool in pools.wanted}
    said: dict[str | None, list[str]] = {pool: [] for pool in stacks}

    def one(pool: str | None) -> None:
        stopping.refuse()
        inner(stacks[pool], "preview", line=said[pool].append)

    whole = {"the cluster's": (), **pools.wanted}
    several = min(facility_stacks.at_once(whole, facility_stacks.available_mib()), os.cpu_count() or 1)
    with ThreadPoolExecutor(several, thread_name_prefix="preview") as workers:
        running = {pool: workers.submit(one, pool) for pool in stacks}
        for pool, preview in running.items():
            failure = preview.exception()
            if pool is not None:
                say(f"\npool {pool}")
            print("\n".join(said[pool]), flush=True)
            if failure is not None:
                workers.shutdown(wait=False, cancel_futures=True)
                raise failure
            if pool is None:
                _say_gone(pools)


def _forks(layout: Layout, *, is_lab: bool) -> contextlib.AbstractContextManager[ForkServer | None]:
    """A process from which the inner processes of a facility's stacks are forked; None on other systems than Linux."""
    if sys.platform != "linux":
        return contextlib.nullcontext()
    command, env = _own_command(layout, ["fork-server", "--stack", layout.stack], is_lab=is_lab)
    return contextlib.closing(ForkServer(command, cwd=layout.root, env=env))


def _own_command(layout: Layout, arguments: Sequence[str], *, is_lab: bool) -> tuple[list[str], dict[str, str]]:
    """Command line and environment of a command of this package, for a lab stack in the lab."""
    command = python_module("--root", str(layout.root), *arguments)
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    env = {**os.environ, "PYTHONPATH": path}
    if not is_lab:
        return command, env
    facility = Facility(layout=layout)
    return facility.enter(command), env | facility.environment(facility.facts())


def _inner(
    layout: Layout,
    operation: str,
    *,
    stopping: _Stopping,
    forks: ForkServer | None,
    is_lab: bool,
    made_of: tuple[str, str] | None = None,
    replace: str = "",
    line: Callable[[str], None] | None = None,
) -> None:
    """Starts the inner process, for a lab stack in the lab's namespaces, and waits for it. Output lines of parallel
    pools begin with the pool's name.

    Args:
        forks: forks the process, if it can.
        replace: machines to replace.
        line: gets each line of the output instead.
    """
    found = engine.ensure(say)
    arguments = ["engine", operation, "--stack", layout.stack]
    arguments += ["--engine", str(found.path), "--engine-version", found.version]
    arguments += ["--made-of", *made_of] if made_of else []
    arguments += ["--pool", layout.pool] if layout.pool else []
    variables = {"REPLACE": replace}
    started = stopping.leashes.append
    if line is None and layout.pool is not None and operation in ("up", "down", "refresh"):
        line = partial(_say_of, layout.pool)
    status: int | None = None
    if forks is not None and forks.is_ready():
        stopping.refuse()
        whole = ["--root", str(layout.root), *arguments]
        status = forks.run(whole, variables=variables, started=started, line=line)
    if status is None:
        command, env = _own_command(layout, ["contain", *arguments], is_lab=is_lab)
        status = run_leashed(command, cwd=layout.root, env=env | variables, started=started, line=line)
    if status == 0:
        return
    if operation not in (LEFT, *LOOKING):
        # A process between us and the engine may have died before the engine.
        lock = RunLock(layout.lock)
        lock.acquire(patience=60.0)
        lock.release()
    if status < 0 or status == 137:
        raise RunFailed(
            f"{operation} of stack '{layout.stack}' was killed",
            remedy=f"`make {operation}` continues, `make down` removes everything",
        )
    raise SystemExit(status)


@dataclass
class _Stopping:
    """Passes on requests to stop: the first cancels the operation, the second stops it at once, the third closes the
    pipe, which kills it."""

    asked: int = 0
    """How many requests there were."""
    leashes: list[IO[bytes]] = field(default_factory=list[IO[bytes]])
    """The pipes to the started inner processes; see `containment`."""

    def refuse(self) -> None:
        """Raises RunFailed for a process that would be started after a request to stop."""
        if self.asked:
            raise RunFailed("it was not begun, because the command was stopped")

    def stop(self, number: int, frame: FrameType | None) -> None:
        self.asked += 1
        say(f"\nstopping ({signal.Signals(number).name}): running steps are finished or cancelled first")
        for leash in self.leashes:
            with contextlib.suppress(OSError, ValueError):  # the pipe of an ended process is closed
                leash.close() if self.asked > 2 else leash.write(STOP)


@contextlib.contextmanager
def _stopping() -> Generator[_Stopping]:
    """Handles signals by passing on requests to stop."""
    stopping = _Stopping()
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    previous = {number: signal.signal(number, stopping.stop) for number in numbers}
    try:
        yield stopping
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


COMMANDS: dict[str, Callable[[Layout, Asked], None]] = {
    command.__name__.replace("_", "-"): command
    for command in (
        *(setup, up, down, preview, refresh, output, kubeconfig, preflight, topology, timeline, sweep),
        *(hub, hub_down),
    )
}
"""Command name to function. `--help` prints their docstrings."""
