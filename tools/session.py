"""Runs one operation of the engine on one stack in the inner process, and removes what interrupted runs left.

It runs in the lab's namespaces (for a lab stack) and in its own PID namespace: see `containment.py`.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, cast

from pulumi import automation
from pulumi.automation.errors import CommandError

from tools import last_up, preflight, recover, replacement, stackfile, sweep
from tools.automation import (
    EngineCommand,
    Program,
    export,
    import_,
    last_words,
    locks,
    mend_backend,
    open_stack,
    write_empty_state,
)
from tools.containment import RunLock
from tools.engine import Engine
from tools.errors import RecoveryFailed, RunFailed, StackError
from tools.files import write_private
from tools.layout import Layout
from tools.metal import MetalApi
from tools.operations import Operations
from tools.policies import NO_STATE, policies
from tools.project import environment, write_config, write_project
from tools.run_config import RunConfig, configure
from tools.screen import Screen
from tools.state import Deployment
from tools.states import held, state_of


@dataclass(frozen=True, kw_only=True)
class Credentials:
    """Access to the platform, for the search for leftovers."""

    token: str
    project: str | None
    """The project in the configuration; None if the stack creates its own."""
    project_name: str | None = None
    """The name of the project that the stack creates."""


class Session:
    """One operation on one stack."""

    def __init__(
        self, layout: Layout, engine: Engine, program: Program, screen: Screen, replace: Sequence[str] = ()
    ) -> None:
        self._layout = layout
        self._replace = tuple(replace)
        self._engine = engine
        self._program = program
        self._screen = screen
        self._config = RunConfig(settings=stackfile.Config(document={}), own_passphrase=True, facts=None)
        self._since: datetime | None = None
        self._dirty = False
        self._cluster = ""
        self._run: str | None = None
        self.command: EngineCommand | None = None

    def run(self, operation: str, made_of: Sequence[str] | None = None) -> None:
        """Runs `up`, `down`, `refresh` or `preview`; raises ToolError if it fails, after printing the failure.

        Args:
            made_of: the lab's machines and its installer, which are stored next to the state.
        """
        lock = RunLock(self._layout.lock)
        lock.acquire()
        try:
            if made_of is not None:  # not earlier: a `down` may have been removing the state
                machines, installer = made_of
                write_private(self._layout.machines, machines)
                write_private(self._layout.installer, installer)
            existed = self._layout.exists
            is_new = operation == "up" and not existed
            stack = self.prepare()
            if operation == "preview":
                self._preview(stack, forget=not existed)
                return
            state = Deployment(document={}) if is_new else export(self._layout, self._command)
            self._know_the_cluster(operation, state)
            if operation == "down":
                self._refuse_protected(state)
            state = self._recover(stack, state, destroying=operation == "down")
            if operation == "down":
                self._unprotect(state)
            replace = self._to_replace(state) if operation == "up" else None
            made_of = last_up.about(self._layout, self._config.settings) if operation == "up" else ""
            is_asked = not replace and not self._dirty and last_up.covers(self._layout, made_of)
            if operation == "up" and policies(self._layout).packs and not is_asked:
                self._operations.ask_policies(stack, replace)
            self._mark(operation)
            if operation == "up" and (hostnames := state.to_install(self._replace)):
                # The files that install replaced or missing machines must be uploaded again.
                import_(self._layout, self._command, state.without_installers(hostnames))
            if operation == "down":
                self._down(stack)
                shutil.rmtree(self._layout.state)
                lock.remove()
                return
            self._operations.run(operation, stack, replace)
            if self._dirty:
                self._sweep(export(self._layout, self._command), destroying=False)
            self._layout.running.unlink()
            if operation == "up":
                last_up.write(self._layout, made_of)
        finally:
            lock.release()

    def _preview(self, stack: automation.Stack, *, forget: bool) -> None:
        """Previews an `up`. `forget`: the stack did not exist (a new pool), so it is removed afterwards."""
        try:
            self._operations.run("preview", stack)
        finally:
            if forget:
                stack.workspace.remove_stack(self._layout.stack)
                shutil.rmtree(self._layout.state)

    def look(self, operation: str) -> None:
        """Runs `preflight` or `sweep`, which do not use the state; raises RunFailed if something is wrong or left
        over."""
        self.prepare()
        # This command works on a temporary state.
        here = replace(self._layout, states=None)
        if operation == "preflight":
            preflight.run(self._settings(), here, self._screen)
            return
        credentials = self._credentials()
        if credentials is None:
            raise StackError(f"stack '{self._layout.stack}' orders nothing: there is nothing to sweep")
        projects = {credentials.project} if credentials.project else set[str]()
        sweep.run(
            MetalApi(credentials.token),
            self._screen,
            projects=projects,
            named=credentials.project_name,
            wanted=sweep.Wanted.from_(os.environ),
            held=lambda: held(here),
        )

    def rehearse(self, *also: Callable[[automation.EngineEvent], None]) -> None:
        """Previews without credentials or network, with a separate state. `also`: functions that get every event."""
        stack = self.open_rehearsal()
        self._operations.run("preview", stack, also=also)

    def open_rehearsal(self) -> automation.Stack:
        """Opens the stack for a preview without credentials or network."""
        document = stackfile.of_pool(stackfile.read(self._layout.stack_file), self._layout.pool)
        config = stackfile.for_rehearsal(document)
        return self._open(config, own_passphrase=True, lab=True, rehearsal=True)

    def prepare(self) -> automation.Stack:
        """Writes the files that the engine reads, and opens the stack."""
        self._config = configure(self._layout, self._engine)
        if self._is_lab:
            self._screen.redact.add(self._config.settings.secrets.values())
        return self._open(self._config.settings, own_passphrase=self._config.own_passphrase, lab=self._is_lab)

    def _open(
        self, config: stackfile.Config, *, own_passphrase: bool, lab: bool, rehearsal: bool = False
    ) -> automation.Stack:
        write_project(self._layout, with_stand_ins=lab)
        env = environment(self._layout, self._engine, own_passphrase=own_passphrase, acquire_plugins=not lab)
        if rehearsal:
            env[NO_STATE] = "1"
            write_empty_state(self._layout)
        self.command = EngineCommand(self._engine, env)
        mend_backend(self._layout)
        if not self._layout.config.exists():
            write_private(self._layout.config, "{}\n")
        try:
            stack = open_stack(self._layout, self.command, self._program)
        except CommandError as error:
            raise StackError(
                f"the engine cannot open stack '{self._layout.stack}'",
                why=last_words(error),
                remedy=f"see {self._layout.state}",
            ) from error
        write_config(self._layout, config, self._engine, env)
        return stack

    @property
    def _is_lab(self) -> bool:
        return self._config.facts is not None

    @property
    def _operations(self) -> Operations:
        return Operations(layout=self._layout, command=self._command, screen=self._screen)

    @property
    def _command(self) -> EngineCommand:
        assert self.command is not None, "prepare() comes first"
        return self.command

    def _know_the_cluster(self, operation: str, state: Deployment) -> None:
        """Finds out which cluster the machines belong to. Raises StackError for an `up` that would replace them all."""
        configured = stackfile.cluster(stackfile.read(self._layout.stack_file))
        existing = state.cluster()
        if operation == "up" and existing not in (None, configured):
            raise StackError(
                f"stack '{self._layout.stack}' has the cluster {existing}, and its file names {configured}",
                why="a cluster cannot be renamed: every machine would be deleted and ordered anew, etcd included",
                remedy="restore clusterName and baseDomain; or run `make down` first, and install anew",
            )
        self._cluster = existing or configured
        self._run = state.run() or (state_of(self._layout.cluster).run() if self._layout.pool else None)

    def _to_replace(self, state: Deployment) -> list[str] | None:
        """The URNs of the machines to replace."""
        return replacement.urns(state, self._layout.stack, self._replace) if self._replace else None

    # --- interrupted runs ------------------------------------------------------------------------------------------

    def _mark(self, operation: str) -> None:
        """Marks that a run is active. After several interrupted runs in a row, the mark keeps the start of the first
        one."""
        started = self._since or datetime.now(UTC)
        note = {"operation": operation, "started": started.isoformat()}
        write_private(self._layout.running, json.dumps(note))

    def _recover(self, stack: automation.Stack, state: Deployment, *, destroying: bool) -> Deployment:
        """Removes what an interrupted run left: locks, pending operations, machines that are in no state. Returns the
        new state."""
        if locks(self._layout):
            # We hold the stack's lock, so the process that made these locks is dead.
            self._screen.line("removing the lock of an engine that was killed")
            stack.cancel()
        if not self._layout.running.exists():
            return state
        note = cast("dict[str, str]", json.loads(self._layout.running.read_text()))
        self._dirty = True
        self._since = datetime.fromisoformat(note["started"])
        self._screen.line(
            f"the last run ({note['operation']}, begun {self._since:%Y-%m-%d %H:%M:%S} UTC) was interrupted or "
            "failed: looking for what it left"
        )
        for type_, name in state.pending_creates():
            self._screen.line(f"  {name} ({type_}) was being created")
        self._sweep(state, destroying=destroying)
        if not state.pending:
            return state
        mended = state.for_destroy() if destroying else state.without_pending()
        import_(self._layout, self._command, mended)
        return Deployment(document=mended)

    def _sweep(self, state: Deployment, *, destroying: bool) -> None:
        """Deletes resources with the stack's tags that are in no state."""
        credentials = self._credentials()
        if credentials is None:
            return
        since = None if self._is_lab else self._since
        # An `up` may have started the run, and a `down` may have ended it.
        run = state.run() or self._run
        scan = recover.scan_for(
            self._layout.stack, self._cluster, state, credentials.project, since, run=run, destroying=destroying
        )
        platform = MetalApi(credentials.token)
        leftovers = recover.find(platform, scan, state)
        recover.clear(platform, leftovers, lambda text: self._screen.line(f"  {text}"))

    def _credentials(self) -> Credentials | None:
        """The platform's token and project; None if the stack orders no machines."""
        if stackfile.is_hub(stackfile.read(self._layout.stack_file)):
            return None
        if self._config.facts is not None:
            api = self._config.facts["api"]
            if api is None:
                return None
            return Credentials(token=api["token"], project=api["project_id"])
        platform = cast("dict[str, Any]", json.loads(self._settings().get("platform", "{}")))
        if platform.get("type", "equinix-metal") != "equinix-metal":
            return None
        if "authToken" not in platform:
            raise RecoveryFailed(
                "cannot look for machines that are in no state",
                why="metal-ipi:platform.authToken is not set",
                remedy="pulumi config set --secret --path metal-ipi:platform.authToken <token>",
            )
        self._screen.redact.add([platform["authToken"]])
        return Credentials(
            token=platform["authToken"], project=platform.get("projectId"), project_name=platform.get("projectName")
        )

    def _settings(self) -> dict[str, str]:
        """The stack's settings as the engine passes them, with secrets."""
        text = self._command.text(
            ["config", "--show-secrets", "--json", "--stack", self._layout.stack], self._layout.project
        )
        known = {key.partition(":"): item["value"] for key, item in json.loads(text).items()}
        return {name: value for (namespace, _, name), value in known.items() if namespace == stackfile.NAMESPACE}

    def _refuse_protected(self, state: Deployment) -> None:
        """Raises StackError if there are protected resources, before a `down` changes anything. This also applies to an
        unfinished installation, because a cluster may exist without any run knowing it."""
        protected = state.protected()
        if protected and stackfile.protect(stackfile.read(self._layout.stack_file)) is not False:
            raise StackError(
                f"the cluster of stack '{self._layout.stack}' is protected, and nothing was deleted",
                why=f"metal-ipi:protect is not false, so these must stay: {', '.join(protected)}",
                remedy=f"set metal-ipi:protect to false in stacks/{self._layout.stack_file.name}, and run the same "
                "command again",
            )

    def _unprotect(self, state: Deployment) -> None:
        """Removes protection before a `down`, if the stack file allows it. Must come after the removal of old locks,
        because the engine imports no state while there are any."""
        protected = state.protected()
        if protected:
            self._screen.line(
                f"metal-ipi:protect is false: protected resources may be deleted ({', '.join(protected)})"
            )
            import_(self._layout, self._command, state.without_protection())

    # --- operations --------------------------------------------------------------------------------------------------

    def _down(self, stack: automation.Stack) -> None:
        """Destroys the stack's resources, checks that nothing is left, and removes the stack."""
        try:
            self._operations.run("down", stack)
        except RunFailed:
            left = export(self._layout, self._command).left()
            self._screen.line(f"\nstill in the state ({len(left)}):", style="bold")
            for type_, name in left:
                self._screen.line(f"  {name} ({type_})")
            raise
        state = export(self._layout, self._command)
        left = state.left()
        if left:
            names = ", ".join(f"{name} ({type_})" for type_, name in left)
            raise RunFailed("down did not remove everything", why=f"still in the state: {names}", remedy="run it again")
        if self._dirty or self._is_lab:
            self._sweep(state, destroying=True)
        stack.workspace.remove_stack(self._layout.stack)
