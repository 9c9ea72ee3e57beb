"""The stand-in for `kubernetes` against a real API server with MetalLB's own resource definitions."""

from __future__ import annotations

import base64
import itertools
import json
import re
from collections.abc import Generator, Mapping, Sequence
from typing import Any

import httpx
import pytest
from pulumi.provider.experimental import provider as api
from pulumi.provider.experimental.property_value import PropertyValue

from lab.kubernetes.access import Access, send
from lab.plugins.base import InitFailed, NotInTheLab, PluginError
from lab.plugins.kubernetes import resource
from lab.plugins.kubernetes.main import KubernetesPlugin
from lab.plugins.kubernetes.readiness import look_of
from lab.plugins.values import UNKNOWN, plain, plain_map, wrap, wrap_map
from tests.lab.kubernetes.support import cluster
from tests.lab.plugins.harness import Driver, Heard, Json, opened

pytestmark = pytest.mark.servers

POOL = "kubernetes:metallb.io/v1beta1:IPAddressPool"
PEER = "kubernetes:metallb.io/v1beta2:BGPPeer"
SECRET = "kubernetes:core/v1:Secret"
NAMESPACE = "kubernetes:core/v1:Namespace"
POOLS = "/apis/metallb.io/v1beta1/namespaces/default/ipaddresspools"

_numbers = itertools.count()


@pytest.fixture(scope="module")
def access(tmp_path_factory: pytest.TempPathFactory) -> Generator[Access]:
    with cluster(tmp_path_factory.mktemp("cluster")) as made:
        yield made


@pytest.fixture
def other(access: Access) -> Generator[httpx.Client]:
    """Somebody else who works on the same cluster."""
    with access.client() as client:
        yield client


class Plugin:
    """The plug-in, configured for the cluster."""

    def __init__(self, access: Access) -> None:
        self._kubeconfig = access.kubeconfig()

    async def driver(self, token: str, **options: Any) -> Driver:
        self.heard = Heard()
        plugin = KubernetesPlugin(self.heard)
        opened.append(plugin)
        arguments = {"kubeconfig": self._kubeconfig, **options}
        await plugin.configure(api.ConfigureRequest({}, wrap_map(arguments), True, True))
        return Driver(plugin, token)


@pytest.fixture
async def plugin(access: Access, closed: None) -> Plugin:
    return Plugin(access)


@pytest.fixture
async def driver(plugin: Plugin) -> Driver:
    """Of pools."""
    return await plugin.driver(POOL)


def name() -> str:
    """One that no other test uses."""
    return f"it-{next(_numbers)}"


@pytest.fixture
def called() -> str:
    """The name of the test's object."""
    return name()


def pool(called: str, addresses: str = "192.0.2.0/30", **spec: Any) -> Json:
    return {"metadata": {"name": called, "namespace": "default"}, "spec": {"addresses": [addresses], **spec}}


async def made(driver: Driver, inputs: Json) -> tuple[str, Json, Json]:
    """Id, state and checked inputs of a new object."""
    checked = await driver.inputs(inputs)
    identifier, properties = await driver.create(checked)
    return identifier, plain_map(properties), checked


def force(client: httpx.Client, path: str, document: Json, manager: str = "kubectl-edit") -> Json:
    """Somebody takes fields over."""
    return send(
        client,
        "PATCH",
        path,
        params={"fieldManager": manager, "force": "true"},
        content=json.dumps(document),
        headers={"Content-Type": "application/apply-patch+yaml"},
    )


def merge(client: httpx.Client, path: str, change: Json) -> None:
    """Somebody changes an object without taking its fields over."""
    headers = {"Content-Type": "application/merge-patch+json"}
    send(client, "PATCH", path, content=json.dumps(change), headers=headers)


def status(client: httpx.Client, path: str) -> int:
    """What a look at something is answered with."""
    return client.get(path).status_code


