"""kube-vip: the API's address, announced by the machines whose API server answers: over BGP by each, with ARP by one.

What a machine is given is the same on all: a script, its settings and a unit. Everything that differs the script finds
on the machine, see `kube_vip.sh`: with BGP peers, passwords, source address and routes in the platform's metadata; with
ARP the interface, and the machine's own credentials for the lease that settles who has the address. Pure functions.

Sources: kube-vip v0.9 (pkg/kubevip/config_envvar.go, pkg/manager/manager.go: with BGP, no services and no leader
election its Kubernetes client is made and never used, so the kubeconfig has no credentials); Metal's metadata
(`bgp_neighbors`); OpenShift's requirements for load balancing (6443 and 22623, health by /readyz and /healthz);
OpenShift's kubeconfigs of a control plane machine (node-kubeconfigs/localhost.kubeconfig) and of the bootstrap machine.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from components.boot.ignition import NodeFile, NodeUnit, network_service

UNIT = "metal-ipi-kube-vip.service"
PROGRAM = "/usr/local/bin/metal-ipi-kube-vip"
_CONFIG = "/etc/metal-ipi"
_ADMINISTRATORS = (
    "/etc/kubernetes/static-pod-resources/kube-apiserver-certs/secrets/node-kubeconfigs/localhost.kubeconfig",
    "/opt/openshift/auth/kubeconfig",
)
"""Where a machine has an administrator's kubeconfig of its own: control plane, bootstrap."""


@dataclass(frozen=True, kw_only=True)
class KubeVip:
    """What all announcing machines have in common."""

    address: str
    """The API's IPv4 address."""
    image: str
    """The image of kube-vip, with tag or digest."""
    hold_seconds: int
    """After so many seconds of silence a peer takes this machine for lost."""
    keepalive_seconds: int
    """How often a machine tells its peers that it is there."""
    domain: str
    """The cluster's domain."""
    ca_pem: str
    """Who signs the certificates of the API server and of the machine config server."""
    metadata_url: str
    """Where the platform tells a machine about itself."""
    mode: Literal["bgp", "arp"] = "bgp"
    """How the address becomes known."""
    interface: str | None = None
    """With ARP: the interface to answer on; None: that of the default route."""


def files(kube_vip: KubeVip) -> list[NodeFile]:
    """The files of a machine; none of them is secret, and none differs between machines."""
    settings: Mapping[str, object] = {
        "ADDRESS": kube_vip.address,
        "IMAGE": kube_vip.image,
        "HOLD_SECONDS": kube_vip.hold_seconds,
        "KEEPALIVE_SECONDS": kube_vip.keepalive_seconds,
        "API_NAME": f"api-int.{kube_vip.domain}",
        "METADATA_URL": kube_vip.metadata_url,
        "MODE": kube_vip.mode,
        "INTERFACE": kube_vip.interface or "",
        "KUBECONFIGS": " ".join(_ADMINISTRATORS),
    }
    environment = "".join(f"{name}='{value}'\n" for name, value in settings.items())
    return [
        NodeFile(path=PROGRAM, text=_script(), mode=0o755),
        NodeFile(path=f"{_CONFIG}/kube-vip.env", text=environment, mode=0o644),
        NodeFile(path=f"{_CONFIG}/kube-vip.kubeconfig", text=_without_credentials(), mode=0o644),
        NodeFile(path=f"{_CONFIG}/api-ca.pem", text=kube_vip.ca_pem, mode=0o644),
    ]


def unit() -> NodeUnit:
    """The service that runs the script."""
    return network_service(
        UNIT, description="The API's address, announced while this machine's API server answers", program=PROGRAM
    )


@cache
def _script() -> str:
    return Path(__file__).with_suffix(".sh").read_text()


def _without_credentials() -> str:
    cluster = {"name": "local", "cluster": {"server": "https://localhost:6443"}}
    context = {"name": "local", "context": {"cluster": "local", "user": "nobody"}}
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [cluster],
            "contexts": [context],
            "current-context": "local",
            "users": [{"name": "nobody", "user": {}}],
        }
    )
