"""The program of every cluster: settings → assets → boot artifacts → machines → names → gates → checks → outputs.

`declare` is the list of steps. `stacks.steps` has the steps, `stacks.base` what comes before machines.
"""

from __future__ import annotations

from itertools import chain
from typing import Any

import pulumi

from metal_ipi.components.boot.ipxe import BootSpec
from metal_ipi.components.install.bootstrap import cluster_credentials
from metal_ipi.stacks import api_address, day_two, steps
from metal_ipi.stacks.base import prepared
from metal_ipi.stacks.boot_files import BootFiles
from metal_ipi.stacks.cost import cost
from metal_ipi.stacks.installers import WITH_ETCD
from metal_ipi.stacks.kinds import is_hub
from metal_ipi.stacks.names import Nodes
from metal_ipi.stacks.platforms.registry import facility
from metal_ipi.stacks.pools.cluster import machines_of, pool_of
from metal_ipi.stacks.pools.splitting import split
from metal_ipi.stacks.pools.told import outputs_for_pools
from metal_ipi.stacks.reading import given
from metal_ipi.stacks.sections.dns import NoDns
from metal_ipi.stacks.service_addresses import service_addresses
from metal_ipi.stacks.settings import CLUSTER, Settings, load
from metal_ipi.stacks.stream import boot_artifacts


def main() -> None:
    """Declare the running stack's cluster, pool or hub. Raises SettingsError before any resource is registered."""
    if is_hub(given()):
        from metal_ipi.stacks.hub.program import declare as declare_hub
        from metal_ipi.stacks.hub.settings import HUB

        outputs = declare_hub(HUB.load())
    else:
        settings = load()
        if settings.pool is not None:
            from metal_ipi.stacks.pools.program import declare as declare_pool

            own = pool_of(settings)
            outputs = declare_pool(own, Nodes.of(settings).control_plane, boot_spec(own))
        elif settings.cluster_api is None:
            found = split(settings, pulumi.get_stack(), machines_of(settings, pulumi.get_stack()))
            outputs = declare(found.cluster, boot_spec(settings), whole=settings if found.pools else None)
        else:
            from metal_ipi.stacks.cluster_api.program import declare as declare_on_hub

            outputs = declare_on_hub(settings, CLUSTER.tree(given()))
    for name, value in outputs.items():
        pulumi.export(name, value)


def boot_spec(settings: Settings) -> BootSpec:
    """What the cluster's machines boot. Reads the stream metadata; raises StreamError."""
    return BootSpec(
        artifacts=boot_artifacts(settings),
        architecture=settings.boot.architecture,
        platform_id=facility(settings).ignition_platform,
        installs=settings.boot.install is not None,
        consoles=settings.boot.consoles,
        # RHCOS switches an installed system to FIPS mode at its first boot (openshift/os, 40rhcos-fips). A live system
        # must start in FIPS mode; it cannot be switched later (openshift/os#1332).
        extra=(*settings.boot.kernel_arguments, *(("fips=1",) if settings.install.fips else ())),
    )


