"""kube-apiserver and etcd as two processes, from the start until nothing runs any more.

    with Server(Place(...)) as server:      # raises ServiceFailed, with the last lines of the log
        server.access(certificate, key)

Both listen on one address only. Callers prove who they are by certificates of the given CA: their organisation is their
group, `system:masters` may do everything; RBAC is on. Data and logs stay in the place's directory, so that a server can
be started again; whoever made the directory removes it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import ssl
import subprocess
import time
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import httpx

from lab.errors import ServiceFailed, SetupFailed
from lab.kubernetes import build, pki
from lab.kubernetes.access import Access

ETCD_PACKAGE = "etcd-server"
"""The Debian package with /usr/bin/etcd."""

READY_SECONDS = 60.0
"""Measured: ready 3 s after the start on an idle machine."""

_STOP_SECONDS = 10.0
_POLL_SECONDS = 0.1
_LINES_TOLD = 12
_SERVICES = "172.30.0.0/16"


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where an API server lives, and who may talk to it."""

    directory: Path
    """For data, keys and logs; made if it is not there (mode 0700)."""
    port: int
    """The API's."""
    etcd_port: int
    """etcd's, for the API server alone."""
    etcd_peer_port: int
    """etcd's for other members; there are none, but it listens."""
    ca: Path
    """PEM of the CA that signed the server's and all clients' certificates."""
    certificate: Path
    """PEM of the server's certificate, valid for the address."""
    key: Path
    """PEM of its private key."""
    address: str = "127.0.0.1"
    """The address that all of it listens on."""
    options: tuple[str, ...] = ()
    """More options of kube-apiserver."""

    @property
    def url(self) -> str:
        """The API's."""
        return f"https://{self.address}:{self.port}"

    def log(self, program: str) -> Path:
        """The log of `etcd` or `kube-apiserver`."""
        return self.directory / f"{program}.log"


def etcd() -> Path:
    """etcd's program. Raises SetupFailed where it is not installed."""
    found = shutil.which("etcd", path=f"{os.environ.get('PATH', '')}:/usr/bin")
    if found is None:
        raise SetupFailed(f"etcd is not there: install the package {ETCD_PACKAGE}")
    return Path(found)


def etcd_command(place: Place, program: Path) -> list[str]:
    """How etcd is started: one member, everything behind TLS."""
    client = f"https://{place.address}:{place.etcd_port}"
    peer = f"https://{place.address}:{place.etcd_peer_port}"
    own = place.directory
    return [
        str(program),
        "--name=lab",
        f"--data-dir={own / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=lab={peer}",
        *(f"--{kind}cert-file={own / 'etcd.crt'}" for kind in ("", "peer-")),
        *(f"--{kind}key-file={own / 'etcd.key'}" for kind in ("", "peer-")),
        *(f"--{kind}trusted-ca-file={own / 'etcd-ca.crt'}" for kind in ("", "peer-")),
        *(f"--{kind}client-cert-auth" for kind in ("", "peer-")),
        "--logger=zap",
        "--log-level=warn",
    ]


def apiserver_command(place: Place, program: Path) -> list[str]:
    """How kube-apiserver is started."""
    own = place.directory
    return [
        str(program),
        f"--bind-address={place.address}",
        f"--advertise-address={place.address}",
        f"--secure-port={place.port}",
        f"--tls-cert-file={place.certificate}",
        f"--tls-private-key-file={place.key}",
        f"--client-ca-file={place.ca}",
        f"--etcd-servers=https://{place.address}:{place.etcd_port}",
        f"--etcd-cafile={own / 'etcd-ca.crt'}",
        f"--etcd-certfile={own / 'etcd.crt'}",
        f"--etcd-keyfile={own / 'etcd.key'}",
        "--authorization-mode=Node,RBAC",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-signing-key-file={own / 'service-account.key'}",
        f"--service-account-key-file={own / 'service-account.key'}",
        f"--service-cluster-ip-range={_SERVICES}",
        # No controller makes the accounts that pods would run as, and nothing has the API serve its own address.
        "--disable-admission-plugins=ServiceAccount",
        "--endpoint-reconciler-type=none",
        "--profiling=false",
        *place.options,
    ]


class Server:
    """Both processes. They end with this process too, however it ends."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Server:
        try:
            self.start()
            self.wait_ready()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def access(self, certificate: Path, key: Path) -> Access:
        """The way in for whoever holds a certificate of the CA (PEM files)."""
        return Access(url=self._place.url, ca=self._place.ca, certificate=certificate, key=key)

    def start(self) -> None:
        """Start both, without waiting. Raises SetupFailed where a program is missing."""
        store, program = etcd(), build.cached()
        if program is None:
            raise SetupFailed("kube-apiserver is not built yet: run set-up")
        self._place.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        pki.ensure(self._place.directory, self._place.address)
        self._spawn("etcd", etcd_command(self._place, store))
        self._spawn("kube-apiserver", apiserver_command(self._place, program))

    def wait_ready(self, seconds: float = READY_SECONDS) -> None:
        """Wait until the API says that it is. Raises ServiceFailed when a process ends, or time does."""
        deadline = time.monotonic() + seconds
        context = ssl.create_default_context(cafile=str(self._place.ca))
        said = "it does not listen"
        with httpx.Client(base_url=self._place.url, verify=context, timeout=2.0, trust_env=False) as client:
            while True:
                for name, process in self._processes.items():
                    if process.poll() is not None:
                        raise ServiceFailed(f"{name} ended with status {process.returncode}:\n{self._last_lines(name)}")
                with _not_listening():
                    answer = client.get("/readyz")
                    if answer.is_success:
                        return
                    said = f"{answer.status_code} {answer.text[:500]}"
                if time.monotonic() > deadline:
                    raise ServiceFailed(
                        f"the API is not ready after {seconds:.0f} s ({said}):\n{self._last_lines('kube-apiserver')}"
                    )
                time.sleep(_POLL_SECONDS)

    def stop(self) -> None:
        """End both, the API server first; repeating it does nothing."""
        for name in reversed(list(self._processes)):
            process = self._processes.pop(name)
            process.terminate()
            try:
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _spawn(self, name: str, command: list[str]) -> None:
        # setpriv has the kernel end the process with ours: a killed test run leaves nothing behind.
        with self._place.log(name).open("ab") as log:
            self._processes[name] = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "--", *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _last_lines(self, name: str) -> str:
        lines = self._place.log(name).read_text(errors="replace").splitlines()
        return "\n".join(lines[-_LINES_TOLD:])


@contextlib.contextmanager
def _not_listening() -> Generator[None]:
    """A server that is starting refuses connections, or answers half: that is no error yet."""
    with contextlib.suppress(httpx.TransportError):
        yield
