"""The inputs of an installation, read and checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from provider.boot_tree import MAC
from provider.fields import FILE_NAME, HOST_NAME, PEM, SSH_KEY, URL, Reader
from provider.gates import Access, Node

PLATFORMS = ("redfish", "equinix-metal")
CONTROL_PLANE, WORKER = "control-plane", "worker"
_GENERATION = r"[0-9a-f]{16}"
_CREDENTIALS = ("url", "caPem", "clientCertPem", "clientKeyPem")


@dataclass(frozen=True, kw_only=True)
class LiveFile:
    """A file of the live system."""

    url: str
    sha256: str


_NO_FILE = LiveFile(url="", sha256="")
"""Of a file that is not known yet."""


@dataclass(frozen=True, kw_only=True)
class Live:
    """The live system, as kexec starts it."""

    kernel: LiveFile
    initramfs: LiveFile
    arguments: tuple[str, ...]
    config: LiveFile | None = None
    """The archive with its Ignition. A state of an earlier version has none."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """Uploaded files of the machine's installer."""

    directory: str
    files: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Job:
    """One machine and what is to run on it; fields as `InstallationArgs` explains them."""

    platform: str
    machine_id: str
    hostname: str
    node: str
    role: str
    pool: str
    cluster: str
    generation: str
    address: str
    addresses: tuple[str, ...]
    port: int
    host_key: str
    live_host_key: str
    user: str
    private_key: str
    live: Live
    mac: str | None
    script: str | None
    chain: str | None
    user_data: str | None
    ipxe_script_url: str | None
    artifacts: tuple[Place, ...]
    ordered: bool
    consent: bool
    accept: str
    keep: bool
    disposable: bool
    max_unavailable: int
    members: tuple[str, ...]
    credentials: Mapping[str, Any] | None
    drain_timeout: float
    pre_reboot_commands: tuple[str, ...]
    pxe_commands: tuple[str, ...]
    check: str | None
    log_directory: str | None
    timeout: float
    valid_hours: float
    recorded: str | None = None
    """The disk that it is installed on; empty where that is not known, or another one is wanted; None where it never
    was installed. Of the state, not of the inputs."""

    @property
    def installed(self) -> Node:
        """The machine as its disk runs it."""
        return self._node(self.host_key)

    @property
    def installing(self) -> Node:
        """The machine as the live system runs on it."""
        return self._node(self.live_host_key)

    def access(self, *nodes: Node) -> Access:
        """How to log in, and where logs go."""
        return Access(nodes=nodes, user=self.user, private_key=self.private_key, log_directory=self.log_directory)

    def _node(self, host_key: str) -> Node:
        return Node(
            name=self.hostname,
            address=self.address,
            host_key=host_key,
            machine_id=self.machine_id,
            console=None,
            port=self.port,
        )


def job_of(inputs: Mapping[str, Any]) -> Job:
    """The job of inputs that are all known; raises InvalidInputs."""
    job, reader = parse(inputs)
    reader.raise_problems()
    return job


