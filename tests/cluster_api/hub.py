"""A management cluster for tests: a real kube-apiserver, and what works there."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from binaries.cache import cache_directory
from binaries.golang import find_go
from lab.cluster_api import CLUSTERCTL
from lab.kubernetes.access import Access, apply, define, send
from lab.kubernetes.process import Process, free_port
from metal_ipi.cluster_api import crds, rbac, webhooks
from metal_ipi.cluster_api.admission import PATH
from tests.lab.kubernetes.support import Identities, Servers

Object = dict[str, Any]
NAMESPACE, OWN = "facility", "metal-ipi-system"
ALONE = (
    *(f"{name}=http://127.0.0.1:9" for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY")),
    *(f"{name}=127.0.0.1" for name in ("no_proxy", "NO_PROXY")),
)
"""Variables with which a process reaches nothing beyond this system by HTTP: nobody is at that port."""
_USER = "providers"
_VERSION = "v1.12.2"
_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_PLACES = {
    "ServiceAccount": f"/api/v1/namespaces/{OWN}/serviceaccounts",
    "ClusterRole": f"{_RBAC}/clusterroles",
    "ClusterRoleBinding": f"{_RBAC}/clusterrolebindings",
    "Role": f"{_RBAC}/namespaces/{OWN}/roles",
    "RoleBinding": f"{_RBAC}/namespaces/{OWN}/rolebindings",
}


def core() -> Path:
    """The source of Cluster API's core; a listed skip where it is not there."""
    done = subprocess.run([str(find_go()), "env", "GOMODCACHE"], capture_output=True, text=True, check=True)
    found = Path(done.stdout.strip()) / f"sigs.k8s.io/cluster-api@{_VERSION}"
    if not found.is_dir():
        pytest.skip(f"no Cluster API here: {found} is not there")
    return found


def _definitions() -> list[Object]:
    """All kinds, with clusterctl's label as it installs them; the core's and clusterctl's own in the version that is
    stored: nothing converts here."""
    found = crds.definitions()
    for folder in ("config", "cmd/clusterctl/config"):
        for path in sorted((core() / folder / "crd" / "bases").glob("*.yaml")):
            document = yaml.safe_load(path.read_text())
            document["spec"]["versions"] = [each for each in document["spec"]["versions"] if each["storage"]]
            document["spec"].pop("conversion", None)
            found.append(document)
    for document in found:
        document["metadata"].setdefault("labels", {})["clusterctl.cluster.x-k8s.io"] = ""
    return found


_INVENTORY = {
    "apiVersion": "clusterctl.cluster.x-k8s.io/v1alpha3",
    "kind": "Provider",
    "metadata": {"name": "infrastructure-metal-ipi", "labels": {"clusterctl.cluster.x-k8s.io": ""}},
    "providerName": "metal-ipi",
    "type": "InfrastructureProvider",
    "version": "v0.1.0",
}
"""What `clusterctl init` writes of a provider."""


