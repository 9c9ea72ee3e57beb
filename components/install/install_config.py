"""The installer's configuration (install-config.yaml), for platform `none`.

Source: OpenShift's installation-bare-metal-config-yaml. Compute replicas are always 0: workers join by themselves.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import yaml

CLUSTER_NETWORK = "10.128.0.0/14"
SERVICE_NETWORK = "172.30.0.0/16"
# bootstrapInPlace wants a disk for the installer's own install-to-disk.service, which never runs (docs/adr/0019).
# Should it ever, there is no such disk to write to.
_NO_DISK = "/dev/disk/by-id/metal-ipi-chooses-the-disk"


class InstallConfigError(ValueError):
    """A value cannot stand in install-config.yaml."""


def install_config(
    *,
    cluster_name: str,
    base_domain: str,
    architecture: str,
    control_plane: int,
    pull_secret: str,
    authorized_keys: Sequence[str],
    in_place: bool = False,
) -> str:
    """install-config.yaml as text.

    Args:
        cluster_name, base_domain: together the cluster's domain.
        architecture: CoreOS's name, `x86_64` or `aarch64`.
        control_plane: how many control plane machines, 1 or 3.
        pull_secret: JSON; secret.
        authorized_keys: SSH public keys for user `core`.
        in_place: the only machine bootstraps itself.
    """
    try:
        json.loads(pull_secret)
    except ValueError:
        raise InstallConfigError("the pull secret is no JSON document; set install.pullSecret anew") from None
    machine = {"amd64": "amd64", "x86_64": "amd64", "aarch64": "arm64"}[architecture]
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "baseDomain": base_domain,
            "metadata": {"name": cluster_name},
            "controlPlane": {"name": "master", "architecture": machine, "replicas": control_plane},
            "compute": [{"name": "worker", "architecture": machine, "replicas": 0}],
            "networking": {
                "networkType": "OVNKubernetes",
                "clusterNetwork": [{"cidr": CLUSTER_NETWORK, "hostPrefix": 23}],
                "serviceNetwork": [SERVICE_NETWORK],
            },
            "platform": {"none": {}},
            **({"bootstrapInPlace": {"installationDisk": _NO_DISK}} if in_place else {}),
            "pullSecret": pull_secret,
            "sshKey": "\n".join(authorized_keys) + "\n",
        },
        sort_keys=False,
    )
