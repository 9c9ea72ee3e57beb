"""The Automation API, bent where it has to be: the engine we found is the one it runs, we can reach its process, and
what costs time and serves nobody is left out."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, cast

import pulumi
from pulumi import automation
from pulumi.automation import CommandResult, PulumiCommand
from pulumi.automation.errors import create_command_error
from pulumi.runtime import resource
from pulumi.runtime.proto.source_pb2 import SourcePosition, StackFrame, StackTrace
from semver import VersionInfo

from tools.engine import Engine
from tools.errors import StackError
from tools.files import write_private
from tools.layout import ROOT, Layout
from tools.state import Deployment

Program = Callable[[], object]
_OURS = "metal_ipi"
_DECLARING = tuple(f"{ROOT}/metal_ipi/{room}/" for room in ("stacks", "components"))
"""Where resources are declared; `metal_ipi.provider.types` only names them."""


class EngineCommand(PulumiCommand):
    """Runs the engine with exactly the environment it was given, in a session of its own."""

    def __init__(self, engine: Engine, env: Mapping[str, str]) -> None:
        # The base class would run `pulumi version` to learn what is known here already.
        self.command = str(engine.path)
        self.version = VersionInfo.parse(engine.version)
        self.last_status = 0
        self._env = dict(env)
        self._process: subprocess.Popen[str] | None = None

    def interrupt(self) -> None:
        """Ask the running engine to cancel (once), or to stop at once (twice)."""
        process = self._process
        if process is not None and process.poll() is None:
            process.send_signal(signal.SIGINT)

    def kill(self) -> None:
        """End the running engine and its plug-ins at once; where there is no PID namespace, nobody else does."""
        process = self._process
        if process is not None and process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

    def run(
        self,
        args: list[str],
        cwd: str,
        additional_env: Mapping[str, str],
        on_output: Callable[[str], Any] | None = None,
        on_error: Callable[[str], Any] | None = None,
        *,
        stdin: str | None = None,
    ) -> CommandResult:
        """Run one command; raises CommandError when it fails. Output is read until the engine itself has ended:
        plug-ins that outlived a killed engine may still hold the pipes."""
        process = subprocess.Popen(
            [self.command, "--non-interactive", *args],
            cwd=cwd,
            env={**self._env, **additional_env, "PULUMI_AUTOMATION_API": "true"},
            stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )
        self._process = process
        chunks: tuple[list[str], list[str]] = ([], [])

        def read(stream: IO[str], callback: Callable[[str], Any] | None, into: list[str]) -> None:
            for line in stream:
                into.append(line.rstrip("\n"))
                if callback is not None:
                    callback(line.rstrip())

        streams = ((process.stdout, on_output, chunks[0]), (process.stderr, on_error, chunks[1]))
        readers = [threading.Thread(target=read, args=each, daemon=True) for each in streams]
        for reader in readers:
            reader.start()
        if stdin is not None:
            assert process.stdin is not None
            process.stdin.write(stdin)
            process.stdin.close()
        self.last_status = process.wait()
        for reader in readers:
            reader.join(timeout=5)
        result = CommandResult(stdout="\n".join(chunks[0]), stderr="\n".join(chunks[1]), code=self.last_status)
        if self.last_status != 0:
            raise create_command_error(result)
        for stream in (process.stdout, process.stderr):
            assert stream is not None
            stream.close()
        return result

    def text(self, args: list[str], cwd: Path, stdin: str | None = None) -> str:
        """Run one command and return its standard output."""
        return self.run(args, str(cwd), {}, stdin=stdin).stdout


def open_stack(layout: Layout, command: EngineCommand, program: Program) -> automation.Stack:
    """Select the stack, or create it; the program is run in this process when an operation asks for it."""
    name = project_name(layout)
    options = automation.LocalWorkspaceOptions(
        work_dir=str(layout.project), pulumi_command=command, pulumi_home=str(layout.home)
    )
    find = automation.select_stack if layout.exists else automation.create_stack
    stack = find(layout.stack, project_name=name, program=guarded(program, layout.log), opts=options)
    # After every operation the engine would be asked for outputs, twice, and for the history: 0.8 s. Outputs come with
    # the events (`Progress`), and nobody looks at the history.
    stack.outputs = _no_outputs
    stack.info = _no_history
    return stack


def _no_outputs() -> automation.OutputMap:
    """Takes the place of a stack's `outputs`."""
    return {}


