"""The command line. Standard output carries one JSON line per figure and nothing else; progress goes to stderr."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.bench.figures import FIGURES, Bench
from tests.bench.measure import BenchError, say
from tests.bench.project import ProjectCopy, ignore_own_variables
from tools import engine
from tools.policies import OFF

WORKERS = (5, 25, 100)
FLEETS = (100, 500)
SERVERS = 200
CLUSTERS = 3


def arguments(given: Sequence[str]) -> argparse.Namespace:
    """The parsed command line; ends the process when a figure is not known."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument(
        "--figures",
        type=_names,
        default=tuple(FIGURES),
        help=f"comma-separated, of {', '.join(FIGURES)} (default: all)",
    )
    parser.add_argument("--workers", type=_numbers, default=WORKERS, help="cluster sizes (default: 5,25,100)")
    parser.add_argument("--fleets", type=_numbers, default=FLEETS, help="what `scale` measures (default: 100,500)")
    parser.add_argument("--pairs", type=int, default=3, help="pairs of previews, ours and bare (default: 3)")
    parser.add_argument("--servers", type=int, default=SERVERS, help="what `ironic` has deployed (default: 200)")
    parser.add_argument("--clusters", type=int, default=CLUSTERS, help="what `clusters` has at once (default: 3)")
    parser.add_argument(
        "--installing", type=int, default=0, help="how many of these the hub installs at once; 0: no limit (default)"
    )
    return parser.parse_args(given)


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name for name in text.split(",") if name)
    unknown = [name for name in names if name not in FIGURES]
    if unknown or not names:
        raise argparse.ArgumentTypeError(f"no such figure: '{', '.join(unknown)}'; there are {', '.join(FIGURES)}")
    return names


def _numbers(text: str) -> tuple[int, ...]:
    numbers = tuple(sorted({int(part) for part in text.split(",")}))
    if numbers[0] < 1:
        raise argparse.ArgumentTypeError(f"a size must be at least 1, not {numbers[0]}")
    return numbers


def main() -> int:
    """Measure; returns 1 when a figure could not be measured. A goal that is not met is a result, not a failure."""
    options = arguments(sys.argv[1:])
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # so that what was started is ended
    ignore_own_variables(os.environ)
    os.environ["POLICY"] = OFF  # nobody judges the bare program, either
    failed = False
    with tempfile.TemporaryDirectory(prefix="metal-ipi-bench-") as directory:
        bench = Bench(
            project=ProjectCopy(Path(directory) / "project"),
            engine=engine.ensure(say),
            scratch=Path(directory),
            workers=options.workers,
            fleets=options.fleets,
            pairs=options.pairs,
            servers=options.servers,
            clusters=options.clusters,
            installing=options.installing,
        )
        for name in options.figures:
            try:
                for line in FIGURES[name](bench):
                    print(json.dumps(line), flush=True)
            except BenchError as error:
                say(f"{name}: {error}")
                print(json.dumps({"figure": name, "error": str(error).partition("\n")[0]}), flush=True)
                failed = True
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
