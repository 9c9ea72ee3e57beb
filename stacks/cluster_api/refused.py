"""What `up` can do itself but the Cluster API providers cannot."""

from __future__ import annotations

import re

from metal_ipi.components.install.assets import AssetsError, credentials
from metal_ipi.stacks.model import Settings
from metal_ipi.stacks.platforms.listed.settings import ListedServers
from metal_ipi.stacks.problems import Found
from metal_ipi.stacks.sections.base import REHEARSAL
from metal_ipi.stacks.sections.day_two import DayTwo
from metal_ipi.stacks.sections.service_addresses import NoServiceAddresses

_ITSELF = "leave clusterApi out, so that `up` installs the cluster itself"
_NOT_OURS = re.compile(r"default|openshift|cert-manager|(kube|openshift|cert-manager)-.*|.*-system")
"""Namespaces of Kubernetes, of OpenShift, and of tools that install clusters."""


def not_through_hubs(settings: Settings) -> Found:
    """Yield each setting that the providers do not support, or that refers to something on this machine only."""
    if settings.cluster_api is None:
        return
    namespace = settings.cluster_api.namespace or settings.cluster_name
    if _NOT_OURS.fullmatch(namespace):
        where = "clusterApi.namespace" if settings.cluster_api.namespace else "clusterName"
        why = "the hub itself uses a namespace of that name, and `down` deletes the cluster's namespace"
        yield where, namespace, why, "set clusterApi.namespace to a namespace that only this cluster uses"
    kubeconfig = settings.cluster_api.hub.kubeconfig
    if kubeconfig is not None and kubeconfig.get_secret_value() != REHEARSAL:
        try:
            credentials(kubeconfig.get_secret_value())
        except AssetsError:
            why = "it does not contain certificate, key and authority of its first cluster and user"
            remedy = "set it to the output of `kubectl config view --raw --flatten --minify`, with a client certificate"
            yield "clusterApi.hub.kubeconfig", "[secret]", why, remedy
    if not isinstance(settings.platform, ListedServers):
        why = "it orders machines through plug-ins of Pulumi, which the Cluster API providers do not use"
        yield "platform.type", settings.platform.type, why, f"list servers (redfish, ironic), or {_ITSELF}"
    if settings.arbiter.count:
        why = "the Cluster API providers support only control plane machines and workers"
        yield "arbiter.count", str(settings.arbiter.count), why, f"use 3 control plane machines, or {_ITSELF}"
    if not isinstance(settings.service_addresses, NoServiceAddresses):
        why = "the Cluster API providers do not install MetalLB"
        yield "serviceAddresses.type", settings.service_addresses.type, why, f"remove it, or {_ITSELF}"
    if settings.day_two != DayTwo(catalog=settings.day_two.catalog):
        why = "the Cluster API providers install no operators, and leave the image registry as it is"
        yield "dayTwo", "{...}", why, f"remove it, or {_ITSELF}"
    if settings.boot.stream_file:
        why = "it is a file of this machine, and the providers run on the hub"
        yield "boot.streamFile", settings.boot.stream_file, why, f"set boot.streamUrl instead, or {_ITSELF}"