async def test_a_pool_lives_its_life(driver: Driver, called: str, other: httpx.Client) -> None:
    identifier, state, inputs = await made(driver, pool(called))
    assert identifier == f"default/{called}"
    assert (state["kind"], state["apiVersion"], state["spec"]["autoAssign"]) == (
        "IPAddressPool",
        "metallb.io/v1beta1",
        True,
    )
    live = send(other, "GET", f"{POOLS}/{called}")
    assert live["metadata"]["managedFields"][0]["manager"] == state["__fieldManager"]
    assert live["metadata"]["managedFields"][0]["operation"] == "Apply"
    assert await driver.diff(state, inputs) == {}
    changed = await driver.inputs(pool(called, "192.0.2.4/30", autoAssign=False))
    assert await driver.diff(state, changed) == {"spec.addresses[0]": "UPDATE", "spec.autoAssign": "UPDATE"}
    assert await driver.update(identifier, state, changed, preview=True)
    assert send(other, "GET", f"{POOLS}/{called}")["spec"] == live["spec"]
    state = await driver.update(identifier, state, changed)
    assert send(other, "GET", f"{POOLS}/{called}")["spec"]["addresses"] == ["192.0.2.4/30"]
    assert await driver.diff(state, changed) == {}
    # What is left out again goes back to the schema's default.
    back = await driver.inputs(pool(called, "192.0.2.4/30"))
    assert await driver.diff(state, back) == {"spec.autoAssign": "UPDATE"}
    state = await driver.update(identifier, state, back)
    assert state["spec"]["autoAssign"] is True
    assert await driver.read(identifier, state, back) == (identifier, state, back)
    await driver.delete(identifier, state)
    assert status(other, f"{POOLS}/{called}") == 404
    assert await driver.read(identifier, state, back) == ("", {}, {})
    await driver.delete(identifier, state)


async def test_whole_numbers_arrive_as_such(plugin: Plugin) -> None:
    driver = await plugin.driver(PEER)
    spec = {
        "myASN": 65000,
        "peerASN": 65530,
        "peerAddress": "169.254.255.1",
        "sourceAddress": "192.0.2.1",
        "ebgpMultiHop": True,
        "holdTime": "3s",
        "nodeSelectors": [{"matchLabels": {"kubernetes.io/hostname": "a"}}],
        "passwordSecret": {"name": "bgp-password", "namespace": "metallb-system"},
    }
    inputs = {"metadata": {"name": name(), "namespace": "default"}, "spec": spec}
    identifier, state, checked = await made(driver, inputs)
    assert state["spec"].items() >= {"myASN": 65000, "holdTime": "3s"}.items()
    assert await driver.diff(state, checked) == {}
    await driver.delete(identifier, state)


async def test_a_value_that_the_schema_refuses_is_told_in_the_preview_and_by_the_update(
    driver: Driver, called: str, plugin: Plugin
) -> None:
    wrong = await driver.inputs({**pool(called), "spec": {"addresses": "192.0.2.0/30"}})
    for preview in (True, False):
        with pytest.raises(PluginError) as caught:
            await driver.create(wrong, preview=preview)
        assert f"IPAddressPool default/{called} is refused" in str(caught.value)
        assert "addresses" in str(caught.value)
    unknown_field = await driver.inputs(pool(called, autoassign=True))
    with pytest.raises(PluginError, match="autoassign"):
        await driver.create(unknown_field, preview=True)
    identifier, state, _ = await made(driver, pool(called))
    assert await driver.diff(state, wrong) == {"spec.addresses": "UPDATE"}
    assert "is refused" in plugin.heard.warnings[0]
    for preview in (True, False):
        with pytest.raises(PluginError, match="is refused"):
            await driver.update(identifier, state, wrong, preview=preview)
    await driver.delete(identifier, state)


