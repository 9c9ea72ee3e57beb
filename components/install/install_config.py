"""The installer's configuration (install-config.yaml), for platforms `none` and `baremetal`.

Sources, all in openshift/installer: the schema is data/data/install.openshift.io_installconfigs.yaml, the rules are in
pkg/types/validation/installconfig.go. Fields that are left out have the installer's defaults (pkg/types/defaults):
hyperthreading Enabled, publish External, all capabilities. On platform none the first two have no effect.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

CLUSTER_NETWORK = "10.128.0.0/14"
HOST_PREFIX = 23
SERVICE_NETWORK = "172.30.0.0/16"
HOST_PREFIX_IPV6 = 64
"""The only value that the installer accepts for IPv6."""
JOIN_NETWORK = "100.64.0.0/16"
OVN_NETWORKS = {
    "the network between the pods' routers": JOIN_NETWORK,
    "the network between the pods' routers and other zones": "100.88.0.0/16",
    "the network that OVN-Kubernetes uses for masquerading": "169.254.0.0/17",
}
"""Networks that OVN-Kubernetes uses internally; the installer refuses others that overlap
(pkg/validate/validate.go)."""
OVN_NETWORKS_IPV6 = {
    "the IPv6 network between the pods' routers": "fd98::/64",
    "the IPv6 network between the pods' routers and other zones": "fd97::/64",
    "the IPv6 network that OVN-Kubernetes uses for masquerading": "fd69::/112",
}
"""The same for IPv6, in clusters that use it."""
# bootstrapInPlace requires a disk for the installer's own install-to-disk.service, which never runs (docs/adr/0019). If
# it ever ran, this disk would not exist.
NO_DISK = "/dev/disk/by-id/metal-ipi-chooses-the-disk"


NETWORKING: Mapping[str, Any] = {
    "networkType": "OVNKubernetes",
    "clusterNetwork": [{"cidr": CLUSTER_NETWORK, "hostPrefix": HOST_PREFIX}],
    "serviceNetwork": [SERVICE_NETWORK],
}
"""The default."""
RENDERED = {
    **dict.fromkeys(("apiVersion", "bootstrapInPlace"), "leave it out"),
    **{"baseDomain": "set baseDomain", "metadata": "set clusterName", "controlPlane": "set controlPlane"},
    **{"arbiter": "set arbiter", "compute": "set workers", "fips": "set install.fips"},
    **{"platform": "set platform, or installConfig.platform"},
    **{"pullSecret": "set install.pullSecret", "sshKey": "set ssh.authorizedKeys"},
}
"""Fields of install-config.yaml that are made from other settings, and what to do instead of giving them."""


NONE: Mapping[str, Any] = {"none": {}}
"""The platform on which the cluster knows nothing about its machines."""


class InstallConfigError(ValueError):
    """A value is not valid in install-config.yaml."""


def baremetal(*, api: str, ingress: str, hosts: Sequence[Mapping[str, str]]) -> Mapping[str, Any]:
    """OpenShift's platform baremetal, whose static pods announce the addresses of API and ingress.

    Hosts are given without their BMCs (pkg/types/baremetal/validation accepts that; only `create cluster` requires
    BMCs), so that nothing in the cluster can power servers on or off: only this program does. There is no provisioning
    network.

    Args:
        api, ingress: IPv4 addresses in the machines' network.
        hosts: `name`, `role` (master, arbiter, worker) and `bootMACAddress` of each server.
    """
    return {
        "baremetal": {
            "apiVIPs": [api],
            "ingressVIPs": [ingress],
            "provisioningNetwork": "Disabled",
            "hosts": [dict(host) for host in hosts],
        }
    }


def install_config(
    *,
    cluster_name: str,
    base_domain: str,
    architecture: str,
    control_plane: int,
    workers: int,
    arbiters: int = 0,
    pull_secret: str,
    authorized_keys: Sequence[str],
    machine_networks: Sequence[str] = (),
    fips: bool = False,
    in_place: bool = False,
    fields: Mapping[str, Any] | None = None,
    platform: Mapping[str, Any] = NONE,
) -> str:
    """install-config.yaml as text.

    Args:
        cluster_name, base_domain: together the cluster's domain.
        architecture: CoreOS's name, `x86_64` or `aarch64`.
        control_plane: the number of control plane machines: 1, 3, 4 or 5, or 2 with an arbiter.
        workers: the number of workers. With 0 the installer lets pods run on the control plane, the routers of `*.apps`
            among them (pkg/asset/manifests/scheduler.go). So it must be 0 exactly if `*.apps` resolves to the control
            plane. On platform none it creates no machines (pkg/asset/machines/worker.go).
        arbiters: the number of arbiters; on platform baremetal only (pkg/types/validation, validateArbiter).
        pull_secret: JSON; secret.
        authorized_keys: SSH public keys for user `core`. The installer validates only the first one.
        machine_networks: CIDRs of the machines' networks, as far as they are known; empty: the installer's default,
            10.0.0.0/16. On platform none only the noProxy of a proxy is derived from them
            (pkg/asset/manifests/proxy.go; cluster-network-operator, pkg/util/proxyconfig/no_proxy.go).
        fips: whether the cluster's machines run in FIPS mode.
        in_place: whether the only machine bootstraps itself.
        fields: further fields, as in install-config.yaml; `networking` without machineNetwork.
        platform: OpenShift's platform, by its name (`baremetal`).

    Raises InstallConfigError if the pull secret is not JSON.
    """
    try:
        json.loads(pull_secret)
    except ValueError:
        raise InstallConfigError("the pull secret is not a JSON document; set install.pullSecret anew") from None
    further = dict(fields or {})
    networking = dict(further.pop("networking", NETWORKING))
    machines = {"machineNetwork": [{"cidr": cidr} for cidr in machine_networks]} if machine_networks else {}
    machine = {"amd64": "amd64", "x86_64": "amd64", "aarch64": "arm64"}[architecture]
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "baseDomain": base_domain,
            "metadata": {"name": cluster_name},
            "controlPlane": {"name": "master", "architecture": machine, "replicas": control_plane},
            **({"arbiter": {"name": "arbiter", "architecture": machine, "replicas": arbiters}} if arbiters else {}),
            "compute": [{"name": "worker", "architecture": machine, "replicas": workers}],
            "networking": {"networkType": networking.pop("networkType"), **machines, **networking},
            "platform": dict(platform),
            **further,
            **({"fips": True} if fips else {}),
            **({"bootstrapInPlace": {"installationDisk": NO_DISK}} if in_place else {}),
            "pullSecret": pull_secret,
            "sshKey": "\n".join(authorized_keys) + "\n",
        },
        sort_keys=False,
    )
