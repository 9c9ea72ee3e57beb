"""Skips work of Pulumi's SDK that nobody uses."""

from __future__ import annotations

import gc

import pulumi
from pulumi.runtime import resource
from pulumi.runtime.proto.source_pb2 import StackTrace


def spare_time() -> None:
    """Before a program runs. It takes a third of the time of a preview of 100 workers, and a sixth of the size of its
    state.

    - For each resource the SDK sends several debug messages to the engine and waits for each answer. The engine drops
      them, because our commands do not use `--debug`.
    - The garbage collector searches all objects after each 700 new ones, but the program keeps nearly all objects until
      its end.
    - For each resource the state stores the complete call stack of its declaration, and its innermost call again. The
      state is written at every step.
    """
    pulumi.log.debug = _unheard
    resource._get_stack_trace = StackTrace  # pyright: ignore[reportPrivateUsage]
    gc.set_threshold(100_000, 50, 50)


def _unheard(*message: object, **about: object) -> None:
    """Replaces `pulumi.log.debug`."""
