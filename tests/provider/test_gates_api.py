"""The gates that ask a cluster's API, against one on loopback."""

from __future__ import annotations

import asyncio
import base64
import socket
import time
import uuid
from typing import Any

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from metal_ipi.provider import backoff
from metal_ipi.provider.errors import GateFailed
from metal_ipi.provider.gates import approvals, https
from metal_ipi.provider.gates.approvals import Approver, refusal
from metal_ipi.provider.gates.cluster import NodesReady
from tests.provider.fake_cluster import FakeCluster
from tests.provider.fake_etcd import etcd_operator
from tests.provider.harness import Harness, Resource

pytestmark = pytest.mark.usefixtures("no_waiting")

BOOTSTRAP = "/api/v1/namespaces/kube-system/configmaps/bootstrap"
NODES = "/api/v1/nodes"
REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
VERSION = "/apis/config.openshift.io/v1/clusterversions/version"
BOOTSTRAPPER = "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper"
CLIENT, SERVING = "kubernetes.io/kube-apiserver-client-kubelet", "kubernetes.io/kubelet-serving"


def gate(kind: str, spec: dict[str, Any], timeout: float = 3, **more: Any) -> dict[str, Any]:
    return {"kind": kind, "spec": spec, "timeoutSeconds": timeout, "triggers": [], **more}


async def up(inputs: dict[str, Any], it: Resource | None = None) -> Resource:
    it = it or Resource(Harness(), "Gate", name="the-gate")
    await it.up(inputs)
    return it


def node(name: str, ready: str = "True", address: str = "10.0.0.1") -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "status": {
            "conditions": [{"type": "Ready", "status": ready, "message": "why"}],
            "addresses": [{"type": "Hostname", "address": name}, {"type": "InternalIP", "address": address}],
        },
    }


def csr(
    name: str, *, username: str, signer: str, sans: tuple[str, ...] = (), organization: str = "system:nodes"
) -> Any:
    subject = x509.Name(
        [
            x509.NameAttribute(NameOID.COMMON_NAME, f"system:node:{name}"),
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization),
        ]
    )
    builder = x509.CertificateSigningRequestBuilder().subject_name(subject)
    if sans:
        builder = builder.add_extension(
            x509.SubjectAlternativeName([x509.DNSName(item) for item in sans]), critical=False
        )
    pem = builder.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256()).public_bytes(
        serialization.Encoding.PEM
    )
    request = {"request": base64.b64encode(pem).decode(), "username": username, "signerName": signer}
    return {"metadata": {"name": f"csr-{name}", "uid": str(uuid.uuid4())}, "spec": request, "status": {}}


async def test_api_answers(cluster: FakeCluster) -> None:
    cluster.answers["/readyz"] = (200, {})
    spec = {"url": f"{cluster.url}/readyz", "caPem": cluster.ca_pem}
    it = await up(gate("api-answers", spec))
    assert it.state["observed"] == f"{cluster.url}/readyz: HTTP 200"
    assert await it.changes(gate("api-answers", spec)) == []
    # More nodes to gather logs from are no reason to wait again; a trigger is.
    looks = cluster.looks
    await up(gate("api-answers", {**spec, "logDirectory": "/x"}), it)
    assert cluster.looks == looks
    await up(gate("api-answers", {**spec, "logDirectory": "/x"}, triggers=["new"]), it)
    assert cluster.looks == looks + 1


@pytest.mark.parametrize(
    ("url", "seen"),
    [
        ("https://api.nowhere.invalid:6443/readyz", r"the name api\.nowhere\.invalid does not resolve"),
        ("https://127.0.0.1:1/readyz", r"127\.0\.0\.1:1 refuses the connection"),
    ],
)
async def test_what_hinders_an_answer_is_named(cluster: FakeCluster, url: str, seen: str) -> None:
    with pytest.raises(GateFailed, match=seen) as caught:
        await up(gate("api-answers", {"url": url, "caPem": cluster.ca_pem}, timeout=1))
    assert str(caught.value).startswith("gate the-gate (api-answers) did not pass within 1 s")