async def test_a_field_that_somebody_took_over_is_a_conflict_until_it_is_forced(
    driver: Driver, called: str, plugin: Plugin, other: httpx.Client
) -> None:
    identifier, state, inputs = await made(driver, pool(called))
    document = {"apiVersion": "metallb.io/v1beta1", "kind": "IPAddressPool", **pool(called, "203.0.113.0/30")}
    force(other, f"{POOLS}/{called}", document)
    # A refresh asks for differences, so these are told; whoever wants to change something fails.
    assert await driver.diff(state, inputs) == {"spec.addresses[0]": "UPDATE"}
    assert 'conflict with "kubectl-edit"' in plugin.heard.warnings[0]
    for preview in (True, False):
        with pytest.raises(PluginError) as caught:
            await driver.update(identifier, state, inputs, preview=preview)
        message = str(caught.value)
        assert 'spec.addresses: conflict with "kubectl-edit"' in message
        assert 'pulumi.com/patchForce: "true"' in message
    assert send(other, "GET", f"{POOLS}/{called}")["spec"]["addresses"] == ["203.0.113.0/30"]
    forced = pool(called)
    forced["metadata"]["annotations"] = {"pulumi.com/patchForce": "true"}
    forced = await driver.inputs(forced)
    assert "spec.addresses[0]" in await driver.diff(state, forced)
    state = await driver.update(identifier, state, forced)
    assert state["spec"]["addresses"] == ["192.0.2.0/30"]
    await driver.delete(identifier, state)


async def test_a_refresh_follows_what_somebody_changed_and_nothing_else(
    driver: Driver, called: str, other: httpx.Client
) -> None:
    identifier, state, inputs = await made(driver, pool(called))
    change = {"metadata": {"labels": {"theirs": "1"}}, "spec": {"addresses": ["203.0.113.0/30"]}}
    merge(other, f"{POOLS}/{called}", change)
    _, now, followed = await driver.read(identifier, state, inputs)
    assert now["metadata"]["labels"] == {"theirs": "1"}
    assert followed == {**inputs, "spec": {"addresses": ["203.0.113.0/30"]}}
    # Taking their value into the program is not a conflict, and their label stays.
    adopted = await driver.inputs(pool(called, "203.0.113.0/30"))
    assert set(await driver.diff(now, adopted)) <= {"metadata"}
    state = await driver.update(identifier, now, adopted)
    assert state["metadata"]["labels"] == {"theirs": "1"}
    assert await driver.diff(state, adopted) == {}
    await driver.delete(identifier, state)


async def test_an_object_that_is_gone_is_made_again(
    driver: Driver, called: str, plugin: Plugin, other: httpx.Client
) -> None:
    identifier, state, inputs = await made(driver, pool(called))
    send(other, "DELETE", f"{POOLS}/{called}")
    assert await driver.diff(state, inputs) == {"metadata": "ADD", "spec": "ADD"}
    assert "is gone; it will be made again" in plugin.heard.warnings[0]
    again = await driver.update(identifier, state, inputs)
    assert again["metadata"]["uid"] != state["metadata"]["uid"]
    # Whoever only knows the first one does not delete the second.
    await driver.delete(identifier, state)
    assert "another one by now" in plugin.heard.warnings[-1]
    assert status(other, f"{POOLS}/{called}") == 200
    await driver.delete(identifier, again)
    assert status(other, f"{POOLS}/{called}") == 404


async def test_what_is_there_already_is_not_taken_over_except_after_a_lost_answer(
    driver: Driver, called: str, other: httpx.Client
) -> None:
    document = {"apiVersion": "metallb.io/v1beta1", "kind": "IPAddressPool", **pool(called)}
    send(other, "POST", POOLS, json=document)
    inputs = await driver.inputs(pool(called))
    for preview in (True, False):
        with pytest.raises(PluginError, match="exists already, and this resource did not make it"):
            await driver.create(inputs, preview=preview)
    _, state, inputs = await made(driver, pool(name()))
    # As if the first answer had been lost: the same resource asks again.
    identifier, again = await driver.create(inputs)
    assert plain(again["metadata"])["uid"] == state["metadata"]["uid"]
    await driver.delete(identifier, plain_map(again))


