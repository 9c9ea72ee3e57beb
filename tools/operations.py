"""Runs the engine's operations on a stack, and shows their events and their results."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from pulumi import automation
from pulumi.automation.errors import CommandError

from tools import report
from tools.automation import EngineCommand, last_words
from tools.cost import Bill
from tools.display import Display
from tools.errors import RunFailed
from tools.files import write_private
from tools.layout import Layout
from tools.pictures import record
from tools.policies import Policies, policies
from tools.progress import Progress
from tools.screen import Screen

PARALLEL = 128
"""Maximum number of resources in parallel. Most of them only wait (for machines, gates, checks), so with the engine's
default, four per processor, waiting resources would block others."""


def preview(
    stack: automation.Stack,
    rules: Policies,
    on_event: Callable[[automation.EngineEvent], object],
    replace: list[str] | None = None,
) -> None:
    """Previews an `up` with policies. Raises CommandError."""
    stack.preview(
        parallel=PARALLEL,
        replace=replace,
        on_event=on_event,
        policy_packs=rules.packs,
        policy_pack_configs=rules.configurations,
    )


@dataclass(frozen=True, kw_only=True)
class Operations:
    """The engine's operations on one stack. Each raises RunFailed if it fails, after printing what failed."""

    layout: Layout
    command: EngineCommand
    screen: Screen

    def ask_policies(self, stack: automation.Stack, replace: list[str] | None) -> None:
        """Previews an `up`, so that a policy violation is found before anything is changed."""
        progress = Progress(clock=time.monotonic)
        failure: CommandError | None = None
        try:
            preview(stack, policies(self.layout), progress.handle, replace)
        except CommandError as error:
            failure = error
        if failure is None and not progress.failures():
            return
        report.tell_failures(self.screen, "up", progress, last_words(failure) if failure else "")
        raise RunFailed(f"up of stack '{self.layout.stack}' was refused, and nothing was changed") from failure

    def run(
        self,
        operation: str,
        stack: automation.Stack,
        replace: list[str] | None = None,
        also: Sequence[Callable[[automation.EngineEvent], None]] = (),
    ) -> None:
        """Runs `up`, `down`, `refresh` or `preview`. `also`: functions that get every event of the engine."""
        started, began = time.monotonic(), datetime.now(UTC)
        self.layout.log.unlink(missing_ok=True)
        if operation == "up":
            self.layout.timeline.unlink(missing_ok=True)  # a killed run leaves no timeline
        bill = Bill()
        with Display(self.screen, also=[bill.handle, *also]) as display:
            progress = display.progress
            try:
                if operation == "up":
                    rules = policies(self.layout)
                    stack.up(
                        parallel=PARALLEL,
                        replace=replace,
                        on_event=display.on_event,
                        policy_packs=rules.packs,
                        policy_pack_configs=rules.configurations,
                    )
                elif operation == "down":
                    stack.destroy(parallel=PARALLEL, on_event=display.on_event)
                elif operation == "refresh":
                    stack.refresh(parallel=PARALLEL, on_event=display.on_event)
                else:
                    preview(stack, policies(self.layout), display.on_event)
            except CommandError as error:
                failure = error
            else:
                failure = None
        if operation == "up":
            failed = failure is not None or bool(progress.failures())
            run = record.of_progress(progress, self.layout.stack, began, started, self.screen.redact, failed=failed)
            write_private(self.layout.timeline, record.write(run))
        if failure is not None:
            self._tell_failure(operation, progress, failure)
        if progress.failures():
            report.tell_failures(self.screen, operation, progress, "")
            raise RunFailed(f"{operation} of stack '{self.layout.stack}' failed")
        nodes = report.nodes_table(progress.outputs.get("nodes"), self.screen.redact)
        for table in (nodes, report.phases_table(progress)):
            if table is not None and operation == "up":
                self.screen.show(table)
        if operation == "preview" and (costs := bill.table()):
            self.screen.show(costs)
        if operation in {"up", "preview"} and (cost := bill.line()):
            self.screen.line(cost)
        self.screen.line(report.summary(operation, progress, time.monotonic() - started), style="bold green")

    def _tell_failure(self, operation: str, progress: Progress, failure: CommandError) -> None:
        status = self.command.last_status
        otherwise = last_words(failure)
        if status < 0:
            otherwise = f"the engine was killed (signal {-status}); run the same command again, it continues from there"
        if not self.layout.log.exists():
            write_private(self.layout.log, self.screen.redact(str(failure)))
        report.tell_failures(self.screen, operation, progress, otherwise)
        raise RunFailed(f"{operation} of stack '{self.layout.stack}' failed") from failure