class Hub:
    """The API, its objects, and the processes that work there."""

    def __init__(self, access: Access, directory: Path, admin: Path, providers: Path, *, lease: int) -> None:
        self.access, self.directory, self.admin, self.providers = access, directory, admin, providers
        self.client = access.client()
        self._lease = lease
        self._working: list[Process] = []
        self.metrics = 0
        """The port at which the providers that were started last tell their figures."""

    def path(self, kind: str, name: str = "", namespace: str = NAMESPACE) -> str:
        """Where objects of a kind are, by its plural and group: `secrets`, `machines.cluster.x-k8s.io`."""
        plural, _, group = kind.partition(".")
        version = "v1beta2" if group == "cluster.x-k8s.io" else "v1alpha1"
        version = "v1" if not group or group == "coordination.k8s.io" else version
        root = f"/apis/{group}/{version}" if group else f"/api/{version}"
        return f"{root}/namespaces/{namespace}/{plural}" + (f"/{name}" if name else "")

    def get(self, kind: str, name: str, namespace: str = NAMESPACE) -> Object | None:
        """An object; None where there is none."""
        answer = self.client.get(self.path(kind, name, namespace))
        return None if answer.status_code == 404 else answer.raise_for_status().json()

    def list(self, kind: str, namespace: str = NAMESPACE) -> list[Object]:
        """All of a namespace."""
        return send(self.client, "GET", self.path(kind, "", namespace))["items"]

    def make(self, kind: str, document: Mapping[str, Any], namespace: str = NAMESPACE) -> Object:
        """Make an object; raises LabError with what the API says against it."""
        return send(
            self.client, "POST", self.path(kind, "", namespace), json=document, params={"fieldValidation": "Strict"}
        )

    def patch(self, kind: str, name: str, change: Mapping[str, Any], sub: str = "", namespace: str = NAMESPACE) -> None:
        """Merge into an object."""
        path = self.path(kind, name, namespace) + (f"/{sub}" if sub else "")
        headers = {"Content-Type": "application/merge-patch+json"}
        send(
            self.client, "PATCH", path, content=httpx.Request("POST", "http://x", json=change).content, headers=headers
        )

    def delete(self, kind: str, name: str, namespace: str = NAMESPACE) -> None:
        """Ask that an object goes."""
        send(self.client, "DELETE", self.path(kind, name, namespace))

    def until(self, true: Callable[[], Any], what: str, seconds: float = 60.0) -> Any:
        """Wait until something is so."""
        deadline = time.monotonic() + seconds
        while not (found := true()):
            for process in self._working:  # as a kubelet does: on a busy machine a Lease is lost now and then
                if process.pid is not None and not process.runs:
                    process.start()
            assert time.monotonic() < deadline, f"not within {seconds:.0f} s: {what}\n{self.told()}"
            time.sleep(0.2)
        return found

    def condition(self, kind: str, name: str, about: str, namespace: str = NAMESPACE) -> tuple[str, str, str]:
        """Status, reason and message of a condition; empty where there is none."""
        found = (self.get(kind, name, namespace) or {}).get("status", {}).get("conditions") or []
        return next(((c["status"], c["reason"], c["message"]) for c in found if c["type"] == about), ("", "", ""))

    def told(self) -> str:
        """The ends of all logs."""
        logs = sorted(self.directory.glob("*.log"))
        return "\n".join(f"--- {log.name}\n" + "\n".join(log.read_text().splitlines()[-40:]) for log in logs)

    def clusterctl(self, *arguments: str) -> str:
        """What clusterctl prints; a listed skip where it is not built."""
        program = CLUSTERCTL.cached()
        if program is None:
            pytest.skip("clusterctl is not built here: `python -m lab cluster-api` builds it")
        config = self.directory / "clusterctl.yaml"
        config.touch()
        command = [str(program), *arguments, "--config", str(config), "--kubeconfig", str(self.admin)]
        environment = {"CLUSTERCTL_DISABLE_VERSIONCHECK": "true", "XDG_CONFIG_HOME": str(self.directory)}
        done = subprocess.run(
            command, env={**os.environ, **environment}, capture_output=True, text=True, check=False, timeout=300
        )
        assert done.returncode == 0, f"{' '.join(arguments)}: {done.stdout}{done.stderr}\n{self.told()}"
        return done.stdout

    @contextlib.contextmanager
    def working(
        self, name: str = "providers", environment: Sequence[str] = (), options: Sequence[str] = ()
    ) -> Generator[Process]:
        """The providers, with the rights that they ask for and no others, and some variables and options besides."""
        command = ["env", *environment, sys.executable, "-m", "metal_ipi.cluster_api", "--kubeconfig"]
        self.metrics = free_port("127.0.0.1")
        figures = ("--metrics-port", str(self.metrics), "--metrics-address", "127.0.0.1")
        process = Process(
            name,
            [*command, str(self.providers), *figures, "--lease-seconds", str(self._lease), *options],
            self.directory / f"{name}.log",
        )
        process.start()
        self._working.append(process)
        try:
            yield process
        finally:
            process.stop()

    @contextlib.contextmanager
    def admitting(self) -> Generator[Path]:
        """The providers with their admission webhook, which the API server asks. Yields its certificate's folder."""
        folder, port = self.directory / "admission", free_port("127.0.0.1")
        authority = self.certify(folder)
        options = ("--webhook-certificates", str(folder), "--webhook-port", str(port), "--webhook-address", "127.0.0.1")
        client = {"url": f"https://127.0.0.1:{port}{PATH}", "caBundle": base64.b64encode(authority).decode()}
        configuration = webhooks.configuration(client, OWN)
        place = f"/apis/{configuration['apiVersion']}/validatingwebhookconfigurations"
        with self.working("admitting", ALONE, options):
            self.until(lambda: _listens(port), "the webhook listens")
            apply(self.client, f"{place}/{configuration['metadata']['name']}", configuration)
            yield folder
        send(self.client, "DELETE", f"{place}/{configuration['metadata']['name']}")

    def certify(self, folder: Path) -> bytes:
        """Write a new certificate of 127.0.0.1 to `tls.crt` and `tls.key` of a folder. Returns its authority, PEM."""
        identities = Identities(self.directory)
        certificate, key = identities.issue("127.0.0.1")
        folder.mkdir(exist_ok=True)
        certificate.rename(folder / "tls.crt")
        key.rename(folder / "tls.key")
        return identities.ca.read_bytes()

    @contextlib.contextmanager
    def core_controllers(self, *, looks_every: str = "1m") -> Generator[None]:
        """Cluster API's own; a listed skip where they are not built. They look at everything again after a time."""
        built = sorted(cache_directory().glob("cluster-api-controller/*/cluster-api-controller"))
        if not built:
            pytest.skip("Cluster API's core controllers are not built here: `make hub` builds them")
        folder = self.directory / "webhook"
        self.certify(folder)
        ports = [free_port("127.0.0.1") for _ in range(3)]
        options = [
            *("--kubeconfig", str(self.admin), "--webhook-cert-dir", str(folder), "--webhook-port", str(ports[0])),
            *("--health-addr", f"127.0.0.1:{ports[1]}", "--diagnostics-address", f"127.0.0.1:{ports[2]}"),
            *("--insecure-diagnostics", "--sync-period", looks_every),
        ]
        process = Process("core", [str(built[-1]), *options], self.directory / "core.log")
        process.start()
        try:
            yield
        finally:
            process.stop()