async def test_what_is_there_already_is_taken_over_where_the_provider_does_that(
    plugin: Plugin, called: str, other: httpx.Client
) -> None:
    taking = await plugin.driver(POOL, upsertExistingObjects="true")
    mine = {"metadata": {"name": called, "annotations": {"pulumi.com/patchForce": "true"}}}
    there = send(
        other, "POST", POOLS, json={"apiVersion": "metallb.io/v1beta1", "kind": "IPAddressPool", **pool(called)}
    )
    inputs = await taking.inputs({**pool(called), **mine})
    await taking.create(inputs, preview=True)
    identifier, state = await taking.create(inputs)
    assert plain(state["metadata"])["uid"] == there["metadata"]["uid"]
    await taking.delete(identifier, plain_map(state))


async def test_another_name_or_namespace_takes_a_new_object(driver: Driver, called: str) -> None:
    identifier, state, inputs = await made(driver, {**pool(called), "metadata": {"name": called}})
    assert identifier == f"default/{called}"
    assert await driver.diff(state, inputs) == {}
    assert await driver.diff(state, await driver.inputs(pool(called))) == {}
    elsewhere = await driver.inputs({**pool(called), "metadata": {"name": called, "namespace": "other"}})
    assert await driver.diff(state, elsewhere) == {"metadata.namespace": "ADD_REPLACE"}
    renamed = await driver.inputs({**pool(called), "metadata": {"name": f"{called}-b"}})
    assert await driver.diff(state, renamed) == {"metadata.name": "UPDATE_REPLACE"}
    for wanted in (elsewhere, renamed):
        request = api.DiffRequest(driver.urn, identifier, wrap_map(state), wrap_map(wanted), [])
        assert (await driver.plugin.diff(request)).delete_before_replace is False
    await driver.delete(identifier, state)


async def test_secrets_stay_secret(plugin: Plugin, other: httpx.Client) -> None:
    text = "hunter2-bgp"
    encoded = base64.b64encode(text.encode()).decode()
    driver = await plugin.driver(SECRET, enableSecretMutable="true")
    called = name()
    given = {
        "metadata": {"name": called, "namespace": "default"},
        "type": "kubernetes.io/basic-auth",
        "stringData": {"password": text},
    }
    request = api.CheckRequest(driver.urn, {}, wrap_map(given), b"\1" * 32)
    inputs = (await driver.plugin.check(request)).inputs or {}
    assert plain_map(inputs)["data"] == {"password": encoded}
    assert "stringData" not in inputs
    assert inputs["data"].is_secret
    answer = await driver.plugin.create(api.CreateRequest(driver.urn, inputs, 0, False))
    state = answer.properties
    live = send(other, "GET", f"/api/v1/namespaces/default/secrets/{called}")
    assert live["data"] == {"password": encoded}
    assert_hidden(state, text, encoded)
    assert await driver.diff(plain_map(state), plain_map(inputs)) == {}
    read = await driver.plugin.read(api.ReadRequest(driver.urn, f"default/{called}", state, inputs))
    assert_hidden(read.properties, text, encoded)
    assert_hidden(read.inputs, text, encoded)
    new = await driver.inputs({**given, "stringData": {"password": "hunter3"}})
    assert await driver.diff(plain_map(state), new) == {"data.password": "UPDATE"}
    strict = await plugin.driver(SECRET)
    assert await strict.diff(plain_map(state), new) == {"data.password": "UPDATE_REPLACE"}
    replacing = api.DiffRequest(driver.urn, f"default/{called}", state, wrap_map(new), [])
    assert (await strict.plugin.diff(replacing)).delete_before_replace is True
    await driver.delete(f"default/{called}", plain_map(state))