def declare(
    settings: Settings, boot: BootSpec, parent: pulumi.Resource | None = None, whole: Settings | None = None
) -> dict[str, pulumi.Input[Any]]:
    """Declare a cluster; returns the stack's outputs, by name.

    Args:
        parent: the parent of all resources; None: the stack.
        whole: the settings of the facility, if pools of workers are in other stacks; None: there are none.
    """
    # Operators run on the nodes of all stacks.
    operators = day_two.operators(whole or settings, facility(whole or settings))
    base = prepared(settings, boot, parent)
    files = BootFiles(base, base.assets.bootstrap)
    control_plane = steps.ordered_pool(base, files, "control-plane", "control-plane", base.nodes.control_plane)
    arbiter = (
        steps.ordered_pool(base, files, "arbiter", "arbiter", base.nodes.arbiters) if base.nodes.arbiters else None
    )
    arbiters = arbiter.machines if arbiter else {}
    workers = steps.ordered_pool(base, files, "worker", "workers", base.nodes.workers)
    bootstrap = steps.bootstrap_machine(base, files, workers.machines)
    machines = {**control_plane.machines, **arbiters, **workers.machines}
    costs = cost(settings, machines, base.invoke)
    dns = steps.cluster_dns(base, control_plane, arbiters, workers, bootstrap)
    credentials = cluster_credentials(dns, base.assets)

    in_place = {node: [dns.records] for node in control_plane.machines} if not bootstrap else {}
    control_plane_installed = steps.installation(base, files, WITH_ETCD, control_plane, credentials, after=in_place)
    control_plane_checks = steps.pool_checks(
        base, "control-plane-checks", control_plane, control_plane_installed, bootstrap
    )
    arbiter_checks = arbiter_installed = None
    if arbiter is not None:
        arbiter_installed = steps.installation(base, files, "arbiter-installation", arbiter, credentials, after={})
        arbiter_checks = steps.pool_checks(base, "arbiter-checks", arbiter, arbiter_installed, bootstrap)
    formed = steps.bootstrap_gates(base, bootstrap, {**control_plane.machines, **arbiters}, dns, control_plane_checks)
    stands = [
        formed,
        *control_plane_checks.passed,
        *(arbiter_checks.passed if arbiter_checks else ()),
        steps.machine_config_gate(
            base, control_plane, {**arbiters, **workers.machines}, control_plane_checks, control_plane_installed
        ),
        *api_address.announced(
            settings,
            base.api_address,
            access=base.access,
            control_plane=control_plane.machines,
            bootstrap=bootstrap,
            after=[formed],
            opts=base.ours,
        ),
    ]
    removal = steps.bootstrap_removal(base, files, bootstrap, dns, after=stands)

    worker_checks = workers_installed = None
    if workers.machines:
        lent = {base.site.lent: [removal.resource]} if base.site.lent and removal else {}
        workers_installed = steps.installation(base, files, "worker-installation", workers, credentials, after=lent)
        worker_checks = steps.pool_checks(base, "worker-checks", workers, workers_installed, bootstrap)

    # A worker may be installed only after the bootstrap machine has given its server back. A control plane machine may
    # be added to a cluster that is formed.
    installed = [
        pool.installed for pool in (control_plane_installed, arbiter_installed, workers_installed) if pool is not None
    ]
    joining = [formed, *chain.from_iterable(installed)]
    alone = [*([removal.resource] if removal else stands), dns.ingress_records]
    ready, complete = steps.completion_gates(base, machines, credentials, worker_checks, joining=joining, alone=alone)
    reached = api_address.ingress_answers(
        settings, base.ingress_address, access=base.access, machines=machines, after=[*joining, *alone], opts=base.ours
    )
    passed = worker_checks.passed if worker_checks else []
    marks = day_two.node_marks(settings, machines, credentials, [ready], base.ours)
    day_two.day_two(
        settings,
        operators,
        day_two.Complete(
            kubeconfig=base.assets.kubeconfig,
            credentials=credentials,
            keys=base.keys,
            after=[complete, ready, *passed, *([marks] if marks else [])],
        ),
        base.components,
    )
    services = service_addresses(
        settings,
        platform=base.platform,
        announcing=workers.machines or control_plane.machines,
        kubeconfig=base.assets.kubeconfig,
        after=[complete, ready, *reached, *passed],
        cluster=base.keys,
        opts=base.components,
    )
    nodes = [each.nodes for each in (control_plane_checks, arbiter_checks, worker_checks) if each is not None]
    address = {} if base.api_address is None else {"address": base.api_address}
    outputs: dict[str, pulumi.Input[Any] | None] = {
        "cluster": {
            "name": settings.cluster_name,
            "domain": settings.domain,
            "version": settings.openshift_version,
        },
        "api": {"url": dns.api_url, **address},
        "ingress": None if base.ingress_address is None else {"address": base.ingress_address},
        "serviceAddresses": None if services is None else {"pools": services},
        "cost": costs,
        "dns": {"needed": dns.needed} if isinstance(settings.dns, NoDns) else None,
        "bootstrap": {"present": removal.present if removal else False},
        "nodes": pulumi.Output.all(*nodes).apply(lambda parts: [node for part in parts for node in part]),
        "kubeconfig": base.assets.kubeconfig,
        "kubeadminPassword": base.assets.kubeadmin_password,
        **(outputs_for_pools(base, credentials, control_plane.machines, control_plane_installed) if whole else {}),
    }
    return {name: value for name, value in outputs.items() if value is not None}