async def test_a_handshake_that_never_ends_is_no_fault_of_tls(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(https, "_TIMEOUT", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"https://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(GateFailed, match=r"127\.0\.0\.1:\d+ does not answer"):
            await up(gate("api-answers", {"url": url, "caPem": cluster.ca_pem}, timeout=1))


async def test_another_ca_is_not_trusted(cluster: FakeCluster) -> None:
    cluster.answers["/readyz"] = (200, {})
    spec = {"url": f"{cluster.url}/readyz", "caPem": trustme.CA().cert_pem.bytes().decode()}
    with pytest.raises(GateFailed, match="has a certificate that is not valid"):
        await up(gate("api-answers", spec, timeout=1))


async def test_bootstrap_complete(cluster: FakeCluster) -> None:
    cluster.answers[BOOTSTRAP] = (404, {})
    cluster.answers[REQUESTS] = (200, {"items": []})
    with pytest.raises(GateFailed, match="kube-system/bootstrap is not there yet"):
        await up(gate("bootstrap-complete", cluster.spec(), timeout=1))
    cluster.answers[BOOTSTRAP] = (200, {"data": {"status": "progressing"}})
    with pytest.raises(GateFailed, match="says progressing"):
        await up(gate("bootstrap-complete", cluster.spec(), timeout=1))
    cluster.answers[BOOTSTRAP] = (200, {"data": {"status": "complete"}})
    it = await up(gate("bootstrap-complete", cluster.spec()))
    assert it.state["observed"] == "kube-system/bootstrap says complete"


async def test_the_control_plane_is_let_in_until_bootstrap_is_complete(cluster: FakeCluster) -> None:
    cluster.answers[BOOTSTRAP] = (404, {})
    requests = [csr(name, username=BOOTSTRAPPER, signer=CLIENT) for name in ("a", "worker")]
    cluster.answers[REQUESTS] = (200, {"items": requests})
    with pytest.raises(GateFailed, match=r"kube-system/bootstrap is not there yet; left alone: .*csr-worker"):
        await up(gate("bootstrap-complete", cluster.spec(names=["a"]), timeout=1))
    assert {path for path, _ in cluster.puts} == {f"{REQUESTS}/csr-a/approval"}
    cluster.answers[REQUESTS] = (403, {})
    with pytest.raises(GateFailed, match="certificate requests: HTTP 403"):
        await up(gate("bootstrap-complete", cluster.spec(names=["a"]), timeout=1))


def conditions(available: str, failing: str, progressing: str) -> tuple[int, dict[str, Any]]:
    states = {"Available": available, "Failing": failing, "Progressing": progressing}
    items = [{"type": key, "status": value, "message": f"about {key}"} for key, value in states.items()]
    return 200, {"status": {"conditions": items}}


async def test_install_complete_must_stay_so(cluster: FakeCluster) -> None:
    cluster.answers[VERSION] = conditions("True", "False", "False")
    it = await up(gate("install-complete", cluster.spec(), stabilitySeconds=1))
    assert it.state["waitedSeconds"] >= 1 and cluster.looks >= 3
    for wrong in (("False", "False", "False"), ("True", "True", "False"), ("True", "False", "True")):
        cluster.answers[VERSION] = conditions(*wrong)
        with pytest.raises(GateFailed, match=r"Available=.*, Failing=.*, Progressing="):
            await up(gate("install-complete", cluster.spec(), timeout=1))


async def test_nodes_ready_waits_only_for_new_names(cluster: FakeCluster) -> None:
    cluster.answers[REQUESTS] = (404, {})
    cluster.answers[NODES] = (200, {"items": [node("a"), node("b", "False")]})
    with pytest.raises(GateFailed, match=r"b \(Ready=False why\), c \(has not joined\)"):
        await up(gate("nodes-ready", cluster.spec(names=["a", "b", "c"]), timeout=1))
    spec = cluster.spec(names=["a"])
    it = await up(gate("nodes-ready", spec))
    cluster.answers[NODES] = (200, {"items": [node("a", "Unknown"), node("d")]})
    assert (await up(gate("nodes-ready", {**spec, "names": ["a", "d"]}), it)).state["observed"] == "Ready: d"


async def test_a_control_plane_that_grew_has_to_have_its_members(cluster: FakeCluster) -> None:
    """The operator takes one in after the other, and finds nothing wrong with fewer."""
    cluster.answers[REQUESTS] = (404, {})
    cluster.answers[NODES] = (200, {"items": [node("a")]})
    wanted = gate("nodes-ready", cluster.spec(names=["a"], etcdMembers=5), timeout=1)
    operator = "/apis/config.openshift.io/v1/clusteroperators/etcd"
    for answer, told in (
        ((200, etcd_operator(members=4)), "etcd: it has 4 members, and should have 5"),
        ((200, etcd_operator("b", members=5)), "etcd: 4 of 5 members are available, b is unhealthy"),
        ((503, {}), "etcd: HTTP 503"),
    ):
        cluster.answers[operator] = answer
        with pytest.raises(GateFailed, match=told):
            await up(wanted)
    for answer, told in (
        ((200, etcd_operator(members=5)), "etcd has all its members"),
        ((404, {}), "has no etcd operator"),
    ):
        cluster.answers[operator] = answer
        assert told in (await up(wanted)).state["observed"]


async def test_with_dual_stack_a_node_has_addresses_of_both_families(cluster: FakeCluster) -> None:
    cluster.answers[REQUESTS] = (404, {})
    wanted = gate("nodes-ready", cluster.spec(names=["a"], addresses={"a": ["10.0.0.1", "2001:db8::1"]}), timeout=1)
    joined = node("a")
    joined["status"]["addresses"] = [{"type": "InternalIP", "address": "10.0.0.1"}]
    cluster.answers[NODES] = (200, {"items": [joined]})
    with pytest.raises(GateFailed, match=r"it has no address 2001:db8::1 yet, only 10\.0\.0\.1"):
        await up(wanted)
    joined["status"]["addresses"].append({"type": "InternalIP", "address": "2001:db8::1"})
    assert (await up(wanted)).state["observed"] == "Ready: a"


async def test_a_replaced_machine_has_to_join_anew(cluster: FakeCluster) -> None:
    def spec(machine: str, address: str) -> dict[str, Any]:
        nodes = [{"name": "a", "machineId": machine, "address": address, "hostKey": "ssh-ed25519 AAAA"}]
        return cluster.spec(names=["a"], addresses={"a": [address, "10.9.9.9"]}, nodes=nodes)

    cluster.answers[REQUESTS] = (404, {})
    cluster.answers[NODES] = (200, {"items": [node("a")]})
    it = await up(gate("nodes-ready", spec("machine-1", "10.0.0.1")))
    with pytest.raises(
        GateFailed, match=r"a \(the node of this name still belongs to another machine, at 10\.0\.0\.1\)"
    ):
        await up(gate("nodes-ready", spec("machine-2", "10.0.0.2"), timeout=1), it)
    cluster.answers[NODES] = (200, {"items": [node("a", address="10.0.0.2")]})
    assert (await up(gate("nodes-ready", spec("machine-2", "10.0.0.2")), it)).state["observed"] == "Ready: a"


@pytest.mark.parametrize(("failing", "waiting"), [({"aborts": True}, {}), ({}, {"givesUpWith": ["others", "failing"]})])
async def test_what_cannot_pass_any_more_gives_up(
    cluster: FakeCluster, failing: dict[str, Any], waiting: dict[str, Any]
) -> None:
    """Gates of one update run in one plugin."""
    cluster.answers[REQUESTS] = (404, {})
    cluster.answers[NODES] = (200, {"items": []})
    cluster.answers[BOOTSTRAP] = (404, {})
    harness = Harness()

    async def both() -> tuple[dict[str, Any] | BaseException, dict[str, Any] | BaseException]:
        return await asyncio.gather(
            Resource(harness, "Gate", name="failing").up(gate("bootstrap-complete", cluster.spec(), 1, **failing)),
            Resource(harness, "Gate", name="waiting").up(gate("nodes-ready", cluster.spec(names=["a"]), 60, **waiting)),
            return_exceptions=True,
        )

    started = time.monotonic()
    first, second = await both()
    assert time.monotonic() - started < 20
    assert "gate failing (bootstrap-complete) did not pass within 1 s" in str(first)
    assert "gate waiting (nodes-ready) gave up after" in str(second)
    assert "because gate failing failed" in str(second) and "a (has not joined)" in str(second)


async def test_when_to_give_up_is_nothing_to_a_gate_that_has_passed(cluster: FakeCluster) -> None:
    cluster.answers[VERSION] = conditions("True", "False", "False")
    inputs = gate("install-complete", cluster.spec())
    it = await up(inputs)
    assert await it.changes({**inputs, "givesUpWith": ["nodes-ready"]}) == []
    assert await it.changes({**inputs, "triggers": ["another"]}) == ["triggers"]


async def test_gates_that_have_nothing_to_do_with_each_other_wait_on(cluster: FakeCluster) -> None:
    cluster.answers[REQUESTS] = (404, {})
    cluster.answers[NODES] = (200, {"items": []})
    harness = Harness()
    with pytest.raises(GateFailed, match="did not pass within 1 s"):
        await Resource(harness, "Gate", name="first").up(gate("nodes-ready", cluster.spec(names=["a"]), 1))
    later = gate("nodes-ready", cluster.spec(names=["a"]), 2, givesUpWith=["others"])
    with pytest.raises(GateFailed, match="did not pass within 2 s"):
        await Resource(harness, "Gate", name="second").up(later)


async def test_only_requests_of_our_nodes_are_approved(cluster: FakeCluster) -> None:
    stranger = csr("stranger", username=BOOTSTRAPPER, signer=CLIENT)
    decided = csr("a", username=BOOTSTRAPPER, signer=CLIENT)
    decided["status"] = {"conditions": [{"type": "Denied"}]}
    cluster.answers[REQUESTS] = (200, {"items": [csr("a", username=BOOTSTRAPPER, signer=CLIENT), stranger, decided]})
    cluster.answers[NODES] = (200, {"items": [node("a")]})
    it = await up(gate("nodes-ready", cluster.spec(names=["a"])))
    assert [path for path, _ in cluster.puts] == [f"{REQUESTS}/csr-a/approval"]
    (condition,) = cluster.puts[0][1]["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("Approved", "True")
    assert (
        "left alone: certificate request csr-stranger (for stranger, which this gate does not wait for)"
        in it.state["observed"]
    )


async def test_of_many_nodes_and_requests_the_status_tells_some_and_the_failure_all_nodes(cluster: FakeCluster) -> None:
    names = [f"worker-{number}.rack.facility.test" for number in range(60)]
    strangers = [csr(f"n{number}", username=BOOTSTRAPPER, signer=CLIENT) for number in range(8)]
    cluster.answers |= {REQUESTS: (200, {"items": strangers}), NODES: (200, {"items": []})}
    harness = Harness()
    with pytest.raises(GateFailed) as failed:
        await Resource(harness, "Gate", name="it").up(gate("nodes-ready", cluster.spec(names=names), 1))
    told = str(failed.value)
    assert all(f"{name} (has not joined)" in told for name in names)
    assert told.count("left alone: certificate request csr-") == 5
    assert "; left alone: 3 more certificate requests" in told
    (status, *_) = (text for text in harness.log.messages if text.startswith("waiting for worker-0."))
    assert status.endswith(" …, 0 s") and len(status) < 430


class _Requests(https.Api):
    """Answers with the requests that it has. An approval takes a turn of the event loop, and that of csr-n7 fails."""

    def __init__(self, requests: list[Any]) -> None:
        self.requests, self.approvals, self.open, self.most = requests, list[str](), 0, 0

    async def request(self, method: str, path: str, body: Any = None) -> https.Answer:
        if method == "GET":
            return https.Answer(status=200, body={"items": self.requests}, problem="")
        self.open += 1
        self.most = max(self.most, self.open)
        await asyncio.sleep(0)
        self.open -= 1
        self.approvals.append(path.split("/")[-2])
        return https.Answer(
            status=409 if "csr-n7" in path else 200, body={}, problem="HTTP 409" if "csr-n7" in path else ""
        )


async def test_many_requests_are_approved_beside_each_other_and_each_problem_is_told() -> None:
    names = [f"n{number}" for number in range(25)]
    api = _Requests([csr(name, username=BOOTSTRAPPER, signer=CLIENT) for name in names])
    found = await Approver(api, {"names": names}).look()
    assert found.problems == ("approving csr-n7: HTTP 409",)
    assert sorted(api.approvals) == sorted(f"csr-{name}" for name in names)
    assert api.most == 10


async def test_a_request_that_is_left_alone_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read = list[str]()

    def reading(request: Any, *about: Any) -> str | None:
        read.append(request["metadata"]["name"])
        return refusal(request, *about)

    monkeypatch.setattr(approvals, "refusal", reading)
    stranger, ours = (csr(name, username=BOOTSTRAPPER, signer=CLIENT) for name in ("stranger", "a"))
    approver = Approver(_Requests([stranger, ours]), {"names": ["a"]})
    first, second = await approver.look(), await approver.look()
    assert first.others == second.others == ("csr-stranger (for stranger, which this gate does not wait for)",)
    assert read == ["csr-stranger", "csr-a", "csr-a"]


@pytest.mark.parametrize(("took", "pause"), [(0.2, 0.4), (1.0, 2.0), (4.0, 3.0)])
async def test_where_lists_take_long_the_next_look_is_later(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch, took: float, pause: float
) -> None:
    cluster.answers[REQUESTS] = (404, {})
    cluster.answers[NODES] = (200, {"items": []})
    times = iter((100.0, 100.0 + took))
    monkeypatch.setattr(backoff.clock, "now", lambda: next(times))
    seen = await NodesReady(cluster.spec(names=["a"]), ["a"]).look(0)
    assert round(seen.pause, 6) == pause


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        (csr("a", username=BOOTSTRAPPER, signer=CLIENT), None),
        (csr("a", username="system:bootstrap:abcdef", signer=CLIENT), None),
        (csr("a", username="system:node:a", signer=CLIENT), None),
        (csr("a", username="system:node:a", signer=SERVING, sans=("a",)), None),
        (csr("a", username="system:node:b", signer=CLIENT), "asked for by system:node:b"),
        (csr("a", username="alice", signer=CLIENT), "asked for by alice"),
        (csr("a", username=BOOTSTRAPPER, signer=SERVING, sans=("a",)), "asked for by"),
        (csr("a", username="system:node:a", signer=SERVING, sans=("a", "api.lab")), "also for api.lab"),
        (csr("a", username=BOOTSTRAPPER, signer=CLIENT, organization="system:masters"), "not for a node"),
        (csr("a", username="system:node:a", signer="example.com/any"), "not a kubelet's"),
        (
            {"metadata": {"name": "x"}, "spec": {"request": "bm9uc2Vuc2U=", "username": "system:node:a"}},
            "cannot be read",
        ),
    ],
)
def test_refusals(request_: Any, why: str | None) -> None:
    answer = refusal(request_, frozenset({"a", "b"}), {})
    assert answer is None if why is None else why in str(answer)