def assert_hidden(properties: dict[str, PropertyValue], *texts: str) -> None:
    """No text of these stands anywhere but in a secret."""

    def visible(value: PropertyValue) -> str:
        if value.is_secret:
            return ""
        inner = value.value
        if isinstance(inner, str):
            return inner
        if isinstance(inner, Mapping):
            return " ".join(visible(item) for item in inner.values())
        return " ".join(visible(item) for item in inner) if isinstance(inner, Sequence) else ""

    shown = " ".join(visible(value) for value in properties.values())
    assert [text for text in texts if text in shown] == []
    assert any(text in json.dumps(plain_map(properties), default=str) for text in texts)


async def test_a_refusal_does_not_quote_secrets(plugin: Plugin) -> None:
    driver = await plugin.driver(PEER)
    spec = wrap({"myASN": 1, "peerASN": 2, "peerAddress": "192.0.2.1", "dynamicASN": "x"})
    assert isinstance(spec.value, Mapping)
    spec = spec.with_value({**spec.value, "dynamicASN": wrap("hunter2-word").with_secret(True)})
    inputs = {**wrap_map(await driver.inputs({"metadata": {"name": name()}})), "spec": spec}
    with pytest.raises(PluginError, match=re.escape('spec.dynamicASN: Unsupported value: "[secret]"')):
        await driver.plugin.create(api.CreateRequest(driver.urn, inputs, 0, True))


async def test_a_namespace_is_waited_for_both_ways(plugin: Plugin, other: httpx.Client) -> None:
    driver = await plugin.driver(NAMESPACE)
    called = name()
    identifier, state, inputs = await made(driver, {"metadata": {"name": called, "labels": {"a": "b"}}})
    assert (identifier, state["status"]) == (called, {"phase": "Active"})
    assert await driver.diff(state, inputs) == {}
    send(other, "POST", f"/api/v1/namespaces/{called}/configmaps", json={"metadata": {"name": "a"}})
    await driver.delete(identifier, state)
    assert status(other, f"/api/v1/namespaces/{called}") == 404


async def test_an_object_that_is_held_is_told_and_kept(driver: Driver, called: str, other: httpx.Client) -> None:
    held = {**pool(called), "metadata": {"name": called, "finalizers": ["facility.test/held"]}}
    identifier, state, _ = await made(driver, held)
    with pytest.raises(PluginError) as caught:
        await driver.delete(identifier, state, timeout=0.3)
    assert "is not gone" in str(caught.value)
    assert "it is held by facility.test/held" in str(caught.value)
    merge(other, f"{POOLS}/{called}", {"metadata": {"finalizers": None}})
    await driver.delete(identifier, state)


async def test_waiting_as_the_annotation_says(driver: Driver, called: str, other: httpx.Client) -> None:
    annotations = {"pulumi.com/waitFor": "jsonpath={.metadata.labels.state}=done"}
    checked = await driver.inputs({**pool(called), "metadata": {"name": called, "annotations": annotations}})
    with pytest.raises(InitFailed) as caught:
        await driver.create(checked, timeout=0.3)
    kept = caught.value
    assert isinstance(kept, InitFailed)
    assert str(kept).startswith(f"IPAddressPool default/{called} is not ready after")
    assert "it has no metadata.labels.state" in str(kept)
    assert kept.resource_id == f"default/{called}"
    state = plain_map(kept.properties)
    merge(other, f"{POOLS}/{called}", {"metadata": {"labels": {"state": "done"}}})
    state = await driver.update(kept.resource_id, state, checked, timeout=10)
    assert state["metadata"]["labels"] == {"state": "done"}
    await driver.delete(kept.resource_id, state)


