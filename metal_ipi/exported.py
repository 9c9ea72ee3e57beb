"""The components for other languages: those whose arguments are data. Each is imported on first use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Exported:
    """One component, and its arguments."""

    component: type[Any]
    """The component's class, constructed with `(name, args, opts)`."""
    args: type[Any]
    """The class of its arguments. Arguments that contain Python objects are not available in other languages."""


CLUSTER = "metal-ipi:index:Cluster"
"""The type token of Cluster. In other languages its arguments are the settings themselves."""


def _cluster() -> Exported:
    from metal_ipi.cluster import Cluster, ClusterArgs

    return Exported(component=Cluster, args=ClusterArgs)


def _cluster_dns() -> Exported:
    from metal_ipi.components.endpoints.dns import ClusterDns, ClusterDnsArgs

    return Exported(component=ClusterDns, args=ClusterDnsArgs)


def _metallb() -> Exported:
    from metal_ipi.components.endpoints.metallb import MetalLb, MetalLbArgs

    return Exported(component=MetalLb, args=MetalLbArgs)


def _install_assets() -> Exported:
    from metal_ipi.components.install.assets import InstallAssets, InstallAssetsArgs

    return Exported(component=InstallAssets, args=InstallAssetsArgs)


COMPONENTS: dict[str, Callable[[], Exported]] = {
    CLUSTER: _cluster,
    "metal-ipi:endpoints:ClusterDns": _cluster_dns,
    "metal-ipi:endpoints:MetalLb": _metallb,
    "metal-ipi:install:InstallAssets": _install_assets,
}
"""Functions that import a component, by type token."""
