"""The hub's certificates and kubeconfigs: one authority, and who is who by Kubernetes' own names."""

from __future__ import annotations

import ipaddress

from lab.hub.layout import HubLayout
from lab.kubernetes.access import Access
from lab.layout import write_private
from lab.network import certificates, plan

NODE = "hub"
"""The node's name."""

API_SERVICE = str(ipaddress.ip_network(plan.HUB_SERVICES)[1])
"""The address of the Service `kubernetes`: the first one of its range."""

SERVER = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local")

CLIENTS = {
    "admin": ("admin", "system:masters"),
    "kube-apiserver-kubelet-client": ("kube-apiserver-kubelet-client", "system:masters"),
    "kube-controller-manager": ("system:kube-controller-manager", None),
    "kube-scheduler": ("system:kube-scheduler", None),
    "kube-proxy": ("system:kube-proxy", None),
    "kubelet": (f"system:node:{NODE}", "system:nodes"),
}
"""Who a client is: its common name and its organization, which the API takes for its user and its group."""


def make(layout: HubLayout) -> None:
    """Make them, unless they are there: they must outlive a power failure."""
    done = layout.kubeconfig("admin")
    if done.exists():
        return
    authority = certificates.authority("hub")
    write_private(layout.pki / "ca.crt", authority.cert_pem.bytes())
    write_private(layout.pki / "ca.key", authority.private_key_pem.bytes())
    names = (*SERVER, plan.HUB_NAME, "localhost", plan.HUB, API_SERVICE, "127.0.0.1")
    certificates.write(layout.pki / "kube-apiserver", authority.issue_cert(*names, common_name="kube-apiserver"))
    # Only the key of this one is used: it signs the tokens of service accounts.
    certificates.write(layout.pki / "service-accounts", authority.issue_cert(common_name="service-accounts"))
    for name, (user, group) in CLIENTS.items():
        # The kubelet is a server, too. Go refuses a certificate without any name of a host, so all have one.
        hosts = (NODE, plan.HUB) if name == "kubelet" else (name,)
        made = authority.issue_cert(*hosts, common_name=user, organization_name=group)
        certificates.write(layout.pki / name, made)
    for name in sorted(CLIENTS, key="admin".__eq__):  # the administrator's last: it says that all are there
        write_private(layout.kubeconfig(name), access(layout, name).kubeconfig())


def access(layout: HubLayout, name: str = "admin") -> Access:
    """The way to the hub's API, for who has this name in CLIENTS."""
    return Access(
        url=f"https://{plan.HUB}:{plan.HUB_PORT}",
        ca=layout.pki / "ca.crt",
        certificate=layout.pki / f"{name}.crt",
        key=layout.pki / f"{name}.key",
    )