@pytest.mark.parametrize(
    ("wanted", "status", "missing"),
    [
        ("condition=Available", {}, "it has no condition Available"),
        (
            "condition=Available",
            {"conditions": [{"type": "available", "status": "False", "reason": "Soon", "message": "wait"}]},
            "its condition Available is False, not True (Soon: wait)",
        ),
        ("condition=Available", {"conditions": [{"type": "available", "status": "True"}]}, None),
        ("condition=Available=False", {"conditions": [{"type": "available", "status": "False"}]}, None),
        (
            "jsonpath={.status.state}=AtLatestKnown",
            {"state": "Pending"},
            "its status.state is Pending, not AtLatestKnown",
        ),
        ("jsonpath={.status.state}=AtLatestKnown", {"state": "AtLatestKnown"}, None),
        ("jsonpath={.status.state}", {}, "it has no status.state"),
    ],
)
def test_what_is_still_missing(wanted: str, status: Json, missing: str | None) -> None:
    document = {"kind": "A", "metadata": {"annotations": {"pulumi.com/waitFor": wanted}}, "status": status}
    assert look_of(document)(document, None) == missing


async def test_a_kind_or_namespace_that_is_not_there_yet(plugin: Plugin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "COMING_SECONDS", 0.2)
    monkeypatch.setattr(resource, "POLL_SECONDS", 0.05)
    driver = await plugin.driver("kubernetes:metallb.io/v1beta1:MetalLB")
    inputs = await driver.inputs({"metadata": {"name": "metallb"}, "spec": {}})
    _, previewed = await driver.create(inputs, preview=True)
    assert plain(previewed["status"]) == UNKNOWN
    assert "does not know MetalLB of metallb.io/v1beta1" in plugin.heard.warnings[0]
    with pytest.raises(PluginError, match=re.escape("what defines it (its CustomResourceDefinition) is not installed")):
        await driver.create(inputs)
    assert "waiting" in plugin.heard.lines[0]
    assert await driver.read("default/metallb", {}, inputs) == ("", {}, {})
    await driver.delete("default/metallb", {})
    driver = await plugin.driver(POOL)
    homeless = await driver.inputs({**pool("a"), "metadata": {"name": "a", "namespace": "nowhere"}})
    assert (await driver.create(homeless, preview=True))[0] == ""
    with pytest.raises(PluginError, match="there is no namespace nowhere"):
        await driver.create(homeless)


async def test_an_import_takes_all_of_it(driver: Driver, called: str, other: httpx.Client) -> None:
    document = {"apiVersion": "metallb.io/v1beta1", "kind": "IPAddressPool", **pool(called)}
    send(other, "POST", POOLS, json=document)
    identifier, state, inputs = await driver.read(f"default/{called}", {}, {})
    assert inputs["spec"] == {"addresses": ["192.0.2.0/30"], "autoAssign": True, "avoidBuggyIPs": False}
    assert set(inputs["metadata"]) == {"name", "namespace"}
    await driver.delete(identifier, state)


async def test_a_preview_with_values_that_nobody_knows_yet(driver: Driver, called: str) -> None:
    inputs = await driver.inputs({"metadata": {"name": called}, "spec": UNKNOWN})
    assert plain_map((await driver.create(inputs, preview=True))[1])["spec"] == UNKNOWN
    identifier, state, _ = await made(driver, pool(called))
    assert await driver.diff(state, await driver.inputs({**pool(called), "spec": UNKNOWN})) == {"spec": "UPDATE"}
    await driver.delete(identifier, state)


