"""Settings of pools that contradict each other."""

from __future__ import annotations

import re

from metal_ipi.stacks.model import Settings
from metal_ipi.stacks.platforms.registry import facility
from metal_ipi.stacks.pools.splitting import refused
from metal_ipi.stacks.problems import Found
from metal_ipi.stacks.sections.machines import AUTOMATIC


def conflicts(settings: Settings) -> Found:
    """Conflicts between names and numbers of pools, and with other settings."""
    workers = settings.workers
    if workers.pools or workers.per_stack:
        yield from refused(settings)
    # A pool may take servers of a list, for which `workers.count` is the number of all workers.
    counted = {name for name in settings.platform.machines({"worker": workers.count}) if name.startswith("worker-")}
    listed = counted & set(settings.platform.machines({}))
    taken = dict.fromkeys(counted - listed, "workers.count")
    names, lent = dict[str, str](), facility(settings).lent
    for index, pool in enumerate(workers.pools):
        path = f"workers.pools[{index}]"
        if pool.name in names:
            yield f"{path}.name", pool.name, f"{names[pool.name]} is the same", "give each pool a name of its own"
        names.setdefault(pool.name, f"{path}.name")
        if re.fullmatch(rf"{AUTOMATIC}-\d+", pool.name):
            yield (
                f"{path}.name",
                pool.name,
                "such names are reserved for the pools that workers.perStack makes",
                "choose another name",
            )
        machines = settings.of_pool(pool)
        if not machines:
            yield (
                f"{path}.first",
                str(pool.first),
                f"platform.servers lists no server of worker-{pool.first} to worker-{pool.first + pool.count - 1}",
                "list them, or give the numbers that they have",
            )
        if lent is not None and lent.name in machines:
            yield (
                f"{path}.first",
                str(pool.first),
                f"it has {lent.name}, whose server is the bootstrap machine first: this worker must be in the "
                "cluster's own stack",
                "lend the server of a worker that is in no pool (platform.bootstrap.server)",
            )
        if twice := [machine for machine in machines if machine in taken]:
            yield (
                f"{path}.first",
                str(pool.first),
                f"{twice[0]} belongs to {taken[twice[0]]} already",
                "give each pool numbers of its own, after those of workers.count",
            )
        taken |= dict.fromkeys(machines, path)