def _no_history(show_secrets: bool = True) -> automation.UpdateSummary:
    """Takes the place of a stack's `info`."""
    return automation.UpdateSummary("", datetime.now(UTC), "", {}, {}, "")


def project_name(layout: Layout) -> str:
    """The project's name, as Pulumi.yaml says it."""
    for line in (layout.project / "Pulumi.yaml").read_text().splitlines():
        if line.startswith("name:"):
            return line.partition(":")[2].strip().strip("'\"")
    raise StackError("Pulumi.yaml has no name", remedy="restore Pulumi.yaml from version control")


def guarded(program: Program, log: Path) -> Callable[[], Awaitable[None]]:
    """The program, so that its failure reads as a message; the traceback goes to a file."""

    async def run() -> None:
        _spare_time()
        try:
            program()
        except pulumi.RunError:
            raise
        except Exception as error:
            write_private(log, traceback.format_exc())
            if type(error).__module__.partition(".")[0] == _OURS:
                raise pulumi.RunError(str(error)) from error
            raise pulumi.RunError(f"{type(error).__name__}: {error}\n(the full story is in {log})") from error
        # Let the registrations begin, or the SDK's runtime sees none, and waits for outputs instead: it then walks over
        # all that are pending each time one is there, which took longer than all else in a preview of 100 workers.
        await asyncio.sleep(0)

    return run


def _spare_time() -> None:
    """Leave out what costs a third of a preview of 100 workers, and a sixth of its state, and serves nobody.

    - Several times for each resource the SDK tells the engine what it does, and waits for an answer each time; the
      engine drops it, for our commands have no `--debug`.
    - Garbage is looked for after each 700 new objects, among all that the program holds until its end anyway.
    - With each resource the state keeps the whole stack of calls that declared it, and is written at every step.
    """
    pulumi.log.debug = _unheard
    resource._get_stack_trace = _declared_at  # pyright: ignore[reportPrivateUsage]
    gc.set_threshold(100_000, 50, 50)


def _declared_at() -> StackTrace:
    """Where a resource is declared: the innermost line of ours."""
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None and not frame.f_code.co_filename.startswith(_DECLARING):
        frame = frame.f_back
    if frame is None:
        return StackTrace()
    position = SourcePosition(uri=Path(frame.f_code.co_filename).as_uri(), line=frame.f_lineno)
    return StackTrace(frames=[StackFrame(pc=position)])


def _unheard(*message: object, **about: object) -> None:
    """Takes the place of `pulumi.log.debug`."""


def export(layout: Layout, command: EngineCommand) -> Deployment:
    """The state, secrets still encrypted; the Automation API's own export decrypts them."""
    text = command.text(["stack", "export", "--stack", layout.stack], layout.project)
    return Deployment(document=cast("dict[str, Any]", json.loads(text)))


def import_(layout: Layout, command: EngineCommand, document: dict[str, Any]) -> None:
    """Replace the state."""
    command.text(["stack", "import", "--stack", layout.stack], layout.project, stdin=json.dumps(document))


def locks(layout: Layout) -> list[Path]:
    """The lock files of the backend: an engine that was killed leaves its own."""
    return sorted((layout.backend / ".pulumi" / "locks").glob(f"**/{layout.stack}/*.json"))


def mend_backend(layout: Layout) -> None:
    """Remove what a killed engine wrote half: temporary files, and side files that would keep the state from loading.

    Only while holding the stack's lock. The state itself is replaced atomically. Other stacks of the facility may be at
    work in the same backend.
    """
    others = {layout.of_pool(pool).stack for pool in layout.pools}
    for file in (*layout.backend.rglob("*.tmp"), *layout.backend.rglob("*.attrs")):
        # The file of a stack, or one in the folder of its history.
        names = {part.partition(".")[0] for part in file.relative_to(layout.backend).parts[1:]}
        if layout.stack in names or (layout.pool is None and not others & names):
            file.unlink(missing_ok=True)


def last_words(error: Exception) -> str:
    """What the engine said last, when it ended without telling why in an event."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    marks = [number for number, line in enumerate(lines) if line.strip().startswith("stderr:")]
    tail = lines[marks[-1] :] if marks else lines
    return os.linesep.join(tail[-12:]).strip().removeprefix("stderr:").strip()
