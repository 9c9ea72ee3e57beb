"""Errors of the commands.

ToolError              what went wrong, why, and what to do about it
  EngineMissing        no usable Pulumi engine, and it could not be built
  StackError           the stack's files or state do not allow the command
  LabError             the lab could not be set up, started, entered or stopped
  RunFailed            the engine's operation failed; its diagnostics are printed already
  RecoveryFailed       the leftovers of an interrupted run could not be removed
"""

from __future__ import annotations


class ToolError(Exception):
    """Ends a command with exit status 1."""

    def __init__(self, what: str, *, why: str = "", remedy: str = "") -> None:
        lines = [what]
        if why:
            lines.append(f"  why: {why}")
        if remedy:
            lines.append(f"  remedy: {remedy}")
        super().__init__("\n".join(lines))


class EngineMissing(ToolError):
    """There is no Pulumi engine to run."""


class StackError(ToolError):
    """The stack's files or state do not allow the command."""


class LabError(ToolError):
    """An operation of the lab failed."""


class RunFailed(ToolError):
    """The engine's operation failed."""


class RecoveryFailed(ToolError):
    """The leftovers of an interrupted run could not be removed."""
