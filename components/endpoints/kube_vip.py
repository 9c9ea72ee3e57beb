"""kube-vip: announces the API's address from machines whose API server answers: from all of them with BGP, from one of
them with ARP. In the same way it announces the address of ingress from machines whose router is ready.

All machines get the same script, settings and unit. The script finds everything that differs on the machine, see
`kube_vip.sh`: with BGP the sessions that `bgp_routes` writes there; with ARP the interface, and the machine's own
credentials for the lease that decides which machine has the address. Pure functions.

Sources:

- kube-vip v0.9.2: pkg/kubevip/config_envvar.go (names of variables); pkg/manager/manager.go (with BGP, without services
  and leader election, its Kubernetes client is created but never used, so its kubeconfig needs no credentials);
  cmd/kube-vip.go (metrics on port 2112 of all addresses, unless the flag is empty); pkg/manager/manager_bgp.go (it may
  not end at SIGTERM); pkg/arp/arp.go, pkg/vip/address.go (it keeps the index of the interface that it found).
- cluster-kube-apiserver-operator, release 4.19: bindata/assets/kube-apiserver/node-kubeconfigs.yaml and
  nodekubeconfigcontroller.go (each control plane machine has `localhost.kubeconfig` on disk, for
  https://localhost:6443, with all authorities of the API server); certrotationcontroller.go (its client certificate is
  valid for two years and renewed every month).
- installer 4.19: pkg/asset/kubeconfig/admin.go (the bootstrap machine's kubeconfig, with the same authorities);
  data/bootstrap bootkube.sh (the bootstrap machine's API server ends before the machine does; its other programs then
  use the API at its address).
- machine-config-operator: templates/common/on-prem, templates/master/00-master/gcp (the platform's own static pods);
  configure-ovs.sh (the default interface becomes a port of the OVS bridge br-ex, at every boot).
- openshift/ovn-kubernetes: OCP_HACKS.go (pods cannot reach ports 22623 and 22624); go-controller/pkg/util (a deprecated
  address is not used as the node's own).
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from metal_ipi.components.boot.ignition import NodeFile, NodeUnit, network_service

Served = Literal["api", "ingress"]
_NAMES: Mapping[Served, str] = {"api": "kube-vip", "ingress": "ingress-vip"}
UNIT = "metal-ipi-kube-vip.service"
PROGRAM = "/usr/local/bin/metal-ipi-kube-vip"
MANIFEST = "/etc/kubernetes/manifests/metal-ipi-kube-vip.json"
_READY = """\
answers() { # as keepalived of platform baremetal asks
    [ "$MODE" = bgp ] || find_kubeconfig || return 1
    curl -fs --noproxy '*' --max-time 3 -o /dev/null http://localhost:1936/healthz/ready
}
"""
_OF_INGRESS = {
    "metal-ipi-kube-vip": "metal-ipi-ingress-vip",
    "etc/metal-ipi/kube-vip.": "etc/metal-ipi/ingress-vip.",
    "$state/kube-vip": "$state/ingress-vip",
    "plndr-cp-lock": "plndr-ingress-lock",
    'name: "kube-vip", namespace': 'name: "ingress-vip", namespace',
    'port: "6443"': 'port: "443"',
    "the API server answers: ": "a router is ready: ",
    "the API server does not answer": "the router is not ready",
    "the API's address": "the address of ingress",
}
"""Replacements that turn the API's script into the script of ingress. The API's script must not change by a single
byte, because running machines have it."""
_CONFIG = "/etc/metal-ipi"
_ADMINISTRATORS = (
    "/etc/kubernetes/static-pod-resources/kube-apiserver-certs/secrets/node-kubeconfigs/localhost.kubeconfig",
    "/opt/openshift/auth/kubeconfig",
)
"""Paths of an administrator's kubeconfig that a machine has itself: on the control plane, on the bootstrap machine."""


@dataclass(frozen=True, kw_only=True)
class KubeVip:
    """The settings that all announcing machines share."""

    address: str
    """The IPv4 address."""
    image: str
    """The image of kube-vip, with tag or digest."""
    hold_seconds: int
    """BGP hold time: a peer considers this machine lost after so many seconds of silence."""
    keepalive_seconds: int
    """BGP keepalive interval, in seconds."""
    domain: str
    """The cluster's domain."""
    serves: Served = "api"
    """What is reached at the address: the API, or ingress."""
    mode: Literal["bgp", "arp"] = "bgp"
    """How the address is announced. With `bgp` the machine needs the files of `bgp_routes` as well."""
    interface: str | None = None
    """With `arp`: the interface that answers for the address. None: the interface of the default route."""


def files(kube_vip: KubeVip) -> list[NodeFile]:
    """The files of a machine. They are the same on all machines, and not secret."""
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
    name = _NAMES[kube_vip.serves]
    environment = "".join(f"{name}={shlex.quote(str(value))}\n" for name, value in settings.items())
    return [
        NodeFile(path=f"/usr/local/bin/metal-ipi-{name}", text=_script(kube_vip.serves), mode=0o755),
        NodeFile(path=f"{_CONFIG}/{name}.env", text=environment, mode=0o644),
        NodeFile(path=f"{_CONFIG}/{name}.kubeconfig", text=_without_credentials(), mode=0o644),
    ]


def unit(serves: Served = "api") -> NodeUnit:
    """The unit that runs the script.

    After a power failure it removes an old static pod manifest before the kubelet starts: the address must not be
    announced while this machine has no API server.
    """
    what = {"api": "API's address, announced while this machine's API server answers",
            "ingress": "address of ingress, announced while a router is ready here"}  # fmt: skip
    name = f"metal-ipi-{_NAMES[serves]}"
    return network_service(
        f"{name}.service",
        description=f"The {what[serves]}",
        program=f"/usr/local/bin/{name}",
        before="kubelet.service",
        removes=f"/etc/kubernetes/manifests/{name}.json",
    )


@cache
def _script(serves: Served) -> str:
    text = Path(__file__).with_suffix(".sh").read_text()
    if serves == "api":
        return text
    for word, other in _OF_INGRESS.items():
        text = text.replace(word, other)
    return re.sub(r"(?ms)^answers\(\) \{.*?^\}\n", lambda _: _READY, text)


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
