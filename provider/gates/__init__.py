"""Gates: what is waited for. One module per kind; the evaluation of answers is pure and apart from the I/O."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from provider.fields import HOST_NAME, PEM, SSH_KEY, URL, Reader
from provider.resource import Context

KINDS = (
    "ssh-reachable",
    "machine-config-access",
    "api-answers",
    "bootstrap-complete",
    "address-announced",
    "nodes-ready",
    "install-complete",
)


@dataclass(frozen=True, kw_only=True)
class Node:
    """A node as a gate knows it."""

    name: str
    address: str
    host_key: str
    machine_id: str | None
    console: str | None
    port: int


@dataclass(frozen=True, kw_only=True)
class Access:
    """Nodes, how to log in to them, and where their logs go."""

    nodes: tuple[Node, ...]
    user: str
    private_key: str | None
    log_directory: str | None


@dataclass(frozen=True, kw_only=True)
class Observation:
    """What one look saw."""

    passed: bool
    text: str
    """What was seen, or what is waited for: one line."""
    waiting: tuple[str, ...] = ()
    """Names of the nodes that have not passed; empty when the gate is not about nodes."""
    fatal: str | None = None
    """A cause that waiting will not cure."""


class Check(Protocol):
    """Looks whether a gate is open. Keeps what passed already."""

    async def look(self, elapsed: float) -> Observation:
        """One look, at most some seconds long. Raises nothing for what may pass by itself."""
        ...


Spec = Mapping[str, Any]
Opener = Callable[[Context, Spec, Spec | None], Check | None]
"""Makes the check of a specification; with an old one, only for what is new, and None when nothing is."""


_ACCESS = ("nodes", "user", "privateKey", "logDirectory")
_OVER_SSH = {
    "ssh-reachable": (),
    "machine-config-access": ("program", "networks", "addresses"),
    "address-announced": ("address", "mode", "program", "from"),
}
"""Kinds that log in to their nodes, and what their specifications have besides."""
_JOINING = ("bootstrap-complete", "nodes-ready")
"""Kinds that approve the certificate requests of named nodes."""
_NETWORK = r"[0-9.]+(/\d+)?|[0-9a-fA-F:]*:[0-9a-fA-F:.]*(/\d+)?"
_CLUSTER = ("url", "caPem", "clientCertPem", "clientKeyPem")


def check_spec(kind: str, reader: Reader) -> None:
    """All problems of a specification, noted in the reader."""
    over_ssh = _OVER_SSH.get(kind)
    read_access(reader, required=over_ssh is not None)
    if over_ssh is not None:
        reader.only(*_ACCESS, *over_ssh)
        if kind != "ssh-reachable":
            reader.text("program", pattern=r"/[\w./-]+", what="an absolute path")
        if kind == "machine-config-access":
            reader.texts("networks", pattern=_NETWORK, what="an address or a CIDR")
            reader.texts("addresses", required=False)
        elif kind == "address-announced":
            reader.text("address", pattern=r"[\d.]+", what="an IPv4 address")
            reader.text("mode", pattern="bgp|arp", what="bgp or arp")
            read_nodes(reader, "from", required=False)
        return
    reader.text("url", pattern=URL.replace("https?", "https"), what="an https URL")
    reader.text("caPem", pattern=PEM, what="certificates in PEM")
    if kind == "api-answers":
        reader.only(*_ACCESS, "url", "caPem")
        return
    reader.text("clientCertPem", pattern=PEM, what="a certificate in PEM")
    reader.text("clientKeyPem", pattern=PEM, what="a private key in PEM")
    if kind in _JOINING:
        reader.only(*_ACCESS, *_CLUSTER, "names", "addresses")
        reader.texts("names", pattern=HOST_NAME, what="a node name", required=kind == "nodes-ready")
        addresses = reader.section("addresses", required=False)
        for name in addresses.values:
            addresses.texts(name, required=False)
    else:
        reader.only(*_ACCESS, *_CLUSTER)


def read_access(reader: Reader, *, required: bool = False) -> Access:
    """The part which all kinds share."""
    nodes = read_nodes(reader, "nodes", required=required)
    key = reader.text("privateKey") if required else reader.optional_text("privateKey")
    return Access(
        nodes=tuple(nodes),
        user=reader.text("user", default=None if required else "core"),
        private_key=key,
        log_directory=reader.optional_text("logDirectory", pattern=r"/.*", what="an absolute path"),
    )


def access_of(spec: Spec) -> Access:
    """The nodes of a specification, and how to log in to them; raises InvalidInputs for anything less."""
    reader = Reader(spec, "spec")
    access = read_access(reader, required=True)
    reader.raise_problems()
    return access


def read_nodes(reader: Reader, key: str, *, required: bool) -> list[Node]:
    """A list of nodes."""
    return [_node(member) for member in reader.sections(key, required=required)]


def _node(reader: Reader) -> Node:
    reader.only("name", "address", "hostKey", "machineId", "console", "port")
    return Node(
        name=reader.text("name", pattern=HOST_NAME, what="a host name"),
        address=reader.text("address"),
        host_key=reader.text("hostKey", pattern=SSH_KEY, what="an SSH public key"),
        machine_id=reader.optional_text("machineId"),
        console=reader.optional_text("console", pattern=r"[^@\s]+@[^@\s]+", what="`<user>@<host>`")
        if reader.values.get("console") != ""
        else None,
        port=int(reader.number("port", default=22, minimum=1, maximum=65535)),
    )
