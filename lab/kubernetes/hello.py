"""What machines say of the API servers that they want: the first lines of a conversation, as JSON.

Three kinds of machines speak. One of the stand-in for openshift-install tells all that its API server needs. The
bootstrap machine of the real installer tells the same, and the signers that OpenShift's operators work with: from then
on the lab does their work. A node of such a cluster's control plane says its name, and proves by its certificate that
it is this node.
"""

from __future__ import annotations

import base64
import hashlib
import ipaddress
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from lab.errors import LabError


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A certificate and its key, PEM."""

    certificate: str
    key: str

    @classmethod
    def of(cls, told: object) -> Pair:
        """Out of a message; raises LabError."""
        found = {name: str(_object(told).get(name) or "") for name in ("certificate", "key")}
        if missing := [name for name, value in found.items() if not value]:
            raise LabError(f"a certificate comes with {' and '.join(missing)}")
        return cls(**found)


@dataclass(frozen=True, kw_only=True)
class Operated:
    """The data that the lab needs to act as a cluster's operators."""

    signers: Mapping[str, Pair]
    """Who signs the certificates of its API servers: `lb`, `localhost`, `service-network`."""
    kubelets: Pair
    """Who signs the certificates of its nodes."""
    facts: Mapping[str, Any]
    """`domain`, `clusterID`, `release`, `controlPlaneReplicas`, `serviceNetwork`; empty where they were told before."""

    @property
    def service_network(self) -> tuple[str, ...]:
        """The networks of Services. Raises LabError."""
        return _networks(self.facts)


@dataclass(frozen=True, kw_only=True)
class Hello:
    """What a machine with its cluster's keys says."""

    clients: str
    """The CAs that sign clients' certificates, PEM."""
    service_account: str
    """The private key of service accounts, PEM: the secret that makes a machine one of its cluster's."""
    controller: Pair
    """The client certificate with which the lab accesses the API."""
    certificate: Pair
    """The API server's."""
    named: tuple[Pair, ...] = ()
    """Further ones, which are shown to who asks for their names."""
    services: tuple[str, ...] = ()
    """The networks of Services; empty where `operated` has them."""
    operated: Operated | None = None
    """None for a cluster whose machines keep it true by themselves."""
    text: str = field(default="", repr=False)
    """The message, to be kept."""

    @classmethod
    def of(cls, line: bytes) -> Hello:
        """Out of a message; raises LabError."""
        told = message(line)
        signers = {name: Pair.of(each) for name, each in _object(told.get("signers")).items()}
        operated = None
        if signers:
            kubelets, facts = Pair.of(told.get("kubelets")), _object(told.get("facts"))
            operated = Operated(signers=signers, kubelets=kubelets, facts=facts)
        return cls(
            clients=str(told.get("clients") or ""),
            service_account=str(told.get("serviceAccount") or ""),
            controller=Pair.of(told.get("controller")),
            certificate=Pair.of(told.get("certificate")),
            named=tuple(Pair.of(each) for each in cast("list[object]", told.get("named") or ())),
            services=() if operated else _networks(told),
            operated=operated,
            text=line.decode(),
        )

    @property
    def service_network(self) -> tuple[str, ...]:
        """The networks of Services, one or one of each family. Raises LabError."""
        return self.operated.service_network if self.operated else self.services

    @property
    def cluster(self) -> str:
        """The identity of the cluster, which only its own machines know."""
        if "PRIVATE KEY" not in self.service_account:
            raise LabError("serviceAccount is not a private key")
        return hashlib.sha256(self.service_account.encode()).hexdigest()[:16]


@dataclass(frozen=True, kw_only=True)
class NodeHello:
    """What a node says."""

    name: str
    certificate: bytes
    """Its own, DER: the one that it uses as a client of the API."""

    @classmethod
    def of(cls, line: bytes) -> NodeHello | None:
        """Out of a message; None where that is of another kind. Raises LabError."""
        told = message(line)
        if "node" not in told:
            return None
        return cls(name=str(told["node"]), certificate=data_of(told, "certificate"))


def message(line: bytes) -> dict[str, Any]:
    """One line of a machine; raises LabError."""
    try:
        told = json.loads(line)
    except ValueError:
        told = None
    if not isinstance(told, dict):
        raise LabError("a machine has to speak JSON objects, one a line")
    return cast("dict[str, Any]", told)


def data_of(told: Mapping[str, Any], name: str) -> bytes:
    """Bytes in a message; raises LabError."""
    try:
        return base64.b64decode(str(told.get(name) or ""), validate=True)
    except ValueError:
        raise LabError(f"{name} is not base64") from None


def _networks(told: Mapping[str, Any]) -> tuple[str, ...]:
    try:
        networks = tuple(
            str(ipaddress.ip_network(each)) for each in cast("list[str]", told.get("serviceNetwork") or ())
        )
    except ValueError as error:
        raise LabError(f"serviceNetwork: {error}") from None
    if not networks:
        raise LabError("serviceNetwork is missing: the machine is of an older lab; take the cluster down")
    return networks


def _object(told: object) -> dict[str, Any]:
    return cast("dict[str, Any]", told) if isinstance(told, dict) else {}