async def test_a_patch_owns_its_fields_and_gives_them_back(plugin: Plugin, called: str, other: httpx.Client) -> None:
    driver = await plugin.driver(f"{POOL}Patch")
    patch = pool(called, "192.0.2.8/30")
    patch["metadata"]["annotations"] = {"pulumi.com/patchForce": "true"}
    with pytest.raises(PluginError, match="is not there, and a patch does not make it"):
        await driver.create(await driver.inputs(patch))
    whole = {"apiVersion": "metallb.io/v1beta1", "kind": "IPAddressPool", **pool(called, avoidBuggyIPs=True)}
    force(other, f"{POOLS}/{called}", whole, manager="operator")
    identifier, state, inputs = await made(driver, patch)
    live = send(other, "GET", f"{POOLS}/{called}")["spec"]
    assert (live["addresses"], live["avoidBuggyIPs"]) == (["192.0.2.8/30"], True)
    assert await driver.diff(state, inputs) == {}
    owned = {**whole, "spec": {"addresses": ["192.0.2.8/30"], "avoidBuggyIPs": True}}
    force(other, f"{POOLS}/{called}", owned, manager="operator")
    await driver.delete(identifier, state)
    assert send(other, "GET", f"{POOLS}/{called}")["spec"]["addresses"] == ["192.0.2.8/30"]


async def test_refused_by_name(plugin: Plugin) -> None:
    for token in (
        "kubernetes:apps/v1:DaemonSet",
        "kubernetes:rbac.authorization.k8s.io/v1:ClusterRole",
        "kubernetes:helm.sh/v3:Release",
        "kubernetes:core/v1:SecretPatch",
        "kubernetes:core/v1:Pod",
    ):
        with pytest.raises(NotInTheLab, match=f"does not implement the resource type {token}"):
            await (await plugin.driver(token)).check({})
    driver = await plugin.driver(POOL)
    for annotation in ({"pulumi.com/replaceUnready": "true"}, {"pulumi.com/waitFor": "[a]"}):
        with pytest.raises(NotInTheLab) as caught:
            await driver.check({"metadata": {"name": "a", "annotations": annotation}})
        assert next(iter(annotation)) in str(caught.value)


async def test_a_job_that_failed_says_what_its_pods_said_and_is_made_anew(
    plugin: Plugin, called: str, other: httpx.Client
) -> None:
    """As officially (pulumi-kubernetes, provider/pkg/await/checker, provider/pkg/provider/provider.go)."""
    driver = await plugin.driver("kubernetes:batch/v1:Job")
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "registry.test/a:1"}]}}
    metadata = {"name": called, "namespace": "default", "annotations": {"pulumi.com/replaceUnready": "true"}}
    checked = await driver.inputs({"metadata": metadata, "spec": {"backoffLimit": 0, "template": template}})
    with pytest.raises(InitFailed) as waited:
        await driver.create(checked, timeout=0.3)
    job, pods = f"/apis/batch/v1/namespaces/default/jobs/{called}", "/api/v1/namespaces/default/pods"
    labels = {"batch.kubernetes.io/job-name": called}
    send(other, "POST", pods, json={"metadata": {"name": called, "labels": labels}, **template})
    ended = {"terminated": {"exitCode": 1, "reason": "Error", "message": "the account is refused"}}
    container = {"name": "a", "image": "", "imageID": "", "ready": False, "restartCount": 0, "state": ended}
    ready = {"type": "Ready", "status": "False", "message": "containers with unready status: [a]"}
    merge(other, f"{pods}/{called}/status", {"status": {"containerStatuses": [container], "conditions": [ready]}})
    failed = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "too often"}
    target = {**failed, "type": "FailureTarget"}
    began = {"startTime": "2026-01-01T00:00:00Z", "failed": 1, "conditions": [target, failed]}
    merge(other, f"{job}/status", {"status": began})
    state = plain_map(waited.value.properties)
    with pytest.raises(InitFailed) as caught:
        await driver.update(f"default/{called}", state, checked, timeout=5)
    assert str(caught.value) == (
        f"Job {called} failed: [BackoffLimitExceeded] too often\n"
        f"[Pod default/{called}]: containers with unready status: [a][Error] the account is refused"
    )
    found = await driver.diff(plain_map(caught.value.properties), checked)
    assert found == {"metadata.annotations.pulumi.com/replaceUnready": "UPDATE_REPLACE"}
