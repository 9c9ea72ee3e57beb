"""kube-vip: the API's address, announced by the machines whose API server answers: over BGP by each, with ARP by one.

What a machine is given is the same on all: a script, its settings and a unit. Everything that differs the script finds
on the machine, see `kube_vip.sh`: with BGP the sessions that `bgp_routes` keeps there; with ARP the interface, and the
machine's own credentials for the lease that settles who has the address. Pure functions.

Sources:
- kube-vip v0.9.2: pkg/kubevip/config_envvar.go (names); pkg/manager/manager.go (with BGP, no services and no leader
  election its Kubernetes client is made and never used, so that kubeconfig needs no credentials);
  cmd/kube-vip.go (metrics on port 2112 of all addresses, unless the flag is empty); pkg/manager/manager_bgp.go (it may
  not end at SIGTERM); pkg/arp/arp.go, pkg/vip/address.go (it keeps the number of the interface that it found).
- cluster-kube-apiserver-operator, release 4.19: bindata/assets/kube-apiserver/node-kubeconfigs.yaml and
  nodekubeconfigcontroller.go (on the disk of each control plane machine, `localhost.kubeconfig` for
  https://localhost:6443 with all authorities of the API server); certrotationcontroller.go (its client certificate is
  valid for two years and renewed every month).
- installer 4.19: pkg/asset/kubeconfig/admin.go (the bootstrap machine's kubeconfig, with the same authorities);
  data/bootstrap bootkube.sh (the bootstrap machine's API server ends before the machine does, and what runs there then
  asks the API at its address).
- machine-config-operator: templates/common/on-prem, templates/master/00-master/gcp (the platform's own static pods);
  configure-ovs.sh (the default interface becomes a port of the OVS bridge br-ex, at every boot).
- openshift/ovn-kubernetes: OCP_HACKS.go (no node reaches ports 22623 and 22624); go-controller/pkg/util (deprecated
  addresses are not taken for the node's own).
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from metal_ipi.components.boot.ignition import NodeFile, NodeUnit, network_service

UNIT = "metal-ipi-kube-vip.service"
PROGRAM = "/usr/local/bin/metal-ipi-kube-vip"
MANIFEST = "/etc/kubernetes/manifests/metal-ipi-kube-vip.json"
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
    mode: Literal["bgp", "arp"] = "bgp"
    """How the address becomes known; with bgp the machine needs the files of `bgp_routes` as well."""
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
        "MODE": kube_vip.mode,
        "INTERFACE": kube_vip.interface or "",
        "KUBECONFIGS": " ".join(_ADMINISTRATORS),
    }
    environment = "".join(f"{name}={shlex.quote(str(value))}\n" for name, value in settings.items())
    return [
        NodeFile(path=PROGRAM, text=_script(), mode=0o755),
        NodeFile(path=f"{_CONFIG}/kube-vip.env", text=environment, mode=0o644),
        NodeFile(path=f"{_CONFIG}/kube-vip.kubeconfig", text=_without_credentials(), mode=0o644),
    ]


def unit() -> NodeUnit:
    """The service that runs the script.

    A manifest that was in place when the power was cut goes before the kubelet starts: nothing may announce the address
    while this machine has no API server.
    """
    return network_service(
        UNIT,
        description="The API's address, announced while this machine's API server answers",
        program=PROGRAM,
        before="kubelet.service",
        removes=MANIFEST,
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
