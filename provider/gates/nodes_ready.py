"""nodes-ready: every named node is Ready. On the way their certificate requests are approved, and no others.

Blanket approval lets any machine that reaches the API join the cluster. Here a request is approved only if the
certificate it asks for is the kubelet's of a named node, asked for by the machine config operator's bootstrapper, by a
bootstrap token or by the node itself, and if a serving certificate names nothing but this node.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import copy
from collections.abc import Mapping, Sequence
from typing import Any

from provider.gates import Check, Observation, Spec
from provider.gates.https import Answer, Api, same_cluster
from provider.resource import Context

_NODES = "/api/v1/nodes"
_REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
_BOOTSTRAPPER = "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper"
_CLIENT = "kubernetes.io/kube-apiserver-client-kubelet"
_SERVING = "kubernetes.io/kubelet-serving"


def open_check(context: Context, spec: Spec, old: Spec | None) -> Check | None:
    """Only names which are new, or are another machine's now, are waited for."""
    passed = dict[str, str]()
    if old is not None and same_cluster(spec, old):
        machines = _machines(old)
        passed = {name: machines.get(name, "") for name in old.get("names") or ()}
    machines = _machines(spec)
    pending = [name for name in spec["names"] if passed.get(name) != machines.get(name, "")]
    return NodesReady(spec, pending) if pending else None


def _machines(spec: Spec) -> dict[str, str]:
    """Name of a node → the platform's id of its machine, where the specification tells it."""
    return {str(node["name"]): str(node.get("machineId") or "") for node in spec.get("nodes") or ()}


class NodesReady:
    """See `Check`."""

    def __init__(self, spec: Spec, pending: Sequence[str]) -> None:
        self._api = Api(spec)
        self._pending = tuple(pending)
        self._names = frozenset[str](spec["names"])
        self._addresses: Mapping[str, Sequence[str]] = spec.get("addresses") or {}

    async def look(self, elapsed: float) -> Observation:
        nodes, requests = await asyncio.gather(self._api.get(_NODES), self._api.get(_REQUESTS))
        others: list[str] = []
        problems: list[str] = []
        if not requests.problem:
            for request in pending_requests(requests.body):
                why_not = refusal(request, self._names, self._addresses)
                if why_not:
                    others.append(f"{request['metadata']['name']} ({why_not})")
                else:
                    problems += await self._approve(request)
        elif requests.status != 404:  # 404: this API server has no such API
            problems.append(f"certificate requests: {requests.problem}")
        return evaluate(nodes, self._pending, self._addresses, others=others, problems=problems)

    async def _approve(self, request: Mapping[str, Any]) -> list[str]:
        name = request["metadata"]["name"]
        answer = await self._api.put(f"{_REQUESTS}/{name}/approval", approved(request))
        return [f"approving {name}: {answer.problem}"] if answer.problem else []


def evaluate(
    answer: Answer,
    names: Sequence[str],
    addresses: Mapping[str, Sequence[str]],
    *,
    others: Sequence[str] = (),
    problems: Sequence[str] = (),
) -> Observation:
    """Which of the names are not Ready, and why."""
    if answer.problem:
        return Observation(passed=False, text=answer.problem, waiting=tuple(names))
    nodes = {str(item["metadata"]["name"]): item for item in answer.body.get("items") or []}
    missing = {name: why for name in names if (why := _not_ready(nodes.get(name), addresses.get(name, ())))}
    notes = list(problems) + [f"left alone: certificate request {other}" for other in others]
    if missing:
        text = "; ".join([", ".join(f"{name} ({why})" for name, why in missing.items()), *notes])
        return Observation(passed=False, text=text, waiting=tuple(missing))
    return Observation(passed=True, text="; ".join([f"Ready: {', '.join(names)}", *notes]))


def _not_ready(node: Mapping[str, Any] | None, addresses: Sequence[str]) -> str | None:
    if node is None:
        return "has not joined"
    status: Mapping[str, Any] = node.get("status") or {}
    # A machine that took another's name finds that one's object, which says Ready until somebody misses its kubelet.
    internal = {str(item["address"]) for item in status.get("addresses") or [] if item.get("type") == "InternalIP"}
    if addresses and internal and not internal & set(addresses):
        return f"the node of this name is another machine's still, at {', '.join(sorted(internal))}"
    for condition in status.get("conditions") or []:
        if condition.get("type") == "Ready":
            ready = str(condition.get("status"))
            return None if ready == "True" else f"Ready={ready} {condition.get('message') or ''}".strip()
    return "has no Ready condition"


def pending_requests(body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Requests that nobody has approved or denied."""
    return [item for item in body.get("items") or [] if not (item.get("status") or {}).get("conditions")]


def refusal(request: Mapping[str, Any], names: frozenset[str], addresses: Mapping[str, Sequence[str]]) -> str | None:
    """Why we do not approve a request; None when it is one of our nodes' own."""
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
    name, requestor, signer = (
        common[0].removeprefix("system:node:"),
        str(spec.get("username", "")),
        spec.get("signerName"),
    )
    if name not in names:
        return f"for {name}, which is not one of ours"
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
    """The request as the approval sub-resource wants it."""
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