def parse(inputs: Mapping[str, Any]) -> tuple[Job, Reader]:
    """The job, neutral where inputs are unknown or wrong, and all problems."""
    reader = Reader(inputs)
    reader.only("platform", "machineId", "hostname", "node", "role", "pool", "cluster", "generation", "runs",
                "address", "addresses", "port", "hostKey", "liveHostKey", "user", "privateKey", "live", "mac", "script",
                "chain", "userData", "ipxeScriptUrl", "artifacts", "ordered", "consent", "accept", "keep", "disposable",
                "maxUnavailable", "members", "credentials", "drainTimeoutSeconds", "preRebootCommands", "pxeCommands",
                "check", "logDirectory", "timeoutSeconds", "validHours")  # fmt: skip
    runs = reader.section("runs")
    runs.only("release", "kernelArguments", "consoles", "ignition", "installation", "installDevice", "network")
    address = reader.text("address", pattern=r"[\d.]+", what="an IPv4 address")
    job = Job(
        platform=reader.text("platform", pattern="|".join(PLATFORMS), what="one of " + ", ".join(PLATFORMS)),
        machine_id=reader.text("machineId"),
        hostname=reader.text("hostname", pattern=HOST_NAME, what="a host name"),
        node=reader.text("node", pattern=HOST_NAME, what="a node name"),
        role=reader.text("role", pattern=f"{CONTROL_PLANE}|{WORKER}", what=f"{CONTROL_PLANE} or {WORKER}"),
        pool=reader.text("pool"),
        cluster=reader.text("cluster", pattern=HOST_NAME, what="a domain"),
        generation=reader.text("generation", pattern=_GENERATION, what="16 hex digits"),
        address=address,
        addresses=reader.texts("addresses", required=False) or (address,),
        port=int(reader.number("port", default=22, minimum=1, maximum=65535)),
        host_key=reader.text("hostKey", pattern=SSH_KEY, what="an SSH public key"),
        live_host_key=reader.text("liveHostKey", pattern=SSH_KEY, what="an SSH public key"),
        user=reader.text("user", default="core"),
        private_key=reader.text("privateKey"),
        live=_live(reader),
        mac=reader.optional_text("mac", pattern=MAC, what="a MAC address"),
        script=reader.optional_text("script", pattern=r"#!ipxe\n(.*\n)?kernel .*", what="an iPXE script with a kernel"),
        chain=reader.optional_text("chain", pattern=r"#!ipxe\n.*", what="an iPXE script"),
        user_data=reader.optional_text("userData"),
        ipxe_script_url=reader.optional_text("ipxeScriptUrl", pattern=URL, what="a URL"),
        artifacts=tuple(_place(member) for member in reader.sections("artifacts")),
        ordered=reader.boolean("ordered"),
        consent=reader.boolean("consent"),
        accept=reader.text("accept", pattern="empty|wipe", what="empty or wipe", default="empty"),
        keep=reader.boolean("keep"),
        disposable=reader.boolean("disposable"),
        max_unavailable=int(reader.number("maxUnavailable", default=1, minimum=1)),
        members=reader.texts("members", pattern=HOST_NAME, what="a node name"),
        credentials=_credentials(reader),
        drain_timeout=reader.number("drainTimeoutSeconds", default=600, minimum=1),
        pre_reboot_commands=reader.texts("preRebootCommands", required=False),
        pxe_commands=reader.texts("pxeCommands", required=False),
        check=reader.optional_text("check"),
        log_directory=reader.optional_text("logDirectory", pattern=r"/.*", what="an absolute path"),
        timeout=reader.number("timeoutSeconds", default=3600, minimum=1),
        valid_hours=reader.number("validHours", default=24, minimum=0),
    )
    needed = ("mac", "script", "chain") if job.platform == "redfish" else ("userData", "ipxeScriptUrl")
    for key in needed if job.platform else ():
        if inputs.get(key) is None:
            reader.fail(key, f"is required on {job.platform}: the machine boots its installer by it")
    members = inputs.get("members")
    if isinstance(members, list) and job.node and len(job.members) == len(members) and job.node not in job.members:
        reader.fail("members", f"must hold {job.node} itself")
    return job, reader


def _place(reader: Reader) -> Place:
    reader.only("directory", "files", "hashes")
    return Place(
        directory=reader.text(
            "directory", pattern=r"[A-Za-z0-9_-]{20,}", what="the output `directory` of an Artifacts"
        ),
        files=reader.texts("files", pattern=FILE_NAME, what="a plain file name"),
    )


def _live(reader: Reader) -> Live:
    if reader.unknown("live"):
        return Live(kernel=_NO_FILE, initramfs=_NO_FILE, arguments=())
    live = reader.section("live")
    live.only("kernel", "initramfs", "config", "arguments")
    return Live(
        kernel=_file(live, "kernel"),
        initramfs=_file(live, "initramfs"),
        arguments=live.texts("arguments"),
        config=None if live.values.get("config") is None else _file(live, "config"),
    )


def _file(live: Reader, key: str) -> LiveFile:
    if live.unknown(key):
        return _NO_FILE
    reader = live.section(key)
    reader.only("url", "sha256")
    return LiveFile(
        url=reader.text("url", pattern=URL, what="a URL"),
        sha256=reader.text("sha256", pattern=r"[0-9a-f]{64}", what="a SHA-256 in hex"),
    )


def _credentials(reader: Reader) -> Mapping[str, Any] | None:
    if reader.values.get("credentials") is None or reader.unknown("credentials"):
        return None
    section = reader.section("credentials")
    section.only(*_CREDENTIALS)
    section.text("url", pattern=URL.replace("https?", "https"), what="an https URL")
    for key in _CREDENTIALS[1:]:
        section.text(key, pattern=PEM, what="in PEM")
    return section.values
