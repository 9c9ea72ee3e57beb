"""Configuration of the hub's programs. Pure functions: nothing is read or written here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lab.hub import images, objects
from lab.hub.credentials import NODE
from lab.hub.layout import HubLayout
from lab.hub.programs import CONTAINERD, PLUGINS, Programs
from lab.layout import Layout
from lab.mirror import registry
from lab.network import plan

SOCKET = "/run/containerd/containerd.sock"
"""containerd's. /run is a directory of the hub's own."""

TUNABLES = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}
"""What the kubelet wants the kernel to be set to (kubernetes, pkg/kubelet/cm, setupKernelTunables), below /proc/sys.

These settings are the whole system's, not the hub's: files with these values are shown to the kubelet, and the system
keeps its own."""

POD_FILTER = f"""table ip hub {{
  chain postrouting {{
    type nat hook postrouting priority srcnat;
    ip saddr {plan.HUB_PODS} oifname "{objects.UPLINK}" masquerade
  }}
}}
"""
"""Pods go out behind the hub's address (nftables)."""


def commands(layout: HubLayout, programs: Programs) -> dict[str, list[str]]:
    """The programs' command lines, in the order in which they are started; etcd has a class of its own."""
    kubernetes = {name: str(path) for name, path in programs.kubernetes.items()}
    pki = layout.pki
    controllers = layout.kubeconfig("kube-controller-manager")
    return {
        "containerd": [str(CONTAINERD), "--config", str(layout.config("containerd.toml"))],
        "docker-registry": [str(registry.PROGRAM), "serve", str(layout.config("registry.json"))],
        "kube-controller-manager": [
            kubernetes["kube-controller-manager"],
            *(f"--{each}kubeconfig={controllers}" for each in ("", "authentication-", "authorization-")),
            f"--root-ca-file={pki / 'ca.crt'}",
            f"--cluster-signing-cert-file={pki / 'ca.crt'}",
            f"--cluster-signing-key-file={pki / 'ca.key'}",
            f"--service-account-private-key-file={pki / 'service-accounts.key'}",
            "--use-service-account-credentials=true",
            # Its controllers start one after the other; at the default rate of requests that takes 5 seconds.
            "--kube-api-qps=200",
            "--kube-api-burst=400",
            "--leader-elect=false",
            "--bind-address=127.0.0.1",
        ],
        "kube-scheduler": [
            kubernetes["kube-scheduler"],
            f"--kubeconfig={layout.kubeconfig('kube-scheduler')}",
            "--leader-elect=false",
            "--bind-address=127.0.0.1",
        ],
        "kubelet": [
            kubernetes["kubelet"],
            f"--config={layout.config('kubelet.json')}",
            f"--kubeconfig={layout.kubeconfig('kubelet')}",
            f"--root-dir={layout.kubelet}",
            f"--hostname-override={NODE}",
            f"--node-ip={plan.HUB}",
        ],
        "kube-proxy": [kubernetes["kube-proxy"], f"--config={layout.config('kube-proxy.json')}"],
    }


def apiserver(layout: HubLayout, programs: Programs, *, etcd_url: str, etcd_pki: Path) -> list[str]:
    """kube-apiserver's command line; `etcd_pki` is the directory with etcd's `lab-ca.crt`, `lab.crt` and `lab.key`."""
    pki = layout.pki
    tokens = pki / "service-accounts.key"
    return [
        str(programs.kubernetes["kube-apiserver"]),
        f"--bind-address={plan.HUB}",
        f"--advertise-address={plan.HUB}",
        f"--secure-port={plan.HUB_PORT}",
        f"--tls-cert-file={pki / 'kube-apiserver.crt'}",
        f"--tls-private-key-file={pki / 'kube-apiserver.key'}",
        f"--client-ca-file={pki / 'ca.crt'}",
        f"--etcd-servers={etcd_url}",
        f"--etcd-cafile={etcd_pki / 'lab-ca.crt'}",
        f"--etcd-certfile={etcd_pki / 'lab.crt'}",
        f"--etcd-keyfile={etcd_pki / 'lab.key'}",
        f"--kubelet-certificate-authority={pki / 'ca.crt'}",
        f"--kubelet-client-certificate={pki / 'kube-apiserver-kubelet-client.crt'}",
        f"--kubelet-client-key={pki / 'kube-apiserver-kubelet-client.key'}",
        "--kubelet-preferred-address-types=InternalIP",  # the node's name is in nobody's DNS
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-signing-key-file={tokens}",
        f"--service-account-key-file={tokens}",
        f"--service-cluster-ip-range={plan.HUB_SERVICES}",
        "--allow-privileged=true",
        "--profiling=false",
    ]


