"""The stand-in for `kubernetes` where there is no cluster, or none that answers."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from pulumi.provider.experimental import provider as api
from pulumi.provider.experimental.provider import CheckRequest

from lab.kubernetes.process import free_port
from lab.plugins.base import NotInTheLab, PluginError
from lab.plugins.kubernetes import client
from lab.plugins.kubernetes.inputs import Settings, settings_of
from lab.plugins.kubernetes.main import KubernetesPlugin
from lab.plugins.values import UNKNOWN, plain_map, wrap_map
from tests.lab.plugins.harness import Driver, Heard, Json, opened

pytestmark = pytest.mark.usefixtures("closed")

POOL = "kubernetes:metallb.io/v1beta1:IPAddressPool"
INPUTS: Json = {"metadata": {"name": "a", "namespace": "default"}, "spec": {"addresses": ["192.0.2.0/30"]}}
STATE: Json = {
    "apiVersion": "metallb.io/v1beta1",
    "kind": "IPAddressPool",
    **INPUTS,
    "__inputs": {"apiVersion": "metallb.io/v1beta1", "kind": "IPAddressPool", **INPUTS},
    "__fieldManager": "pulumi-kubernetes-a",
}


def kubeconfig(server: str, **cluster: Any) -> str:
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": {"server": server, **cluster}}],
            "users": [{"name": "u", "user": {"token": "hunter2-token"}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
    )


def nobody() -> str:
    """A cluster that does not answer."""
    return kubeconfig(f"https://127.0.0.1:{free_port('127.0.0.1')}")


async def driver(token: str = POOL, **options: Any) -> tuple[Driver, Heard]:
    heard = Heard()
    plugin = KubernetesPlugin(heard)
    opened.append(plugin)
    await plugin.configure(api.ConfigureRequest({}, wrap_map(options), True, True))
    return Driver(plugin, token), heard


async def configuration(arguments: Json) -> dict[str, str]:
    request = CheckRequest("urn:pulumi:a::b::pulumi:providers:kubernetes::c", {}, wrap_map(arguments), b"")
    response = await KubernetesPlugin(Heard()).check_config(request)
    return {failure.property: failure.reason for failure in response.failures or []}


async def test_configuration() -> None:
    good = {"kubeconfig": "x", "enableSecretMutable": "true", "enableServerSideApply": True, "version": "4.34.2"}
    assert await configuration(good) == {}
    assert "did you mean kubeconfig?" in (await configuration({"kubeConfig": "x"}))["kubeConfig"]
    for wrong in ({"enableServerSideApply": "false"}, {"cluster": "x"}, {"deleteUnreachable": "yes"}):
        with pytest.raises(NotInTheLab):
            await configuration(wrong)
    settings = settings_of({"enableSecretMutable": "true", "upsertExistingObjects": "true", "kubeconfig": UNKNOWN})
    assert settings == Settings(secret_mutable=True, upsert=True)


async def test_inputs_are_checked_without_a_cluster() -> None:
    pools, _ = await driver()
    _, failures = await pools.check({"metadata": {"name": "a", "label": {}}, "kind": "BGPPeer"})
    assert "did you mean labels?" in failures["metadata.label"]
    assert "kind must be IPAddressPool, as the resource type says, not BGPPeer" in failures["kind"]
    secrets, _ = await driver("kubernetes:core/v1:Secret")
    _, failures = await secrets.check({"stringdata": {}})
    assert "did you mean stringData?" in failures["stringdata"]
    assert failures["metadata"] == "metadata is required and missing"


@pytest.mark.parametrize("configured", [{}, {"kubeconfig": ""}])
async def test_without_a_kubeconfig_a_preview_goes_on_and_an_update_does_not(configured: Json) -> None:
    pools, heard = await driver(**configured)
    inputs = await pools.inputs(INPUTS)
    assert plain_map((await pools.create(inputs, preview=True))[1])["spec"] == INPUTS["spec"]
    assert "the provider has no kubeconfig" in heard.warnings[0]
    with pytest.raises(PluginError, match="the provider has no kubeconfig: set it"):
        await pools.create(inputs)


async def test_what_is_not_answered_or_refused_for_the_time_being_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "FIRST_WAIT_SECONDS", 0.01)
    resources = {"resources": [{"kind": "IPAddressPool", "name": "ipaddresspools", "namespaced": True}]}
    answers = [
        httpx.Response(429, headers={"Retry-After": "0"}),
        httpx.ReadError("cut"),
        httpx.Response(200, json=resources),
        httpx.Response(503),
        httpx.Response(200, json=STATE),
        *[httpx.Response(503)] * (client.RETRIES + 1),
        httpx.Response(403, json={"message": "not allowed"}),
    ]

    def answer(_: httpx.Request) -> httpx.Response:
        found = answers.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    made = client.Client()
    opened.append(made)
    made._http = httpx.AsyncClient(transport=httpx.MockTransport(answer), base_url="https://a.test")  # pyright: ignore[reportPrivateUsage]
    assert await made.get(STATE) == STATE
    for why in ("Service Unavailable", "not allowed"):
        with pytest.raises(client.ApiError, match=f"IPAddressPool default/a cannot be read: {why}"):
            await made.get(STATE)
    assert answers == []


async def test_a_cluster_that_does_not_answer() -> None:
    pools, heard = await driver(kubeconfig=nobody())
    inputs = await pools.inputs(INPUTS)
    assert await pools.diff(STATE, inputs) == {}
    changed = await pools.inputs({**INPUTS, "spec": {"addresses": ["192.0.2.4/30"]}})
    assert await pools.diff(STATE, changed) == {"spec.addresses[0]": "UPDATE"}
    assert "compared with the last known state only" in heard.warnings[0]
    assert plain_map((await pools.create(inputs, preview=True))[1])["spec"] == INPUTS["spec"]
    for attempt in (
        pools.create(inputs),
        pools.update("default/a", STATE, inputs),
        pools.read("default/a", STATE, inputs),
    ):
        with pytest.raises(
            PluginError, match=r"the cluster at https://127.0.0.1:\d+ does not answer: .*(refused|failed)"
        ):
            await attempt
    with pytest.raises(PluginError, match="If the cluster is no more, set deleteUnreachable"):
        await pools.delete("default/a", STATE)
    lenient, heard = await driver(kubeconfig=nobody(), deleteUnreachable="true")
    await lenient.delete("default/a", STATE)
    assert "is taken for deleted" in heard.warnings[0]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("/path/of/a/kubeconfig", "names no cluster"),
        ("a: [\nb", "not a YAML document"),
        ("kind: Config\nclusters: []\n", "names no cluster"),
        (kubeconfig("https://a.test").replace('"current-context": "x"', '"current-context": "y"'), "cannot be used"),
        (kubeconfig("https://a.test", **{"insecure-skip-tls-verify": True}), "with insecure-skip-tls-verify"),
        (kubeconfig("https://a.test", **{"certificate-authority-data": "eA=="}), "cannot be used"),
    ],
)
async def test_kubeconfigs_that_cannot_be_used(text: str, why: str) -> None:
    pools, _ = await driver(kubeconfig=text)
    with pytest.raises(PluginError, match=why) as caught:
        await pools.create(await pools.inputs(INPUTS))
    assert "hunter2" not in str(caught.value)
