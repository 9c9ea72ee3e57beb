"""Certificate signing requests of nodes: which of them are approved, and the approval.

Approving all requests would let any machine that reaches the API join the cluster. Here a request is approved only if
it is for the kubelet's certificate of a named node; the requester is the machine config operator's bootstrapper, a
bootstrap token or the node itself; and a serving certificate names only this node.

The bootstrap machine of openshift-install would approve every request (approve-csr.service); that unit is masked
(components/install/bootstrap.py), so this is the only rule.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from metal_ipi.provider.gates import Spec
from metal_ipi.provider.gates.https import Api, conditions_of

_REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
_BOOTSTRAPPER = "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper"
_CLIENT = "kubernetes.io/kube-apiserver-client-kubelet"
_SERVING = "kubernetes.io/kubelet-serving"
_AT_ONCE = 10
_TOLD = 5
"""How many requests that were not approved are named: a pool of a hundred workers has as many."""


@dataclass(frozen=True, kw_only=True)
class Approvals:
    """The result of one look at the requests."""

    others: tuple[str, ...] = ()
    """Requests that were not approved, and why."""
    problems: tuple[str, ...] = ()
    """Errors."""

    @property
    def notes(self) -> list[str]:
        """Errors and requests that were not approved, for people."""
        found = [f"left alone: certificate request {other}" for other in self.others[:_TOLD]]
        if more := len(self.others[_TOLD:]):
            found.append(f"left alone: {more} more certificate requests")
        return [*self.problems, *found]


class Approver:
    """Approves the requests of named nodes."""

    def __init__(self, api: Api, spec: Spec) -> None:
        """`spec` has the nodes' `names`, and `addresses`: for each name, the addresses that its serving certificate may
        contain."""
        self._api = api
        self._names = frozenset[str](spec.get("names") or ())
        self._addresses: Mapping[str, Sequence[str]] = spec.get("addresses") or {}
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._refused = dict[str, str]()
        """Why requests are not approved, by UID. Each is read once: the API never changes what a request asks for
        (kubernetes, pkg/registry/certificates/certificates/strategy.go)."""

    async def look(self) -> Approvals:
        """Look once, and approve all pending requests of the named nodes."""
        requests = await self._api.get(_REQUESTS)
        if requests.problem:
            # 404: this API server has no such API.
            return Approvals(problems=() if requests.status == 404 else (f"certificate requests: {requests.problem}",))
        pending = [(request, self._refusal(request)) for request in pending_requests(requests.body)]
        others = (f"{request['metadata']['name']} ({why_not})" for request, why_not in pending if why_not)
        problems = await asyncio.gather(*(self._approve(request) for request, why_not in pending if not why_not))
        return Approvals(others=tuple(others), problems=tuple(filter(None, problems)))

    def _refusal(self, request: Mapping[str, Any]) -> str | None:
        uid = str(request["metadata"]["uid"])
        if uid not in self._refused:
            why_not = refusal(request, self._names, self._addresses)
            if why_not is None:
                return None
            self._refused[uid] = why_not
        return self._refused[uid]

    async def _approve(self, request: Mapping[str, Any]) -> str | None:
        """Returns what went wrong, if anything."""
        name = request["metadata"]["name"]
        async with self._slots:
            answer = await self._api.request("PUT", f"{_REQUESTS}/{name}/approval", approved(request))
        return f"approving {name}: {answer.problem}" if answer.problem else None


def pending_requests(body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Requests that have been neither approved nor denied."""
    return [item for item in body.get("items") or [] if not conditions_of(item)]


def refusal(request: Mapping[str, Any], names: frozenset[str], addresses: Mapping[str, Sequence[str]]) -> str | None:
    """The reason why a request is not approved; None if it is a request of one of our nodes."""
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    spec: Mapping[str, Any] = request.get("spec") or {}
    try:
        csr = x509.load_pem_x509_csr(base64.b64decode(spec.get("request", ""), validate=True))
    except (ValueError, binascii.Error):
        return "its certificate request cannot be read"
    if not csr.is_signature_valid:
        return "its signature is wrong"
    common = [str(item.value) for item in csr.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    organizations = [str(item.value) for item in csr.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]
    if len(common) != 1 or not common[0].startswith("system:node:") or organizations != ["system:nodes"]:
        return "not for a node"
    name, requestor = common[0].removeprefix("system:node:"), str(spec.get("username", ""))
    signer = spec.get("signerName")
    if name not in names:
        return f"for {name}, which this gate does not wait for"
    own = requestor == common[0]
    if signer == _CLIENT:
        trusted = own or requestor == _BOOTSTRAPPER or requestor.startswith("system:bootstrap:")
        extra = _alternative_names(csr)
        return None if trusted and not extra else f"for {name}, but asked for by {requestor or 'nobody'}"
    if signer == _SERVING:
        if not own:
            return f"for {name}, but asked for by {requestor or 'nobody'}"
        allowed = {name, name.split(".")[0], *addresses.get(name, ())}
        strange = _alternative_names(csr) - allowed
        return f"for {name}, but also for {', '.join(sorted(strange))}" if strange else None
    return f"signer {signer} is not a kubelet's"


def _alternative_names(csr: Any) -> set[str]:
    from cryptography import x509

    try:
        names = csr.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return set()
    return {str(item.value) for item in names}


def approved(request: Mapping[str, Any]) -> dict[str, Any]:
    """The request as body for the approval subresource."""
    result = copy.deepcopy(dict(request))
    result.setdefault("apiVersion", "certificates.k8s.io/v1")
    result.setdefault("kind", "CertificateSigningRequest")
    condition = {
        "type": "Approved",
        "status": "True",
        "reason": "MetalIpiMachine",
        "message": "This node is a machine that metal-ipi made.",
    }
    result["status"] = {**(result.get("status") or {}), "conditions": [condition]}
    return result
