"""kube-apiserver: how it is started, how one tells that it answers, how it ends.

Callers prove who they are by certificates of the given CAs: their organisation is their group, `system:masters` may do
everything; RBAC is on, and nodes may write about themselves only.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Sequence
from pathlib import Path

import httpx

from lab.errors import ServiceFailed
from lab.kubernetes.access import NAME, Access
from lab.kubernetes.etcd import Etcd
from lab.kubernetes.process import Process

SELDOM, OFTEN = 200, 100
"""By how much a heap grows before it is collected, in per cent; OFTEN is Go's own. Measured: SELDOM takes 0.3 s less of
a processor until a server is ready, and 40 MiB more."""

READY_SECONDS = 60.0
"""Measured: ready 2.5 to 3 s after the start on an idle machine."""

_LATER = ("rbac/bootstrap-roles", "scheduling/bootstrap-system-priority-classes")
"""Hooks that wait for a second and find then that a cluster has all that they would make."""

_POLL_SECONDS = 0.1
_APIS = (
    *("api/v1", "admissionregistration.k8s.io/v1", "apiextensions.k8s.io/v1", "apiregistration.k8s.io/v1", "apps/v1"),
    *("authentication.k8s.io/v1", "authorization.k8s.io/v1", "batch/v1", "certificates.k8s.io/v1"),
    *("coordination.k8s.io/v1", "discovery.k8s.io/v1", "events.k8s.io/v1", "networking.k8s.io/v1", "node.k8s.io/v1"),
    *("policy/v1", "rbac.authorization.k8s.io/v1", "scheduling.k8s.io/v1", "storage.k8s.io/v1"),
)
"""The APIs that are served; each takes time at the start."""


class Place:
    """Addresses, directories and certificates of an API server."""

    def __init__(self, directory: Path, address: str, port: int, named: int = 0) -> None:
        """`named`: how many certificates it has besides, which are shown to who asks for their names.

        All of these are PEM files, made by whoever calls this.
        """
        self.directory, self.address, self.port = directory, address, port
        self.url = f"https://{address}:{port}"
        self.clients = directory / "clients.crt"
        """The CAs that sign clients' certificates."""
        self.certificate, self.key = directory / "server.crt", directory / "server.key"
        """The server's certificate and key."""
        self.named = [(directory / f"named-{each}.crt", directory / f"named-{each}.key") for each in range(named)]
        """Its further certificates and their keys."""
        self.service_accounts = directory / "service-accounts.key"
        """The private key that signs the tokens of service accounts."""


class ApiServer:
    """One kube-apiserver of a cluster."""

    def __init__(
        self,
        place: Place,
        etcd: Etcd,
        executable: Path,
        services: Sequence[str],
        *,
        collected: int = SELDOM,
        watch_cache: bool = False,
    ) -> None:
        """`services`: the networks of Services.

        `collected`: how often garbage is, SELDOM or OFTEN. `watch_cache`: as by default, lists are made of objects in
        memory; for a few clients that costs more than it saves.
        """
        self.place = place
        self._etcd = etcd
        own = [f"GOGC={collected}", str(executable), f"--watch-cache={str(watch_cache).lower()}"]
        command = ["env", *own, *_flags(place, etcd, services)]
        self.process = Process("kube-apiserver", command, place.directory / "kube-apiserver.log")

    def access(self, certificate: Path, key: Path) -> Access:
        """Access for the lab, with a certificate of a client CA (PEM files)."""
        return Access(url=self.place.url, ca=self._etcd.ca, certificate=certificate, key=key, name=NAME)

    def wait_ready(self, seconds: float = READY_SECONDS, *, joining: bool = False) -> None:
        """Wait until the API says that it is. Raises ServiceFailed when a process ends, or time does.

        `joining`: the cluster has another server, which made what every cluster has.
        """
        path = "/readyz" + (f"?{'&'.join(f'exclude=poststarthook/{hook}' for hook in _LATER)}" if joining else "")
        deadline = time.monotonic() + seconds
        context = ssl.create_default_context(cafile=str(self._etcd.ca))
        said = "it does not listen"
        with httpx.Client(base_url=self.place.url, verify=context, timeout=2.0, trust_env=False) as client:
            while True:
                self._etcd.process.check()
                self.process.check()
                try:
                    answer = client.get(path, extensions={"sni_hostname": NAME})
                except httpx.TransportError:
                    pass  # while it starts it refuses connections, or answers half
                else:
                    if answer.is_success:
                        return
                    checks = [line for line in answer.text.splitlines() if line.startswith("[-]")]
                    said = f"{answer.status_code} {' '.join(checks)}"
                if time.monotonic() > deadline:
                    raise ServiceFailed(
                        f"the API is not ready after {seconds:.0f} s ({said}):\n{self.process.last_lines()}"
                    )
                time.sleep(_POLL_SECONDS)


def _flags(place: Place, etcd: Etcd, services: Sequence[str]) -> list[str]:
    return [
        f"--bind-address={place.address}",
        f"--advertise-address={place.address}",
        f"--secure-port={place.port}",
        f"--tls-cert-file={place.certificate}",
        f"--tls-private-key-file={place.key}",
        f"--tls-sni-cert-key={etcd.certificate},{etcd.key}:{NAME}",
        *(f"--tls-sni-cert-key={certificate},{key}" for certificate, key in place.named),
        f"--client-ca-file={place.clients}",
        f"--etcd-servers={etcd.url}",
        f"--etcd-cafile={etcd.ca}",
        f"--etcd-certfile={etcd.certificate}",
        f"--etcd-keyfile={etcd.key}",
        "--authorization-mode=Node,RBAC",
        "--allow-privileged=true",  # as OpenShift's
        "--enable-admission-plugins=NodeRestriction",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-signing-key-file={place.service_accounts}",
        f"--service-account-key-file={place.service_accounts}",
        f"--service-cluster-ip-range={','.join(services)}",
        # No controller makes the accounts that pods would run as, and nothing has the API serve its own address.
        "--disable-admission-plugins=ServiceAccount",
        "--endpoint-reconciler-type=none",
        "--profiling=false",
        # It is the name of the system they run on: all servers would take the same.
        "--feature-gates=APIServerIdentity=false",
        "--enable-priority-and-fairness=false",  # queues are for many clients
        f"--runtime-config=api/all=false,{','.join(f'{each}=true' for each in _APIS)}",
    ]
