"""Which workers are in which stack of a facility: pure functions of its settings and of the machines in its cluster's
stack."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from metal_ipi.stacks.model import Settings
from metal_ipi.stacks.names import Nodes
from metal_ipi.stacks.platforms.registry import facility
from metal_ipi.stacks.problems import Found, SettingsError, problems_of
from metal_ipi.stacks.sections.machines import AUTOMATIC, WORKERS_OF_A_STACK, WorkerPool
from metal_ipi.stacks.sections.node_marks import over

_WORKER = "worker-"


@dataclass(frozen=True, kw_only=True)
class Split:
    """A facility, split into stacks."""

    cluster: Settings
    """The settings of the cluster's own stack."""
    pools: Mapping[str, Settings]
    """The settings of each pool's stack, by the pool's name."""


def cluster_of(stack: str, pool: str) -> str:
    """The name of the cluster's stack; `stack` is the name of a pool's stack. Raises SettingsError."""
    cluster = stack.removesuffix(f"-{pool}")
    if cluster in (stack, ""):
        raise _error(
            stack,
            "pool",
            pool,
            f"the stack of a pool must be called <the cluster's stack>-<the pool's name>, and this is '{stack}'",
            f"create it as `pulumi stack init <the cluster's stack>-{pool}`",
        )
    return cluster


def split(settings: Settings, stack: str, there: AbstractSet[str] = frozenset()) -> Split:
    """Split a facility.

    Args:
        settings: the settings of the whole facility.
        stack: the name of the cluster's stack, for messages.
        there: the machines in the state of the cluster's stack, by short host name.

    Raises:
        SettingsError: Existing machines would move to another stack, which would delete and order them again.
    """
    pools = {pool.name: pool for pool in (*settings.workers.pools, *_automatic(settings, there))}
    members = {name: settings.of_pool(pool) for name, pool in pools.items()}
    away = frozenset(machine for machines in members.values() for machine in machines)
    prefix = f"{settings.cluster_name}-"
    if moved := sorted((each for each in away if prefix + each in there), key=_number):
        per = settings.workers.per_stack
        path, value = ("workers.pools", "{...}") if per is None else ("workers.perStack", str(per))
        raise _error(
            stack,
            path,
            value,
            f"{_few(moved)} are in the stack of the cluster, and a machine cannot move to another stack: they would "
            "be deleted and installed anew",
            "give the pool other numbers, or raise workers.perStack (0: one stack); to have them installed anew, "
            "first remove them from the stack file and run `up`",
        )
    own = tuple(machine for machine in settings.machines if machine not in away)
    if not pools:
        return Split(cluster=settings, pools={})
    workers = settings.workers.model_copy(update={"count": len(_workers(own)), "pools": ()})
    return Split(
        cluster=settings.narrowed(own, workers),
        pools={name: _of_pool(settings, pool, members[name]) for name, pool in pools.items()},
    )


def share(settings: Settings, stack: str, there: AbstractSet[str]) -> Settings:
    """The settings of one stack of a facility, whose own name is `stack`. Other arguments and errors as for `split`."""
    if settings.pool is None:
        return split(settings, stack, there).cluster
    return of_pool(settings, cluster_of(stack, settings.pool), there)


def seen(settings: Settings, stack: str, there: AbstractSet[str]) -> list[Any]:
    """All that the program of one stack (`stacks.program.main`) gets of the settings: nothing else of them can change
    what it declares. Arguments and errors as for `share`."""
    own = share(settings, stack, there)
    if settings.pool is not None:
        return [own, own.machines, Nodes.of(settings).control_plane]
    # Operators run on the nodes of all stacks, and the cluster's stack has outputs for pools if there are some.
    whole = settings if settings.day_two.model_fields_set else None
    return [own, own.machines, own.machines == settings.machines, whole]


def of_pool(settings: Settings, stack: str, there: AbstractSet[str]) -> Settings:
    """The settings of the stack of the pool `settings.pool`. Raises SettingsError if there is no such pool."""
    assert settings.pool is not None
    pools = split(settings, stack, there).pools
    if settings.pool not in pools:
        known = ", ".join(pools) or "none"
        raise _error(stack, "pool", settings.pool, f"there is no such pool; there is: {known}", "name one of them")
    return pools[settings.pool]


def asks_state(settings: Settings) -> bool:
    """Whether the split depends on the machines in the state of the cluster's stack."""
    return bool(settings.workers.pools) or bool(_automatic(settings, frozenset()))


def refused(settings: Settings) -> Found:
    """Settings that keep all workers of a facility in one stack."""
    if settings.cluster_api is not None:
        yield (
            "clusterApi",
            "{...}",
            "the workers of a cluster on a hub are objects on the hub, and in no stack",
            "remove workers.pools and workers.perStack",
        )
    yield from settings.platform.against_pools()


def _automatic(settings: Settings, there: AbstractSet[str]) -> Sequence[WorkerPool]:
    """The automatic pools, of workers that are in no pool of the settings."""
    per = WORKERS_OF_A_STACK if settings.workers.per_stack is None else settings.workers.per_stack
    named = {machine for pool in settings.workers.pools for machine in settings.of_pool(pool)}
    rest = [machine for machine in _workers(settings.machines) if machine not in named]
    if per == 0 or len(rest) <= per or next(refused(settings), None) is not None:
        return ()
    beyond = [_number(machine) for machine in rest if _number(machine) >= per]
    lent = facility(settings).lent
    if lent is not None and lent.number in beyond:
        return ()
    asked = settings.workers.per_stack is not None
    if not asked and any(f"{settings.cluster_name}-{_WORKER}{number}" in there for number in beyond):
        return ()  # the stack was made before automatic pools: it keeps all its workers, and gets the new ones
    firsts = sorted({number // per * per for number in beyond})
    last = max(beyond, default=0)
    return [WorkerPool(name=f"{AUTOMATIC}-{first}", first=first, count=min(per, last + 1 - first)) for first in firsts]


def _of_pool(settings: Settings, pool: WorkerPool, machines: tuple[str, ...]) -> Settings:
    """The settings of a pool's stack: those for all workers, overridden by those of the pool."""
    every = settings.workers
    workers = every.model_copy(
        update={
            "count": len(machines),
            "pools": (),
            "kernel_arguments": (*every.kernel_arguments, *pool.kernel_arguments),
            "labels": {**every.labels, **pool.labels},
            "taints": over(pool.taints, every.taints),
        }
    )
    return settings.narrowed(machines, workers, pool.name)


def _workers(machines: Sequence[str]) -> list[str]:
    return [machine for machine in machines if machine.startswith(_WORKER)]


def _number(machine: str) -> int:
    return int(machine.rpartition("-")[2])


def _few(machines: Sequence[str]) -> str:
    return f"{machines[0]} to {machines[-1]} ({len(machines)})" if len(machines) > 1 else machines[0]


def _error(stack: str, path: str, value: str, why: str, remedy: str) -> SettingsError:
    return SettingsError(stack, problems_of(iter([(path, value, why, remedy)])))