def _listens(port: int) -> bool:
    with socket.socket() as asked:
        return asked.connect_ex(("127.0.0.1", port)) == 0


@contextlib.contextmanager
def hub(directory: Path, *, lease: int = 15) -> Generator[Hub]:
    """A running one, with the namespaces of a facility and of the providers; `lease` is theirs, in seconds."""
    identities = Identities(directory)
    with Servers(directory, identities, watch_cache=True) as server:
        own = server.access(*identities.issue("admin", "system:masters"))
        access = replace(own, ca=identities.ca, name=None)
        _furnish(access, [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": _USER}])
        certificate, key = identities.issue(_USER, "providers")
        with _hub(access, replace(access, certificate=certificate, key=key).kubeconfig(), directory, lease) as made:
            yield made


@contextlib.contextmanager
def within(cluster: Object, directory: Path, *, lease: int = 15) -> Generator[Hub]:
    """The same in a cluster that there is, by the kubeconfig of its administrator; the providers come with the token of
    their account, as their pod does."""
    there, user = cluster["clusters"][0]["cluster"], cluster["users"][0]["user"]
    ca, certificate, key = (directory / name for name in ("ca.crt", "admin.crt", "admin.key"))
    ca.write_bytes(base64.b64decode(there["certificate-authority-data"]))
    certificate.write_bytes(base64.b64decode(user["client-certificate-data"]))
    key.write_bytes(base64.b64decode(user["client-key-data"]))
    access = Access(url=there["server"], ca=ca, certificate=certificate, key=key)
    _furnish(access, ())
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 7200}}
    with access.client() as client:
        place = f"/api/v1/namespaces/{OWN}/serviceaccounts/{rbac.NAME}/token"
        token = send(client, "POST", place, json=asked)["status"]["token"]
    providers = json.loads(access.kubeconfig())
    providers["users"][0]["user"] = {"token": token}
    with _hub(access, json.dumps(providers), directory, lease) as made:
        yield made


def _furnish(access: Access, subjects: Sequence[Object]) -> None:
    """All kinds, the namespaces, and the rights of the providers."""
    define(access, _definitions())
    with access.client() as client:
        for name in (NAMESPACE, "other", OWN):
            document = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            apply(client, f"/api/v1/namespaces/{name}", document)
        inventory = f"/apis/{_INVENTORY['apiVersion']}/namespaces/{OWN}/providers/infrastructure-metal-ipi"
        apply(client, inventory, _INVENTORY)
        for document in rbac.objects(OWN, subjects):
            apply(client, f"{_PLACES[document['kind']]}/{document['metadata']['name']}", document)


@contextlib.contextmanager
def _hub(access: Access, providers: str, directory: Path, lease: int) -> Generator[Hub]:
    texts = {"admin": access.kubeconfig(), _USER: providers}
    for name, text in texts.items():
        (directory / f"{name}.kubeconfig").write_text(text)
    made = Hub(access, directory, *(directory / f"{name}.kubeconfig" for name in texts), lease=lease)
    try:
        yield made
    finally:
        made.client.close()
