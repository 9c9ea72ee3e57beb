"""A real Ironic on loopback: API and conductor in one process, over TLS, with accounts; its packages are pinned."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import sqlite3
import ssl
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO

import bcrypt
import httpx
import trustme

from binaries.cache import alone, cache_directory
from metal_ipi.components.provisioning import conductors, configuration, contract
from tests.lab.bmc.harness import has_ipmitool
from tests.provider.knot import free_port
from tests.serving import serving

USER, PASSWORD = "metal-ipi-tests", "not-the-word-of-anybody-7f"
_REQUIREMENTS = Path(__file__).parents[2] / "lab" / "ironic" / "requirements.txt"
_SECONDS = 60
_CONFIGURATION = """\
[DEFAULT]
state_path = {0}
host = ironic-0
rpc_transport = none
auth_strategy = http_basic
http_basic_auth_user_file = {0}/accounts
default_deploy_interface = direct
{3}
[api]
host_ip = 127.0.0.1
port = {1}
api_workers = 1
enable_ssl_api = true
[ssl]
cert_file = {0}/tls.crt
key_file = {0}/tls.key
[conductor]
automated_clean = false
sync_power_state_interval = 2
power_state_change_timeout = 30
heartbeat_timeout = 1
[database]
connection = sqlite:///{0}/ironic.sqlite
[deploy]
http_root = {0}/http
http_url = {2}
ramdisk_image_download_source = http
[dhcp]
dhcp_provider = none
[pxe]
tftp_root = {0}/tftp
images_path = {0}/images
tftp_master_path = {0}/master
instance_master_path = {0}/instances
[ipmi]
command_retry_timeout = 4
min_command_interval = 1
[redfish]
use_swift = false
firmware_update_status_interval = 2
firmware_update_validation_interval = 1
raid_config_status_interval = 2
[oslo_concurrency]
lock_path = {0}/locks
"""


def installed() -> Path:
    """The programs of Ironic, in a virtual environment of their own that is made once."""
    digest = hashlib.sha256(_REQUIREMENTS.read_bytes() + sys.version.encode()).hexdigest()[:16]
    directory = cache_directory() / "ironic" / digest
    with alone(directory.with_suffix(".lock"), "Ironic", print):
        if not (directory / "ready").exists():
            subprocess.run([sys.executable, "-m", "venv", "--clear", directory], check=True)
            pip = (directory / "bin" / "python", "-m", "pip", "--quiet", "--disable-pip-version-check")
            subprocess.run([*pip, "install", "--no-deps", "--requirement", _REQUIREMENTS], check=True)
            (directory / "ready").touch()
    return directory / "bin"


def _drivers() -> str:
    """All hardware types and interfaces that the service has; ipmi only where there is an ipmitool, without which no
    conductor starts."""
    names = [name for name in configuration.drivers() if name != "ipmi" or has_ipmitool()]
    nowhere = contract.NodePorts(address="192.0.2.1", api=1, files=2, images=3)
    images = contract.Images(ironic="", database="", files="")
    args = contract.IronicArgs(kubeconfig="", namespace="n", images=images, access=nowhere, drivers=names)
    options = configuration.own_options(args)["DEFAULT"]
    return "\n".join(f"{name} = {value}" for name, value in options.items() if name.startswith("enabled_"))


class Ironic:
    """One that runs."""

    def __init__(self, directory: Path, files: str) -> None:
        """`files` is the URL of `<directory>/http`."""
        self._directory, self._port = directory, free_port()
        self._bin = installed()
        authority = trustme.CA()
        authority.cert_pem.write_to_path(directory / "ca.crt")
        own = authority.issue_cert("127.0.0.1")
        own.private_key_pem.write_to_path(directory / "tls.key")
        (directory / "tls.crt").write_bytes(b"".join(part.bytes() for part in own.cert_chain_pems))
        kept = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode()
        (directory / "accounts").write_text(f"{USER}:{kept}\n")
        self._at_start = directory / "python"
        self._at_start.mkdir()
        shutil.copy(conductors.AT_START, self._at_start)
        self._configuration = directory / "ironic.conf"
        self._configuration.write_text(_CONFIGURATION.format(directory, self._port, files, _drivers()))
        self.files = files
        """URL of its boot files."""
        self.boot_files = directory / "http"
        self._process: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] = (directory / "ironic.log").open("ab")
        self._run("ironic-dbsync", "create_schema")
        self.client = httpx.Client(
            base_url=self.endpoint,
            auth=(USER, PASSWORD),
            verify=ssl.create_default_context(cafile=directory / "ca.crt"),
            headers={"X-OpenStack-Ironic-API-Version": "1.95"},
            trust_env=False,
            timeout=30,
        )

    @property
    def endpoint(self) -> str:
        """URL of its API."""
        return f"https://127.0.0.1:{self._port}"

    @property
    def ca(self) -> str:
        """What its certificate is signed by, PEM."""
        return (self._directory / "ca.crt").read_text()

    @property
    def log(self) -> str:
        """What it has said."""
        return (self._directory / "ironic.log").read_text(errors="replace")

    def _run(self, *command: str) -> None:
        name, *arguments = command
        subprocess.run(
            [self._bin / name, "--config-file", self._configuration, *arguments],
            check=True,
            stdout=self._log,
            stderr=self._log,
        )

    def start(self) -> None:
        """Start it, and wait until a conductor is there."""
        self._process = subprocess.Popen(
            [self._bin / "ironic", "--config-file", self._configuration],
            env={**os.environ, "PYTHONPATH": str(self._at_start)},
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
        )
        until = time.monotonic() + _SECONDS
        while True:
            try:
                if self.client.get("/v1/conductors").json().get("conductors"):
                    return
            except httpx.TransportError:
                pass
            assert time.monotonic() < until and self._process.poll() is None, self.log[-2000:]
            time.sleep(0.2)

    def kill(self) -> None:
        """End it without a word."""
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGKILL)  # its workers, too
        self._process.wait()
        self._process = None

    def close(self) -> None:
        """End it."""
        self.client.close()
        if self._process is not None:
            self.kill()  # nobody needs what it keeps, and it would ask its BMCs until they answer
        self._log.close()

    @contextmanager
    def failing_allocations(self, times: int) -> Generator[None]:
        """Its database refuses so many allocations, as one that is locked does."""
        with closing(sqlite3.connect(self._directory / "ironic.sqlite", timeout=30)) as database:
            database.executescript(
                f"""
                CREATE TABLE failed (uuid TEXT);
                CREATE TRIGGER failing BEFORE UPDATE ON allocations
                WHEN NEW.state = 'active' AND (SELECT count(*) FROM failed) < {times}
                BEGIN SELECT RAISE(ABORT, 'locked for a test'); END;
                CREATE TRIGGER failed AFTER UPDATE ON allocations WHEN NEW.state = 'error'
                BEGIN INSERT INTO failed VALUES (NEW.uuid); END;
                """
            )
            try:
                yield
                assert database.execute("SELECT count(*) FROM failed").fetchall() == [(times,)]
            finally:
                database.executescript("DROP TRIGGER failing; DROP TRIGGER failed; DROP TABLE failed;")

    def node(self, name: str) -> dict[str, object]:
        """A node, as its API tells of it."""
        answer = self.client.get(f"/v1/nodes/{name}")
        answer.raise_for_status()
        found: dict[str, object] = answer.json()
        return found

    def lasting(self, name: str) -> dict[str, object]:
        """The same without what Ironic writes by itself whenever it looks at the power."""
        return {key: value for key, value in self.node(name).items() if key not in ("reservation", "updated_at")}


@contextmanager
def running(directory: Path) -> Generator[Ironic]:
    """An Ironic whose state is in `directory`."""
    (directory / "http").mkdir()
    with serving(directory / "http") as files:
        ironic = Ironic(directory, files)
        try:
            ironic.start()
            yield ironic
        finally:
            ironic.close()
