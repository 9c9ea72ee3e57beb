"""The outer half of each command: set up, start the lab where the stack wants it, hand over to the inner half."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import tempfile
import warnings
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FrameType
from typing import IO

from tools import engine, stackfile
from tools.containment import STOP, RunLock, python_module, run_leashed
from tools.errors import RunFailed, StackError
from tools.facility import KINDS, Facility
from tools.files import write_private
from tools.layout import ROOT, Layout


def say(text: str) -> None:
    """Progress of the set-up: on stderr, because stdout is for what was asked for."""
    print(text, file=sys.stderr, flush=True)


def setup(layout: Layout, machines: str | None) -> None:
    """Everything that can be made beforehand: the engine, and the lab's packages and images for a lab stack."""
    document = stackfile.read(layout.stack_file)
    wanted = stackfile.lab_machines(document)
    engine.ensure(say)
    if wanted is not None:
        kind = _machines(layout, wanted, machines, document)
        Facility(layout=layout).setup(kind, kube_vip=stackfile.announces(document))


def up(layout: Layout, machines: str | None) -> None:
    """Make the stack's resources what its configuration says."""
    _with_lab("up", layout, machines)


def refresh(layout: Layout, machines: str | None) -> None:
    """Make the state what is really there."""
    _existing(layout)
    _with_lab("refresh", layout, machines)


def down(layout: Layout, machines: str | None) -> None:
    """Remove the stack's resources, its state, and the lab; raises when anything is left."""
    is_lab = stackfile.lab_machines(stackfile.read(layout.stack_file)) is not None
    if layout.exists:
        _with_lab("down", layout, machines)
    else:
        say(f"stack '{layout.stack}' has no state: no resource of it is known")
    if is_lab:
        Facility(layout=layout).down()
    with contextlib.suppress(OSError):  # other stacks may have their state beside it
        layout.state.parent.rmdir()
        layout.state.parent.parent.rmdir()


def preview(layout: Layout, machines: str | None) -> None:
    """Tell what `up` would do. Without a state it is a rehearsal: no credentials, no network, nothing kept."""
    if layout.exists:
        _inner(layout, "preview", is_lab=stackfile.lab_machines(stackfile.read(layout.stack_file)) is not None)
        return
    found = engine.ensure(say)
    from tools import plugin_host
    from tools.project import python_plugins
    from tools.screen import Screen
    from tools.session import Session

    plugin_host.start(python_plugins(layout.root, with_stand_ins=True))
    program = _program(layout.root)
    with tempfile.TemporaryDirectory(prefix="metal-ipi-rehearsal-") as directory:
        rehearsed = Layout(root=layout.root, stack=layout.stack, states=Path(directory))
        Session(rehearsed, found, program, Screen()).rehearse()


def output(layout: Layout, machines: str | None) -> None:
    """Print the stack's outputs as one JSON document; secrets are masked."""
    _existing(layout)
    found = engine.ensure(say)
    from tools.automation import EngineCommand
    from tools.project import environment, has_own_passphrase, write_project

    document = stackfile.read(layout.stack_file)
    is_lab = stackfile.lab_machines(document) is not None
    write_project(layout, with_stand_ins=is_lab)
    own = is_lab or not has_own_passphrase()
    command = EngineCommand(found, environment(layout, found, own_passphrase=own, acquire_plugins=False))
    print(command.text(["stack", "output", "--json", "--stack", layout.stack], layout.project))


def run_engine(operation: str, layout: Layout, found: engine.Engine) -> None:
    """The inner half; not for users."""
    from tools import plugin_host
    from tools.containment import hold_leash
    from tools.project import python_plugins
    from tools.screen import Screen
    from tools.session import Session

    is_lab = stackfile.lab_machines(stackfile.read(layout.stack_file)) is not None
    plugin_host.start(python_plugins(layout.root, with_stand_ins=is_lab))
    sessions: list[Session] = []

    def stop() -> None:
        for session in sessions:
            if session.command is not None:
                session.command.interrupt()

    def kill() -> None:
        for session in sessions:
            if session.command is not None:
                session.command.kill()

    hold_leash(stop, kill)
    replace = os.environ.get("REPLACE", "").replace(",", " ").split() if operation == "up" else ()
    session = Session(layout, found, _program(layout.root), Screen(), replace)
    sessions.append(session)
    session.run(operation)


