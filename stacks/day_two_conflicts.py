"""Conflicts of settings within `dayTwo`, and between `dayTwo` and other settings."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import chain

from metal_ipi.components.addons import ready_made
from metal_ipi.stacks.model import Settings
from metal_ipi.stacks.platforms.contract import Facility
from metal_ipi.stacks.problems import Found
from metal_ipi.stacks.sections.day_two import Role
from metal_ipi.stacks.sections.image_registry import ClaimRegistry, NoRegistry
from metal_ipi.stacks.sections.service_addresses import OPENSHIFT_CATALOG

_PATH = "dayTwo"


def conflicts(settings: Settings, site: Facility) -> Found:
    """All conflicts of `dayTwo`."""
    found = (_catalog(settings), _capabilities(settings), _lvm(settings), _roles(settings), _operators(settings))
    yield from chain(*found, _health(settings, site), _taints(settings), _registry(settings))


def _machines(settings: Settings, role: Role | None) -> list[str]:
    return [name for name in settings.machines if role is None or name.startswith(f"{role}-")]


def _catalogs(settings: Settings) -> Iterator[tuple[str, str]]:
    """The catalogues in use: (setting, catalogue)."""
    section = settings.day_two
    if section.lvm_storage or section.nm_state or section.node_health_check:
        yield "catalog", section.catalog
    for number, each in enumerate(section.operators):
        yield ("catalog", section.catalog) if each.catalog is None else (f"operators[{number}].catalog", each.catalog)


def _catalog(settings: Settings) -> Found:
    for path, catalog in dict.fromkeys(_catalogs(settings)):
        if settings.install.distribution == "okd" and catalog == OPENSHIFT_CATALOG:
            yield f"{_PATH}.{path}", catalog, "OKD has no such catalogue", "set it to community-operators"


def _capabilities(settings: Settings) -> Found:
    given = settings.install_config.capabilities
    operators = ("OperatorLifecycleManager", "marketplace") if dict(_catalogs(settings)) else ()
    registry = ("ImageRegistry",) if settings.day_two.registry is not None else ()
    for name in (*operators, *registry):
        if given is not None and settings.lacks(name):
            yield (
                "installConfig.capabilities.additionalEnabledCapabilities",
                ", ".join(given.additional_enabled_capabilities) or "(none)",
                f"{_PATH} needs {name}, and the cluster would not have it",
                f"add {name}",
            )


def _lvm(settings: Settings) -> Found:
    section = settings.day_two.lvm_storage
    if section is None or settings.boot.install is None:
        return
    for number, disk in enumerate(section.disks):
        taken = [
            name for name in _machines(settings, section.role) if settings.install_device(name).device_name == disk
        ]
        if taken:
            yield (
                f"{_PATH}.lvmStorage.disks[{number}]",
                disk,
                f"{', '.join(taken)} would be installed to this disk",
                "give another disk, or install to another one",
            )


def _roles(settings: Settings) -> Found:
    section = settings.day_two
    named: list[tuple[str, Role | None]] = []
    if section.lvm_storage is not None:
        named.append(("lvmStorage", section.lvm_storage.role))
    if section.node_health_check is not None:
        named.append(("nodeHealthCheck", section.node_health_check.role))
    for number, policy in enumerate(section.nm_state.policies if section.nm_state else ()):
        named.append((f"nmState.policies[{number}]", policy.role))
    for path, role in named:
        if not _machines(settings, role):
            yield f"{_PATH}.{path}.role", str(role), "there is no machine of this role", "name the other role"


def _health(settings: Settings, site: Facility) -> Found:
    section, path = settings.day_two.node_health_check, f"{_PATH}.nodeHealthCheck"
    if section is None:
        return
    if isinstance(site.bmcs, str):
        yield path, "given", site.bmcs, "remove it; nodes of servers of your own (platform.type redfish) can have it"
        return
    machines = _machines(settings, section.role)
    needed = math.ceil(len(machines) * section.min_healthy_percent / 100)
    if machines and needed == len(machines):  # node-healthcheck-operator rounds up as well
        most = 100 * (needed - 1) // needed
        yield (
            f"{path}.minHealthyPercent",
            str(section.min_healthy_percent),
            f"all {needed} nodes would have to be healthy, so none would ever be restarted",
            f"set it to {most} or less" if most else "remove nodeHealthCheck: it cannot restart a single node",
        )
    single = [bmc.machine for bmc in site.bmcs if bmc.machine in machines and bmc.system_id is None]
    if single and len(single) < len(machines):
        yield (
            path,
            "given",
            f"bmc.systemId is set for some servers, but not for those of {', '.join(single[:3])}: the fence agent "
            "needs it for all or for none",
            "set bmc.systemId for all these servers",
        )
    private = [bmc.machine for bmc in site.bmcs if bmc.machine in machines and bmc.private_authority]
    if private and section.verify_certificates:
        yield (
            f"{path}.verifyCertificates",
            "true",
            f"the certificates of {', '.join(private[:3])} are signed by an authority that the fence agent does not "
            "trust",
            "set it to false, or give the BMCs certificates of a public authority",
        )


def _operators(settings: Settings) -> Found:
    section = settings.day_two
    ready = {
        ready_made.LVM: (section.lvm_storage, ready_made.LVM_NAMESPACE, "lvmStorage"),
        ready_made.NMSTATE: (section.nm_state, ready_made.NMSTATE_NAMESPACE, "nmState"),
        ready_made.FENCING: (section.node_health_check, ready_made.AVAILABILITY_NAMESPACE, "nodeHealthCheck"),
        ready_made.HEALTH: (section.node_health_check, ready_made.AVAILABILITY_NAMESPACE, "nodeHealthCheck"),
    }
    packages = {package: f"{_PATH}.{path}" for package, (given, _, path) in ready.items() if given is not None}
    spaces = {space: f"{_PATH}.{path}" for given, space, path in ready.values() if given is not None}
    for number, each in enumerate(section.operators):
        path = f"{_PATH}.operators[{number}]"
        if each.package in packages:
            yield f"{path}.package", each.package, f"{packages[each.package]} has it already", "keep one of the two"
        elif each.namespace in spaces:
            yield (
                f"{path}.namespace",
                each.namespace,
                f"{spaces[each.namespace]} is in it, too: an operator is removed only with its namespace, because its "
                "ClusterServiceVersion outlasts its Subscription",
                "give it a namespace of its own",
            )
        packages.setdefault(each.package, path)
        spaces.setdefault(each.namespace, path)


def _taints(settings: Settings) -> Found:
    """Pods of operators and of the registry tolerate no taints of the user."""
    registry = settings.day_two.registry
    if not dict(_catalogs(settings)) and (registry is None or isinstance(registry, NoRegistry)):
        return
    role: Role = "worker" if _machines(settings, "worker") else "control-plane"
    pods = _machines(settings, role)
    closed = [
        name for name in pods if any(taint.effect in ("NoSchedule", "NoExecute") for taint in settings.taints(name))
    ]
    if pods and len(closed) == len(pods):
        yield (
            "workers.taints" if role == "worker" else "controlPlane.taints",
            "NoSchedule or NoExecute",
            f"no node could run the pods of the operators and of the registry of {_PATH}: {', '.join(closed[:3])} are "
            "the only nodes for pods, and all have such a taint",
            "use PreferNoSchedule, or taint some of the servers only (platform.servers)",
        )


def _registry(settings: Settings) -> Found:
    section, path = settings.day_two.registry, f"{_PATH}.registry"
    if not isinstance(section, ClaimRegistry):
        return
    if section.access == "ReadWriteOnce" and section.replicas > 1:
        yield (
            f"{path}.replicas",
            str(section.replicas),
            "a volume with access ReadWriteOnce can be mounted by one pod only",
            "set it to 1, or access to ReadWriteMany",
        )
    lvm = settings.day_two.lvm_storage
    name = section.storage_class or ""
    if lvm is not None and name.startswith("lvms-") and name != lvm.storage_class:
        yield f"{path}.storageClass", name, "LVM Storage has no such storage class", f"set it to {lvm.storage_class}"
    if lvm is not None and name in ("", lvm.storage_class) and section.access == "ReadWriteMany":
        yield f"{path}.access", section.access, "a volume of LVM Storage is on one node", "set it to ReadWriteOnce"
