"""Running whole processes by the clock, in alternation, and the lines that come of it."""

from __future__ import annotations

import contextlib
import resource
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

Line = dict[str, object]
"""One figure as printed."""


class BenchError(Exception):
    """Something to be measured did not run; the first line says what, the rest what it printed."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """A process that ended well."""

    seconds: float
    """From its start to its end."""
    out: str
    """What it printed on standard output."""
    memory_mib: int
    """The most memory that the process and its descendants had at one time; pages that they share count once."""
    cpu_seconds: float
    """Processor time of the process and all of its descendants that were waited for."""
    engine_cpu_seconds: float
    """That of the engines among them."""


def say(text: str) -> None:
    """Progress, on stderr."""
    print(text, file=sys.stderr, flush=True)


_ENGINE = "pulumi"


class _Watch(threading.Thread):
    """Looks at a process and its descendants until it is told to end: four times a second, or less often where looking
    would take more than a twentieth of a processor (adding up an engine's GiB does)."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.most = 0
        """Bytes of memory at one time."""
        self._engines: dict[int, float] = {}
        self._process = psutil.Process(pid)
        self._over = threading.Event()
        self.start()

    def run(self) -> None:
        pause = 0.25
        while not self._over.wait(pause):
            began, total = time.monotonic(), 0
            with contextlib.suppress(psutil.NoSuchProcess):
                for each in (self._process, *self._process.children(recursive=True)):
                    with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                        if each.name() == _ENGINE:
                            self._engines[each.pid] = sum(each.cpu_times()[:2])
                        total += each.memory_full_info().pss
            self.most = max(self.most, total)
            pause = max(pause, 20 * (time.monotonic() - began))

    @property
    def engine_cpu_seconds(self) -> float:
        """Processor time of all engines, but for the last moments of each."""
        return sum(self._engines.values())

    def end(self) -> None:
        """Look no more."""
        self._over.set()
        self.join()


def timed(command: Sequence[str], *, cwd: Path, env: Mapping[str, str], limit: float) -> Run:
    """Run a process to its end; raises BenchError when it fails or takes more than `limit` seconds.

    One that takes too long, or that we are interrupted at, is asked to end (its own containment ends what it started).
    """
    name = " ".join(command)
    started, spent = time.monotonic(), _waited_for()
    with subprocess.Popen(
        command, cwd=cwd, env=dict(env), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, errors="replace",
    ) as process:  # fmt: skip
        watch = _Watch(process.pid)
        try:
            out, err = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            raise BenchError(f"`{name}` took more than {limit:.0f} s\n{_end(process)}") from None
        except BaseException:
            _end(process)
            raise
        finally:
            watch.end()
    seconds = time.monotonic() - started
    if process.returncode != 0:
        raise BenchError(f"`{name}` ended with status {process.returncode}\n{out}{err}")
    return Run(
        seconds=seconds,
        out=out,
        memory_mib=watch.most >> 20,
        cpu_seconds=_waited_for() - spent,
        engine_cpu_seconds=watch.engine_cpu_seconds,
    )


def _waited_for() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _end(process: subprocess.Popen[str]) -> str:
    process.terminate()
    try:
        return "".join(process.communicate(timeout=60))
    except subprocess.TimeoutExpired:
        process.kill()
        return "".join(process.communicate())


def alternate(ours: Callable[[], float], bare: Callable[[], float], pairs: int) -> tuple[list[float], list[float]]:
    """Seconds of both, measured in turn: what else the machine does then weighs on both alike."""
    each: tuple[list[float], list[float]] = ([], [])
    for number in range(pairs):
        each[0].append(ours())
        each[1].append(bare())
        say(f"  pair {number + 1} of {pairs}: {each[0][-1]:.2f} s, baseline {each[1][-1]:.2f} s")
    return each


def compared(
    figure: str, ours: Sequence[float], bare: Sequence[float], *, goal: float | None = None, **details: object
) -> Line:
    """A figure that is a ratio of two times: medians, their quotient, and whether it is within the goal, if any."""
    seconds, baseline = statistics.median(ours), statistics.median(bare)
    line: Line = {"figure": figure, **details, "seconds": round(seconds, 2), "baseline_seconds": round(baseline, 2)}
    line["ratio"] = round(seconds / baseline, 2)
    return line | ({} if goal is None else {"goal": goal, "met": seconds / baseline <= goal})


def slope(figure: str, counts: Mapping[int, int], goal: float, *, of: str = "resources") -> Line:
    """How many per worker: the growth from the smallest to the largest cluster, for what is there once costs once."""
    few, many = min(counts), max(counts)
    each = (counts[many] - counts[few]) / (many - few)
    sizes = {str(workers): counts[workers] for workers in sorted(counts)}
    return {"figure": figure, of: sizes, "per_worker": round(each, 2), "goal": goal, "met": each <= goal}


def skipped(figure: str, reason: str) -> Line:
    """A figure that cannot be measured here."""
    return {"figure": figure, "skipped": reason}