def _machines(layout: Layout, wanted: str, asked: str | None, document: stackfile.Tree) -> str:
    """Which kind of machines: what the existing state was made of, else what was asked for, else the stack file's."""
    chosen = asked or wanted
    if chosen not in KINDS:
        raise StackError(
            f"there are no lab machines of kind '{chosen}'",
            why="MACHINES, or metal-ipi:lab.machines in the stack file, names them",
            remedy=f"use one of {', '.join(KINDS)}",
        )
    if chosen == "simulated" and (needed := stackfile.needs_emulation(document)):
        raise StackError(f"stack '{layout.stack}' cannot have simulated machines", why=needed.why, remedy=needed.remedy)
    if not (layout.exists and layout.machines.exists()):
        return chosen
    existing = layout.machines.read_text().strip()
    if asked is not None and asked != existing:
        raise StackError(
            f"the stack's machines are {existing} ones, not {asked}",
            why="resources cannot move from one kind to the other",
            remedy="`make down` first, or leave MACHINES out",
        )
    return existing


def _with_lab(operation: str, layout: Layout, machines: str | None) -> None:
    """Run an operation, in the lab for a lab stack."""
    document = stackfile.read(layout.stack_file)
    wanted = stackfile.lab_machines(document)
    if wanted is not None:
        if operation == "up":
            _check_settings(layout, document)
        facility = Facility(layout=layout)
        kind = _machines(layout, wanted, machines, document)
        facility.setup(kind, kube_vip=stackfile.announces(document))
        facts = facility.up(kind, rack=stackfile.rack(document))
        write_private(layout.machines, facts["machines"])
    _inner(layout, operation, is_lab=wanted is not None)


def _check_settings(layout: Layout, document: stackfile.Tree) -> None:
    """Tell what is wrong with a stack file before the lab, which is built for minutes at first, is set up for it."""
    _import_from(layout.root)
    from stacks.settings import parse

    try:
        parse(stackfile.values(stackfile.for_rehearsal(document)), layout.stack)
    except ValueError as error:
        raise StackError(str(error)) from error


def _inner(layout: Layout, operation: str, *, is_lab: bool) -> None:
    """Start the inner half, in the lab's namespaces for a lab stack, and wait for it."""
    found = engine.ensure(say)
    command = python_module("--root", str(layout.root), "contain", "engine", operation, "--stack", layout.stack)
    command += ["--engine", str(found.path), "--engine-version", found.version]
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    env = {**os.environ, "PYTHONPATH": path}
    if is_lab:
        facility = Facility(layout=layout)
        env |= facility.environment(facility.facts())
        command = facility.enter(command)
    leashes: list[IO[bytes]] = []
    with _stopping(leashes):
        status = run_leashed(command, cwd=layout.root, env=env, started=leashes.append)
    if status == 0:
        return
    # What stood between us and the engine may have died before it did.
    lock = RunLock(layout.lock)
    lock.acquire(patience=60.0)
    lock.release()
    if status < 0 or status == 137:
        raise RunFailed(
            f"{operation} of stack '{layout.stack}' was killed",
            remedy=f"`make {operation}` goes on from there, `make down` removes everything",
        )
    raise SystemExit(status)


@contextlib.contextmanager
def _stopping(leashes: list[IO[bytes]]) -> Generator[None]:
    """Pass requests to stop on: the first cancels, the second stops at once, the third lets go of the leash."""
    asked = 0

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        asked += 1
        say(f"\nstopping ({signal.Signals(number).name}): running steps are finished or cancelled first")
        for leash in leashes:
            with contextlib.suppress(OSError):
                leash.close() if asked > 2 else leash.write(STOP)

    previous = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _existing(layout: Layout) -> None:
    if not layout.exists:
        raise StackError(
            f"there is no stack '{layout.stack}'",
            why=f"nothing was made of it here: {layout.state} holds no state",
            remedy=f"`make up STACK={layout.stack}` makes it",
        )


def _import_from(root: Path) -> None:
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))


def _program(root: Path) -> Callable[[], object]:
    """The program of a project: `main` of its stacks/program.py.

    It is loaded while the engine opens the stack, which takes as long; what is wrong with it is raised when it is run.
    """
    _import_from(root)
    # pulumi-equinix-metal imports pkg_resources; requirements.txt pins the setuptools that still has it.
    warnings.filterwarnings("ignore", message="pkg_resources is deprecated", category=UserWarning)

    def load() -> Callable[[], object]:
        from stacks.program import main

        return main

    loading = ThreadPoolExecutor(max_workers=1, thread_name_prefix="load-program").submit(load)

    def run() -> object:
        return loading.result()()

    return run


COMMANDS: dict[str, Callable[[Layout, str | None], None]] = {
    "setup": setup,
    "up": up,
    "down": down,
    "preview": preview,
    "refresh": refresh,
    "output": output,
}
