"""The program of a cluster that Cluster API installs: declares its objects on the hub, and waits for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pulumi

from metal_ipi.components.cluster_api.cluster import ManagedCluster, ManagedClusterArgs
from metal_ipi.components.cluster_api.objects import Object, Wanted, manifest_secrets
from metal_ipi.provider.types import Provider, ProviderArgs
from metal_ipi.stacks import assets
from metal_ipi.stacks.base import log_directory
from metal_ipi.stacks.cluster_api.settings import without_secrets
from metal_ipi.stacks.platforms.registry import facility
from metal_ipi.stacks.sections.base import REHEARSAL
from metal_ipi.stacks.settings import Settings


def declare(settings: Settings, tree: Mapping[str, Any]) -> dict[str, pulumi.Input[Any]]:
    """Declare the cluster; returns the stack's outputs, by name. `tree` is the settings as in the stack file."""
    assert settings.cluster_api is not None, "the stack is one of Cluster API"
    public, secrets = without_secrets(tree)
    files = manifests(settings)
    kubeconfig = settings.cluster_api.hub.kubeconfig
    text = kubeconfig.get_secret_value() if kubeconfig is not None else REHEARSAL
    provider = Provider("metal-ipi", ProviderArgs())
    cluster = ManagedCluster(
        "cluster-api",
        ManagedClusterArgs(
            kubeconfig="" if text == REHEARSAL else text,
            wanted=wanted(settings, public, files),
            secrets={path: str(value) for path, value in secrets.items()},
            timeout_seconds=_longest(settings),
            log_directory=log_directory(settings),
            protect=settings.protects,
        ),
        pulumi.ResourceOptions(providers=[provider]),
    )
    return {
        "cluster": {
            "name": settings.cluster_name,
            "domain": settings.domain,
            "version": settings.openshift_version,
        },
        **{name: pulumi.Output.unsecret(_of(cluster, name)) for name in ("api", "bootstrap", "nodes")},
        "kubeconfig": cluster.kubeconfig,
        "kubeadminPassword": _of(cluster, "kubeadminPassword"),
    }


def _of(cluster: ManagedCluster, name: str) -> pulumi.Output[Any]:
    """One of the outputs that the stack would have without a hub."""
    return cluster.outputs.apply(lambda found: found.get(name))


def manifests(settings: Settings) -> dict[str, str]:
    """The files of `install.manifests`, checked as without a hub, by the installer too where it is here; secret. Those
    of `machineConfig` are not among them: the providers make them. Raises ManifestsError, InstallConfigError."""
    if not settings.install.manifests:
        return {}
    found = assets.checked_manifests(settings)
    # A rehearsal has words for secrets. On a system without FIPS mode the installer refuses that.
    if pulumi.runtime.is_dry_run() and not (settings.rehearsal or settings.install.fips):
        assets.refuse(settings, facility(settings), found)
    return _of_user(settings, found)


def _of_user(settings: Settings, found: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in found.items() if name not in assets.of_settings(settings)}


def wanted(settings: Settings, public: Mapping[str, Any], files: Mapping[str, str]) -> Wanted:
    """What the objects are made of; `public` are the settings without secrets, `files` the manifests by name."""
    fields, namespace = settings.install_config, settings.cluster_api and settings.cluster_api.namespace
    return Wanted(
        name=settings.cluster_name,
        namespace=namespace or settings.cluster_name,
        domain=settings.domain,
        version=f"v{settings.openshift_version}",
        control_plane=settings.control_plane.count,
        workers=settings.workers.count,
        settings=public,
        pod_networks=[each.cidr for each in fields.networking.cluster_network],
        service_networks=list(fields.networking.service_network),
        manifests=files,
    )


def secrets_of_manifests(settings: Settings) -> list[Object]:
    """The Secrets with the files of `install.manifests`, without a namespace. Raises ManifestsError."""
    found = manifest_secrets(wanted(settings, {}, _of_user(settings, assets.checked_manifests(settings))))
    for each in found:
        del each["metadata"]["namespace"]
    return found


def _longest(settings: Settings) -> int:
    """Seconds: the sum of the timeouts of all gates."""
    limits = settings.timeouts
    before = limits.machines_active + limits.machines_reachable + limits.api_answers
    return before + limits.bootstrap_complete + limits.nodes_ready + limits.install_complete
