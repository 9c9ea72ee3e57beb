"""Adapts Pulumi's Automation API: it runs the engine that we found, lets us signal the engine's process, and skips
expensive steps whose results nobody uses."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
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
from semver import VersionInfo

from metal_ipi.stacks.spare_time import declared
from tools.engine import Engine
from tools.errors import StackError
from tools.files import make_private, write_private
from tools.layout import Layout
from tools.state import Deployment

Program = Callable[[], object]
_OURS = "metal_ipi"


class EngineCommand(PulumiCommand):
    """Runs the engine with exactly the given environment, in its own session."""

    def __init__(self, engine: Engine, env: Mapping[str, str]) -> None:
        # The base class would run `pulumi version`, but the version is known already.
        self.command = str(engine.path)
        self.version = VersionInfo.parse(engine.version)
        self.last_status = 0
        self._env = dict(env)
        self._process: subprocess.Popen[str] | None = None

    def interrupt(self) -> None:
        """Asks the running engine to cancel (first call), or to stop at once (second call)."""
        process = self._process
        if process is not None and process.poll() is None:
            process.send_signal(signal.SIGINT)

    def kill(self) -> None:
        """Kills the running engine and its plug-ins. Without a PID namespace, nothing else does that."""
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
        """Runs one command; raises CommandError if it fails. Stops reading the output when the engine itself has ended,
        because plug-ins that survive a killed engine may keep the pipes open."""
        if args[:2] == ["stack", "select"]:  # 0.3 s; all commands name their stack
            return CommandResult(stdout="", stderr="", code=0)
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
        """Runs one command and returns its standard output."""
        return self.run(args, str(cwd), {}, stdin=stdin).stdout


def write_empty_state(layout: Layout) -> None:
    """Writes the state of a stack without resources, unless there is one, in the form of the engine's file back end
    (pulumi, sdk/go/common/apitype, CheckpointV3). For rehearsals: `pulumi stack init` takes 0.7 s."""
    name = project_name(layout)
    file = layout.state_file(name)
    if not file.exists():
        make_private(file.parent)
        latest = {"manifest": {"time": "1970-01-01T00:00:00Z"}}
        state = {"version": 3, "checkpoint": {"stack": f"organization/{name}/{layout.stack}", "latest": latest}}
        write_private(file, json.dumps(state))
        write_private(layout.backend / ".pulumi" / "meta.yaml", "version: 1\n")


def open_stack(layout: Layout, command: EngineCommand, program: Program) -> automation.Stack:
    """Selects or creates the stack. Operations run the program in this process."""
    name = project_name(layout)
    options = automation.LocalWorkspaceOptions(
        work_dir=str(layout.project), pulumi_command=command, pulumi_home=str(layout.home)
    )
    find = automation.select_stack if layout.exists else automation.create_stack
    stack = find(layout.stack, project_name=name, program=guarded(program, layout.log), opts=options)
    # After every operation, the Automation API would ask the engine twice for the outputs, and once for the history,
    # which takes 0.8 s. We get the outputs from the events (`Progress`), and do not need the history.
    stack.outputs = _no_outputs
    stack.info = _no_history
    return stack


def _no_outputs() -> automation.OutputMap:
    """Replaces a stack's `outputs`."""
    return {}


def _no_history(show_secrets: bool = True) -> automation.UpdateSummary:
    """Replaces a stack's `info`."""
    return automation.UpdateSummary("", datetime.now(UTC), "", {}, {}, "")


def project_name(layout: Layout) -> str:
    """The project's name, from Pulumi.yaml."""
    for line in (layout.project / "Pulumi.yaml").read_text().splitlines():
        if line.startswith("name:"):
            return line.partition(":")[2].strip().strip("'\"")
    raise StackError("Pulumi.yaml has no name", remedy="restore Pulumi.yaml from version control")


def guarded(program: Program, log: Path) -> Callable[[], Awaitable[None]]:
    """Wraps the program: an error becomes a message, and its traceback goes to a file."""

    async def run() -> None:
        try:
            await declared(program)
        except pulumi.RunError:
            raise
        except Exception as error:
            write_private(log, traceback.format_exc())
            if type(error).__module__.partition(".")[0] == _OURS:
                raise pulumi.RunError(str(error)) from error
            raise pulumi.RunError(f"{type(error).__name__}: {error}\n(details are in {log})") from error

    return run


def export(layout: Layout, command: EngineCommand) -> Deployment:
    """Returns the state with encrypted secrets. The Automation API's own export decrypts them."""
    text = command.text(["stack", "export", "--stack", layout.stack], layout.project)
    return Deployment(document=cast("dict[str, Any]", json.loads(text)))


def import_(layout: Layout, command: EngineCommand, document: dict[str, Any]) -> None:
    """Replaces the state."""
    command.text(["stack", "import", "--stack", layout.stack], layout.project, stdin=json.dumps(document))


def locks(layout: Layout) -> list[Path]:
    """The lock files of the backend. A killed engine leaves its lock file behind."""
    return sorted((layout.backend / ".pulumi" / "locks").glob(f"**/{layout.stack}/*.json"))


def mend_backend(layout: Layout) -> None:
    """Removes incomplete files of a killed engine: temporary files, and attribute files that would prevent the state
    from loading.

    Call this only while holding the stack's lock. The state itself is replaced atomically. Other stacks of the facility
    may be using the same backend.
    """
    others = {layout.of_pool(pool).stack for pool in layout.pools}
    for file in (*layout.backend.rglob("*.tmp"), *layout.backend.rglob("*.attrs")):
        # The file belongs to a stack, or is in the folder of its history.
        names = {part.partition(".")[0] for part in file.relative_to(layout.backend).parts[1:]}
        if layout.stack in names or (layout.pool is None and not others & names):
            file.unlink(missing_ok=True)


def last_words(error: Exception) -> str:
    """The last lines of the engine's output, for an end without an error event."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    marks = [number for number, line in enumerate(lines) if line.strip().startswith("stderr:")]
    tail = lines[marks[-1] :] if marks else lines
    return os.linesep.join(tail[-12:]).strip().removeprefix("stderr:").strip()
