"""The progress of an operation, from the engine's events. No output and no threads: gets events, returns lines."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pulumi.automation import EngineEvent
from pulumi.automation.events import DiagnosticEvent, PolicyEvent, StepEventMetadata

from tools.state import STACK_TYPE, urn_name

GATE = "metal-ipi:index:Gate"
_COLOUR = re.compile(r"<\{%.*?%\}>|\x1b\[[0-9;]*m")
DONE = {
    "create": "created",
    "update": "updated",
    "delete": "deleted",
    "replace": "replaced",
    "create-replacement": "created in place of the old one",
    "delete-replaced": "deleted the old one",
    "refresh": "refreshed",
    "discard": "forgotten",
    "import": "imported",
}
_QUIET = frozenset({"same", "read", "refresh", "replace"})
"""Operations without a line: nothing changes, or another operation of the same resource has a line."""
_CONSEQUENCES = ("an unhandled error occurred", "update failed", "resource monitor shut down", "preview failed")
"""Beginnings of messages that only report the consequence of another failure."""


@dataclass(kw_only=True)
class Step:
    """One resource that the engine works on."""

    urn: str
    type: str
    op: str
    started: float
    ended: float | None = None
    status: str = ""
    """The latest message about it."""
    observed: str = ""
    """What a gate observed when it passed."""
    failed: bool = False

    @property
    def is_gate(self) -> bool:
        """Whether it is a gate, which only waits."""
        return self.type == GATE

    @property
    def title(self) -> str:
        """The resource's name for users."""
        name = urn_name(self.urn)
        return f"gate {name}" if self.is_gate else f"{name} ({self.type.rpartition(':')[2]})"


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line of output."""

    text: str
    style: str = ""


@dataclass(kw_only=True)
class Progress:
    """The state of one operation."""

    clock: Callable[[], float]
    """A clock in seconds; only differences are used."""
    steps: dict[str, Step] = field(default_factory=dict[str, Step])
    """All resources seen, each with its latest operation, in the order in which they began."""
    changes: Counter[str] = field(default_factory=Counter[str])
    """Operation to its number of resources, from the engine's summary."""
    errors: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """URN of a failed resource to its messages; the stack's own have the empty string as key."""
    advice: dict[str, dict[str, None]] = field(default_factory=dict[str, dict[str, None]])
    """Rule name to the messages of policies that only advise."""
    outputs: dict[str, Any] = field(default_factory=dict[str, Any])
    """The stack's outputs, once known; the engine masks secrets."""
    _forbidden: dict[str, dict[str, None]] = field(default_factory=dict[str, dict[str, None]])

    def handle(self, event: EngineEvent) -> list[Line]:
        """Handles one event; returns the lines to print."""
        if event.resource_pre_event:
            self._begin(event.resource_pre_event.metadata)
        elif event.res_outputs_event:
            return self._end(event.res_outputs_event.metadata, planning=bool(event.res_outputs_event.planning))
        elif event.res_op_failed_event:
            return self._fail(event.res_op_failed_event.metadata)
        elif event.diagnostic_event:
            return self._diagnose(event.diagnostic_event)
        elif event.policy_event:
            return self._judge(event.policy_event)
        elif event.summary_event:
            self.changes.update(
                {str(getattr(k, "value", k)): v for k, v in event.summary_event.resource_changes.items()}
            )
        return []

    def violations(self) -> dict[str, list[str]]:
        """Rule name to the messages of violated policies."""
        return {rule: list(messages) for rule, messages in self._forbidden.items()}

    def waiting(self) -> list[Step]:
        """The unfinished steps: gates first, then the oldest."""
        open_ = [step for step in self.steps.values() if step.ended is None]
        return sorted(open_, key=lambda step: (not step.is_gate, step.started))

    def changed(self) -> dict[str, int]:
        """Operation to its number of changed resources; empty if nothing changed."""
        return {op: count for op, count in self.changes.items() if op not in {"same", "read", "refresh"} and count}

    def failures(self, *, policies: bool = True) -> list[tuple[str, str]]:
        """Title and message of each failure, without duplicates and mere consequences."""
        forbidden = self._forbidden if policies else {}
        found: dict[tuple[str, str], None] = {
            (f"policy {rule}", message): None for rule, messages in forbidden.items() for message in messages
        }
        for urn, messages in self.errors.items():
            step = self.steps.get(urn)
            title = step.title if step else (urn_name(urn) if urn and f"::{STACK_TYPE}::" not in urn else "")
            for message in messages:
                found[(title, message)] = None
        for step in self.steps.values():
            if step.failed and step.urn not in self.errors:
                found[(step.title, step.status or f"{step.op} failed, without a message")] = None
        causes = [item for item in found if not item[1].startswith(_CONSEQUENCES)]
        return causes or ([] if self._forbidden else list(found))

    def _begin(self, metadata: StepEventMetadata) -> None:
        if _is_real(metadata) and metadata.op not in {"same", "read"}:
            op = str(getattr(metadata.op, "value", metadata.op))
            self.steps[metadata.urn] = Step(urn=metadata.urn, type=metadata.type, op=op, started=self.clock())

    def _end(self, metadata: StepEventMetadata, *, planning: bool) -> list[Line]:
        if metadata.type == STACK_TYPE and metadata.new is not None:
            self.outputs = dict(metadata.new.outputs or {})
        step = self.steps.get(metadata.urn)
        if step is None or step.ended is not None:
            return []
        step.ended = self.clock()
        if step.op in _QUIET:
            return []
        if planning:
            return [Line(text=f"  {step.op:<8} {step.title}")]
        took = step.ended - step.started
        if step.is_gate and metadata.new is not None:
            step.observed = str((metadata.new.outputs or {}).get("observed") or "")
        if step.is_gate and step.op in {"create", "update"}:
            return [Line(text=f"  {step.title}: passed after {took:.0f} s", style="green")]
        return [Line(text=f"  {step.title}: {DONE.get(step.op, step.op)} ({took:.1f} s)")]

    def _fail(self, metadata: StepEventMetadata) -> list[Line]:
        step = self.steps.get(metadata.urn)
        if step is None or step.failed:
            return []
        step.failed, step.ended = True, self.clock()
        took = step.ended - step.started
        return [Line(text=f"  {step.title}: {step.op} failed after {took:.0f} s", style="red")]

    def _judge(self, event: PolicyEvent) -> list[Line]:
        # The library puts the rule's description on the first line of each message.
        message = plain(event.message).partition("\n")[2] or plain(event.message)
        if event.enforcement_level == "mandatory":
            self._forbidden.setdefault(event.policy_name, {})[message] = None
            return []
        messages = self.advice.setdefault(event.policy_name, {})
        if message in messages:
            return []
        messages[message] = None
        return [Line(text=f"  policy {event.policy_name} advises: {message}", style="yellow")]

    def _diagnose(self, event: DiagnosticEvent) -> list[Line]:
        message = plain(event.message)
        if not message:
            return []
        urn = event.urn or ""
        step = self.steps.get(urn)
        if event.severity == "error":
            messages = self.errors.setdefault(urn, [])
            if message not in messages:
                messages.append(message)
            return []
        if step is not None and step.ended is None:
            step.status = message
        if event.ephemeral or event.severity not in {"info", "warning"}:
            return []
        prefix = f"{step.title}: " if step else ""
        return [Line(text=f"  {prefix}{message}", style="yellow" if event.severity == "warning" else "")]


def plain(message: str) -> str:
    """A message without colours. Of a Python traceback only the last line remains, which has the error."""
    text = _COLOUR.sub("", message).strip()
    head, found, trace = text.partition("Traceback (most recent call last)")
    if found:
        head = head.strip().removeprefix("python inline source runtime error:").strip()
        text = head or trace.strip().splitlines()[-1].strip()
    return text


def _is_real(metadata: StepEventMetadata) -> bool:
    """Whether a step is about a resource of a provider: not the stack, a provider or a component."""
    state = metadata.new or metadata.old
    return not metadata.type.startswith("pulumi:") and bool(state and state.custom)
