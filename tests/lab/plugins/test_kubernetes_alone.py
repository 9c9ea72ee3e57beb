"""The stand-in for `kubernetes` where there is no cluster, or none that answers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pulumi.provider.experimental import provider as api
from pulumi.provider.experimental.provider import CheckRequest

from lab.kubernetes.process import free_port
from lab.plugins.base import NotInTheLab, PluginError
from lab.plugins.kubernetes.inputs import settings_of
from lab.plugins.kubernetes.main import KubernetesPlugin
from lab.plugins.values import plain_map, wrap_map
from tests.lab.plugins.harness import Driver, Heard, Json, opened, run

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


def test_configuration() -> None:
    async def scenario() -> None:
        good = {"kubeconfig": "x", "enableSecretMutable": "true", "enableServerSideApply": True, "version": "4.34.2"}
        assert await configuration(good) == {}
        assert "did you mean kubeconfig?" in (await configuration({"kubeConfig": "x"}))["kubeConfig"]
        assert (
            "must be true or false, not yes" in (await configuration({"enablePatchForce": "yes"}))["enablePatchForce"]
        )
        for arguments in ({"enableServerSideApply": "false"}, {"renderYamlToDirectory": "x"}, {"cluster": "x"}):
            with pytest.raises(NotInTheLab):
                await configuration(arguments)

    run(scenario())
    assert settings_of({"enableSecretMutable": "true", "deleteUnreachable": "false"}).secret_mutable is True
    assert settings_of({"enableSecretMutable": "true", "deleteUnreachable": "false"}).delete_unreachable is False


def test_inputs_are_checked_without_a_cluster() -> None:
    async def scenario() -> None:
        pools, _ = await driver()
        _, failures = await pools.check({"metadata": {"name": "a", "label": {}}, "kind": "BGPPeer"})
        assert "did you mean labels?" in failures["metadata.label"]
        assert "kind must be IPAddressPool, as the resource type says, not BGPPeer" in failures["kind"]
        secrets, _ = await driver("kubernetes:core/v1:Secret")
        _, failures = await secrets.check({"stringdata": {}})
        assert "did you mean stringData?" in failures["stringdata"]
        _, failures = await secrets.check(
            {"metadata": {"name": "a", "annotations": {"pulumi.com/timeoutSeconds": "x"}}}
        )
        assert any("must be a whole number" in reason for reason in failures.values())

    run(scenario())


@pytest.mark.parametrize("configured", [{}, {"kubeconfig": ""}])
def test_without_a_kubeconfig_a_preview_goes_on_and_an_update_does_not(configured: Json) -> None:
    async def scenario() -> None:
        pools, heard = await driver(**configured)
        inputs = await pools.inputs(INPUTS)
        assert plain_map((await pools.create(inputs, preview=True))[1])["spec"] == INPUTS["spec"]
        assert "the provider has no kubeconfig" in heard.warnings[0]
        with pytest.raises(PluginError, match="the provider has no kubeconfig: set it"):
            await pools.create(inputs)

    run(scenario())


def test_a_cluster_that_does_not_answer() -> None:
    async def scenario() -> None:
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
            with pytest.raises(PluginError, match=r"the cluster at https://127.0.0.1:\d+ does not answer: .*refused"):
                await attempt
        with pytest.raises(PluginError, match="If the cluster is no more, set deleteUnreachable"):
            await pools.delete("default/a", STATE)
        lenient, heard = await driver(kubeconfig=nobody(), deleteUnreachable="true")
        await lenient.delete("default/a", STATE)
        assert "is taken for deleted" in heard.warnings[0]

    run(scenario())


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("/nowhere/kubeconfig", "no document and no file: No such file"),
        ("a: [\nb", "no YAML document"),
        ("kind: Config\nclusters: []\n", "names no cluster"),
        (kubeconfig("https://a.test").replace('"current-context": "x"', '"current-context": "y"'), "cannot be used"),
        (kubeconfig("https://a.test", **{"insecure-skip-tls-verify": True}), "whose certificate is not verified"),
    ],
)
def test_kubeconfigs_that_cannot_be_used(text: str, why: str) -> None:
    async def scenario() -> None:
        pools, _ = await driver(kubeconfig=text)
        with pytest.raises(PluginError, match=why) as caught:
            await pools.create(await pools.inputs(INPUTS))
        assert "hunter2" not in str(caught.value)

    run(scenario())
