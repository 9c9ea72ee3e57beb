"""The real OLM on a real API, as clusters of the lab have it, and what our provider sees of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Generator
from dataclasses import replace
from typing import Any

import httpx
import pytest

from lab import olm
from lab.kubernetes.access import Access, apply, send
from lab.olm.running import Running
from metal_ipi.components.addons.registry import ClaimArgs, RegistryArgs, configuration
from metal_ipi.provider.configuration import Settings
from metal_ipi.provider.gates import Observation
from metal_ipi.provider.gates.cluster import OPENERS
from metal_ipi.provider.gates.operator_lifecycle import OperatorInstalled
from metal_ipi.provider.node_marks import NodeMarks
from metal_ipi.provider.resource import Context
from metal_ipi.provider.resources.credentials import ClusterCredentials
from metal_ipi.provider.status import NoLog, Status
from tests.lab.kubernetes.support import Identities, cluster

pytestmark = [pytest.mark.servers, pytest.mark.nightly]
_OLM = "/apis/operators.coreos.com/v1alpha1/namespaces/example"
_NO_CREDENTIALS = ClusterCredentials(url="https://a", ca_pem="", client_cert_pem="", client_key_pem="")
_NOTHING = Observation(passed=False, text="nothing yet")
_REGISTRY = "/apis/imageregistry.operator.openshift.io/v1/configs/cluster"
_CLAIM = "/api/v1/namespaces/openshift-image-registry/persistentvolumeclaims/images"


class Site:
    """A cluster with OLM, and its administrator."""

    def __init__(self, access: Access, client: httpx.Client, credentials: dict[str, str], running: Running) -> None:
        self.access, self.client, self.credentials, self.running = access, client, credentials, running

    async def until(self, true: Callable[[], Any], seconds: int = 90) -> None:
        """Tend the cluster until something holds."""
        for _ in range(seconds):
            await self.running.tend(self.access)
            if true():
                return
            await asyncio.sleep(1)
        raise AssertionError("it did not happen")

    def apply(self, path: str, kind: str, spec: dict[str, Any], version: str) -> None:
        space, name = path.split("/")[-3], path.rsplit("/", maxsplit=1)[-1]
        meta = {"name": name, **({"namespace": space} if "/namespaces/" in path else {})}
        apply(self.client, path, {"apiVersion": version, "kind": kind, "metadata": meta, "spec": spec})


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Generator[Site]:
    programs = olm.cached()
    if programs is None:
        pytest.skip("OLM is not built: `python -m lab setup --day-two`")
    directory = tmp_path_factory.mktemp("olm")
    identities = Identities(directory)
    with cluster(directory, identities) as access, access.client() as client:
        bootstrap = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "bootstrap"}}
        path = "/api/v1/namespaces/kube-system/configmaps/bootstrap"
        apply(client, path, {**bootstrap, "data": {"status": "complete"}})
        for name in ("example", "other"):
            apply(
                client,
                f"/api/v1/namespaces/{name}",
                {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}},
            )
        credentials = {
            "url": access.url,
            "caPem": identities.ca.read_text(),
            "clientCertPem": access.certificate.read_text(),
            "clientKeyPem": access.key.read_text(),
        }
        running = Running(directory, "127.0.0.1", programs)
        try:
            site = Site(access, client, credentials, running)
            asyncio.run(site.until(lambda: client.get(_REGISTRY).is_success))
            yield site
        finally:
            running.stop()


async def test_an_operator_that_somebody_approves(site: Site) -> None:
    group = "/apis/operators.coreos.com/v1/namespaces/example/operatorgroups/example"
    site.apply(group, "OperatorGroup", {"targetNamespaces": ["example"]}, "operators.coreos.com/v1")
    spec = {
        "name": "example-operator",
        "channel": "stable",
        "source": "redhat-operators",
        "sourceNamespace": "openshift-marketplace",
        "installPlanApproval": "Manual",
    }
    path = f"{_OLM}/subscriptions/example-operator"
    site.apply(path, "Subscription", spec, "operators.coreos.com/v1alpha1")
    inputs = {**site.credentials, "namespace": "example", "subscription": "example-operator", "manual": True}
    told = ""
    for _ in range(90):
        await site.running.tend(site.access)
        told = (await OperatorInstalled(inputs).look(0)).text
        if "is not approved" in told:
            break
        await asyncio.sleep(1)
    assert "(example-operator.v1.0.0) is not approved: oc -n example patch installplan install-" in told
    (plan,) = send(site.client, "GET", f"{_OLM}/installplans")["items"]
    merge = {"Content-Type": "application/merge-patch+json"}
    approved = f"{_OLM}/installplans/{plan['metadata']['name']}"
    send(site.client, "PATCH", approved, json={"spec": {"approved": True}}, headers=merge)
    check, seen = OperatorInstalled(inputs), _NOTHING
    for elapsed in range(90):
        await site.running.tend(site.access)
        if (seen := await check.look(elapsed)).passed:
            break
        await asyncio.sleep(1)
    assert seen.text == "example-operator.v1.0.0 Succeeded"


async def test_what_no_catalogue_has(site: Site) -> None:
    spec = {"name": "nothing", "source": "redhat-operators", "sourceNamespace": "openshift-marketplace"}
    where = _OLM.replace("/example", "/other")
    group = "/apis/operators.coreos.com/v1/namespaces/other/operatorgroups/other"
    site.apply(group, "OperatorGroup", {"targetNamespaces": ["other"]}, "operators.coreos.com/v1")
    site.apply(f"{where}/subscriptions/nothing", "Subscription", spec, "operators.coreos.com/v1alpha1")
    check = OperatorInstalled({**site.credentials, "namespace": "other", "subscription": "nothing"})
    seen = _NOTHING
    for _ in range(60):
        await site.running.tend(site.access)
        if (seen := await check.look(1000)).fatal:
            break
        await asyncio.sleep(1)
    assert "no operators found in package nothing in the catalog referenced by subscription nothing" in str(seen.fatal)


async def test_the_registry_says_what_it_lacks_and_its_claim_goes(site: Site) -> None:
    merge = {"Content-Type": "application/merge-patch+json"}
    check = OPENERS["object-ready"](
        None,  # pyright: ignore[reportArgumentType] - it needs no context
        {**site.credentials, "path": _REGISTRY, "conditions": ["Available=True"]},
        None,
    )
    assert check is not None
    for storage, told in (
        ({"pvc": {"claim": "images"}}, "Available is False (StorageNotConfigured: there is no claim images)"),
        ({"pvc": None, "emptyDir": {}}, "configs/cluster: Available=True"),
    ):
        change = {"spec": {"managementState": "Managed", "storage": storage}}
        send(site.client, "PATCH", _REGISTRY, json=change, headers=merge)
        assert "its operator has not processed it yet" in (await check.look(0)).text
        await site.running.tend(site.access)
        assert told in (await check.look(0)).text
    volume = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    site.apply(_CLAIM, "PersistentVolumeClaim", volume, "v1")
    named = {"spec": {"storage": {"pvc": {"claim": "images"}, "emptyDir": None}}}
    send(site.client, "PATCH", _REGISTRY, json=named, headers=merge)
    assert send(site.client, "DELETE", _CLAIM)["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]
    await site.running.tend(site.access)
    assert site.client.get(_CLAIM).is_success, "a pod would use it"
    named = {"spec": {"storage": {"pvc": None, "emptyDir": {}}}}
    send(site.client, "PATCH", _REGISTRY, json=named, headers=merge)
    await site.until(lambda: site.client.get(_CLAIM).status_code == 404)


def test_the_api_takes_each_kind_of_storage_after_each_other(site: Site) -> None:
    """By server-side apply, beside the operator: what is left out must not become null."""
    before = {"spec": {"storage": {"emptyDir": None, "pvc": None}}}
    send(site.client, "PATCH", _REGISTRY, json=before, headers={"Content-Type": "application/merge-patch+json"})
    claim = ClaimArgs(storage_class=None, size=1, access="ReadWriteOnce")
    s3: dict[str, Any] = {"storage": {"s3": {"bucket": "b", "region": "r", "virtualHostedStyle": True}}}
    base = RegistryArgs(kubeconfig="", credentials=_NO_CREDENTIALS, timeout=1, managed=True)
    kinds: list[dict[str, Any]] = [{"claim": claim}, s3, {"storage": {"emptyDir": {}}}, {"managed": False}]
    for changes in [each for first in kinds for second in kinds for each in (first, second)]:
        args = replace(base, **changes)
        document = {
            "apiVersion": "imageregistry.operator.openshift.io/v1",
            "kind": "Config",
            "metadata": {"name": "cluster"},
            "spec": configuration(args),
        }
        live = send(
            site.client,
            "PATCH",
            _REGISTRY,
            params={"fieldManager": "ours", "force": "true", "fieldValidation": "Strict"},
            content=json.dumps(document),
            headers={"Content-Type": "application/apply-patch+yaml"},
        )
        assert live["spec"]["storage"] == configuration(args)["storage"]


async def test_labels_and_taints_of_a_real_node(site: Site) -> None:
    path = "/api/v1/nodes/w"
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "w", "labels": {"other": "o"}}}
    apply(site.client, path, node)
    context = Context(
        urn="urn:pulumi:s::p::metal-ipi:index:NodeMarks::it",
        settings=Settings(),
        status=Status(NoLog(), ""),
        given_up=True,
    )
    taint = {"key": "a", "value": "x", "effect": "NoSchedule"}

    def wanted(**marks: Any) -> dict[str, Any]:
        return {"credentials": site.credentials, "nodes": [{"name": "w", **marks}]}

    def seen() -> tuple[dict[str, str], list[str]]:
        live = send(site.client, "GET", path)
        taints = [f"{each['key']}={each.get('value', '')}" for each in live["spec"].get("taints") or []]
        return live["metadata"]["labels"], [each for each in taints if not each.startswith("node.kubernetes.io/")]

    first, resource = wanted(labels={"x": "1", "y": "1"}, taints=[taint]), NodeMarks()
    await resource.create(context, first)
    assert seen() == ({"other": "o", "x": "1", "y": "1"}, ["a=x"])
    assert await resource.read(context, "id", first) == {}
    second = wanted(labels={"x": "2"}, taints=[])
    await resource.update(context, "id", first, second)
    assert seen() == ({"other": "o", "x": "2"}, [])
    merge = {"Content-Type": "application/merge-patch+json"}
    send(site.client, "PATCH", path, json={"metadata": {"labels": {"x": "drift"}}}, headers=merge)
    drifted = {**second, **(await resource.read(context, "id", second) or {})}
    assert drifted["nodes"] == [{"name": "w", "labels": {"x": "drift"}, "taints": []}]
    await resource.update(context, "id", drifted, second)
    assert seen() == ({"other": "o", "x": "2"}, [])
    await resource.delete(context, "id", second)
    assert seen() == ({"other": "o"}, [])