def files(layout: HubLayout, lab: Layout, *, cgroup: str, snapshotter: str) -> dict[Path, str]:
    """The programs' configuration files; `cgroup` is the path of the hub's in each hierarchy.

    `snapshotter` is containerd's: `overlayfs`, or `native` where the file system of its directory cannot be overlaid.
    """
    return {
        layout.config("containerd.toml"): _containerd(layout, snapshotter, lab.ca),
        layout.config("registry.json"): json.dumps(_registry(layout, lab), indent=2),
        layout.config("kubelet.json"): json.dumps(_kubelet(layout, cgroup), indent=2),
        layout.config("kube-proxy.json"): json.dumps(_proxy(layout), indent=2),
        layout.config("resolv.conf"): f"nameserver {plan.DNS}\n",
        layout.networks / "10-hub.conflist": json.dumps(_network(layout), indent=2),
    }


def _containerd(layout: HubLayout, snapshotter: str, authority: Path) -> str:
    cri = 'plugins."io.containerd.grpc.v1.cri"'
    return f"""version = 2
root = "{layout.containerd}"
state = "/run/containerd/state"

[grpc]
address = "{SOCKET}"

[{cri}]
# Without this runc cannot start a container where we may not lower what the kernel kills last.
restrict_oom_score_adj = true
sandbox_image = "{images.PAUSE.reference}"

[{cri}.cni]
bin_dir = "{PLUGINS}"
conf_dir = "{layout.networks}"

[{cri}.containerd]
snapshotter = "{snapshotter}"

[{cri}.registry.configs."{plan.REGISTRY}".tls]
ca_file = "{authority}"
"""


def _registry(layout: HubLayout, lab: Layout) -> dict[str, Any]:
    address = f"{plan.HUB}:{plan.REGISTRY_PORT}"
    return registry.configuration(images=layout.images, address=address, pair=lab.tls / plan.REGISTRY_NAME)


def _kubelet(layout: HubLayout, cgroup: str) -> dict[str, Any]:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": plan.HUB,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(layout.pki / "ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(layout.pki / "kubelet.crt"),
        "tlsPrivateKeyFile": str(layout.pki / "kubelet.key"),
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": cgroup,
        "containerRuntimeEndpoint": f"unix://{SOCKET}",
        "podLogsDir": str(layout.logs / "pods"),
        "resolvConf": str(layout.config("resolv.conf")),
        "clusterDNS": [objects.DNS_SERVICE],
        "clusterDomain": objects.DNS_DOMAIN,
        # Whoever has a lab has the machine, swap and cgroups that they have.
        "failCgroupV1": False,
        "failSwapOn": False,
        "evictionHard": {"memory.available": "64Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        "localStorageCapacityIsolation": False,
    }


def _proxy(layout: HubLayout) -> dict[str, Any]:
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "clientConnection": {"kubeconfig": str(layout.kubeconfig("kube-proxy"))},
        "clusterCIDR": plan.HUB_PODS,
        "hostnameOverride": NODE,
        "healthzBindAddress": "127.0.0.1:10256",
        "metricsBindAddress": "127.0.0.1:10249",
        # The limit of connections is the whole system's, too.
        "conntrack": {"maxPerCore": 0, "min": 0},
    }


def _network(layout: HubLayout) -> dict[str, Any]:
    addresses = {
        "type": "host-local",
        "dataDir": str(layout.leases),
        "ranges": [[{"subnet": plan.HUB_PODS}]],
        "routes": [{"dst": "0.0.0.0/0"}],
    }
    bridge = {"type": "bridge", "bridge": "pods0", "isGateway": True, "hairpinMode": True, "ipam": addresses}
    return {"cniVersion": "0.4.0", "name": "pods", "plugins": [bridge]}
