"""Runs a program without work of Pulumi's SDK that nobody uses."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from typing import Any, TypeVar

import pulumi
from pulumi.runtime import resource
from pulumi.runtime.proto.source_pb2 import StackTrace

T = TypeVar("T")


class Loop(asyncio.SelectorEventLoop):
    """An event loop for a program whose monitor is in this process: it does at once what the SDK has threads do, such
    as a call of the monitor. Passing each call to a thread and back took 0.09 of the 0.32 s of a plan while two other
    threads were busy, and hardly any time without them."""

    def run_in_executor(self, executor: Any, func: Callable[..., T], *args: Any) -> asyncio.Future[T]:
        """Calls the function."""
        done: asyncio.Future[T] = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:
            done.set_exception(error)
        return done


async def declared(program: Callable[[], T]) -> T:
    """Run a program, and let its registrations begin.

    If the SDK's runtime sees none, it waits for outputs instead and walks over all pending ones each time one is done;
    that took longer than everything else in a preview of 100 workers.
    """
    _spare_time()
    result = program()
    await asyncio.sleep(0)
    return result


def _spare_time() -> None:
    """Skips work that takes a third of the time of a preview of 100 workers, and a sixth of the size of its state.

    - For each resource the SDK sends several debug messages to the engine and waits for each answer. The engine drops
      them, because our commands do not use `--debug`.
    - The garbage collector searches all objects after each 700 new ones, but the program keeps nearly all objects until
      its end. The Cluster API providers live on, and keep garbage longer.
    - For each resource the state stores the complete call stack of its declaration, and its innermost call again. The
      state is written at every step.
    """
    pulumi.log.debug = _unheard
    resource._get_stack_trace = StackTrace  # pyright: ignore[reportPrivateUsage]
    gc.set_threshold(100_000, 50, 50)


def _unheard(*message: object, **about: object) -> None:
    """Replaces `pulumi.log.debug`."""
