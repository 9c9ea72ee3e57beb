"""The stacks of one facility, for the outer process: the cluster's stack, and those of its worker pools."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from tools import stackfile
from tools.errors import RunFailed, StackError
from tools.layout import Layout
from tools.program import import_from
from tools.states import state_of

_MIB_OF_A_STACK, _MIB_OF_A_WORKER = 300, 6
"""Memory that an `up` needs for engine, program and plug-ins, in MiB. docs/scale.md has measurements."""


@dataclass(frozen=True, kw_only=True)
class Pools:
    """The worker pools of a facility."""

    wanted: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, "tuple[str, ...]"])
    """The pools in the stack file, with the host names of their workers."""
    gone: Sequence[str] = ()
    """The pools that have a state but are no longer in the stack file."""


def pools_of(layout: Layout, document: stackfile.Tree) -> Pools:
    """The pools of a facility. Raises StackError if its settings are wrong, or if a worker would move to another
    pool."""
    wanted = dict[str, tuple[str, ...]]()
    if stackfile.may_have_pools(document) and not stackfile.is_hub(document):
        import_from(layout.root)
        try:
            from metal_ipi.stacks.names import Nodes
            from metal_ipi.stacks.pools.splitting import split
            from metal_ipi.stacks.settings import parse
        except ModuleNotFoundError:
            return Pools()  # an old commit without pools, with which a preview report compares

        try:
            settings = parse(stackfile.values(stackfile.for_rehearsal(document)), layout.stack)
            found = split(settings, layout.stack, frozenset(state_of(layout).machines()))
        except ValueError as error:
            raise StackError(str(error)) from error
        wanted = {name: tuple(node.hostname for node in Nodes.of(own).workers) for name, own in found.pools.items()}
    pools = Pools(wanted=wanted, gone=[name for name in layout.pools if name not in wanted])
    _refuse_moves(layout, pools)
    return pools


def made(layout: Layout) -> dict[str, tuple[str, ...]]:
    """The pools whose stacks have a state, with the host names of their workers."""
    return {pool: tuple(state_of(layout.of_pool(pool)).machines()) for pool in layout.pools}


def _refuse_moves(layout: Layout, pools: Pools) -> None:
    """Raises StackError if a worker would move to another pool: it would be deleted there and installed again here."""
    owner = {name: pool for pool, names in pools.wanted.items() for name in names}
    for pool, there in made(layout).items():
        moved = [name for name in there if owner.get(name, pool) != pool]
        if moved:
            raise StackError(
                f"{', '.join(moved)} of pool '{pool}' would move to pool '{owner[moved[0]]}'; nothing was changed",
                why="a machine cannot move to another stack: it would be deleted, and installed anew",
                remedy="set workers.pools (workers.perStack) back; to have them installed anew, first remove them "
                "from the stack file and run `up`",
            )


def all_wanted() -> bool:
    """Whether also the pools of which nothing has changed are worked on. Raises StackError if POOLS is not `all`."""
    wanted = os.environ.get("POOLS", "")
    if wanted not in ("", "all"):
        raise StackError(
            f"POOLS is '{wanted}'",
            why="it says which pools are worked on: without it, those of which something has changed since their last "
            "`up`",
            remedy="do not set it, or set it to all",
        )
    return wanted == "all"


def most_at_once() -> int | None:
    """How many pools the user wants in parallel at most; None: as many as the memory allows. Raises StackError if
    POOLS_AT_ONCE is not a number above 0."""
    wanted = os.environ.get("POOLS_AT_ONCE", "")
    if not wanted:
        return None
    if not (wanted.isascii() and wanted.isdigit() and int(wanted)):
        raise StackError(
            f"POOLS_AT_ONCE is '{wanted}'",
            why="it is how many pools are worked on in parallel at most: a number above 0",
            remedy="do not set it, or set it to such a number",
        )
    return int(wanted)


def check_wanted() -> None:
    """Raises StackError if POOLS or POOLS_AT_ONCE cannot be understood."""
    all_wanted()
    most_at_once()


def at_once(pools: Mapping[str, tuple[str, ...]], available: int) -> int:
    """How many pools run in parallel with `available` MiB of free memory."""
    largest = max((len(names) for names in pools.values()), default=0)
    fit = available // (_MIB_OF_A_STACK + _MIB_OF_A_WORKER * largest)
    return max(1, min(len(pools), fit, most_at_once() or len(pools)))


def available_mib() -> int:
    """The memory that is available without swapping, in MiB; 0 if unknown."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) >> 10
    return 0


def beside(operation: str, layout: Layout, pools: Mapping[str, tuple[str, ...]], run: Callable[[Layout], None]) -> None:
    """Runs an operation on the stacks of pools, as many in parallel as the memory allows. A failed pool does not stop
    the others. Raises RunFailed with the names of the failed ones."""
    if not pools:
        return
    failed = dict[str, str]()

    def one(pool: str) -> None:
        try:
            run(layout.of_pool(pool))
        except (Exception, SystemExit) as error:
            failed[pool] = f"{error}" if isinstance(error, RunFailed) else f"its own message is above ({error})"

    with ThreadPoolExecutor(at_once(pools, available_mib()), thread_name_prefix="pool") as workers:
        for done in [workers.submit(one, pool) for pool in pools]:
            done.result()
    if failed:
        others = [pool for pool in pools if pool not in failed]
        raise RunFailed(
            f"{operation} of {_names(list(failed))} of stack '{layout.stack}' failed",
            why="; ".join(f"{pool}: {why}" for pool, why in failed.items()),
            remedy=f"correct that and run the same command again: it continues from there{_well(others)}",
        )


def _names(pools: Sequence[str]) -> str:
    return f"pool {pools[0]}" if len(pools) == 1 else f"pools {', '.join(pools)}"


def _well(others: Sequence[str]) -> str:
    return f"; {_names(others)} succeeded" if others else ""


def replaced(pools: Pools, wanted: str) -> dict[str | None, str]:
    """The machines to replace, by pool; None is the cluster's own stack. `wanted` is the value of REPLACE."""
    owner = {name: pool for pool, names in pools.wanted.items() for name in names}
    found = dict[str | None, list[str]]()
    for name in wanted.replace(",", " ").split():
        found.setdefault(owner.get(name), []).append(name)
    return {pool: " ".join(names) for pool, names in found.items()}
