"""The schema: what is declared, what the provider takes, what the engine makes of it."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pulumi
import pytest

from metal_ipi.exported import COMPONENTS
from metal_ipi.provider.plugin import MetalIpiProvider
from metal_ipi.provider.types import Secret
from metal_ipi.schema.__main__ import PATH, text
from metal_ipi.schema.declared import Types
from metal_ipi.stacks.settings import Settings
from tests.metal_ipi.tree import tree
from tests.metal_ipi.validator import problems
from tests.real_engine import ENGINE

_SCHEMA: dict[str, Any] = json.loads(PATH.read_text())
_RESOURCES = MetalIpiProvider()._types  # pyright: ignore[reportPrivateUsage]
_STACKS = sorted(path.name.split(".")[1] for path in (PATH.parents[1] / "stacks").glob("Pulumi.*.yaml"))
_STACKS.remove("hub")  # it has no cluster


def test_the_file_says_what_is_declared() -> None:
    assert PATH.read_text() == text(), "`python -m metal_ipi.schema` writes it anew"


def test_everything_is_in_it() -> None:
    assert _SCHEMA["resources"].keys() == COMPONENTS.keys() | _RESOURCES.keys()
    components = {token for token, each in _SCHEMA["resources"].items() if each.get("isComponent")}
    assert components == COMPONENTS.keys()
    assert not _SCHEMA["types"].keys() & _SCHEMA["resources"].keys(), "SDKs would have two classes of one name"


def test_components_and_settings_are_described() -> None:
    bare = [
        f"{token}.{name}"
        for token, each in [*_SCHEMA["resources"].items(), *_SCHEMA["types"].items()]
        for name, its in {**each.get("inputProperties", {}), **each["properties"]}.items()
        if token.split(":")[1] != "index" and not its.get("description") and "const" not in its
    ]
    assert bare == []


@dataclass(frozen=True, kw_only=True)
class _Given:
    """Arguments of no component of ours."""

    user: pulumi.Input[str]
    """Who asks for the secret."""
    password: pulumi.Input[Secret[str]] | None = None
    """What nobody else knows."""


def test_secrets_are_declared_and_not_described() -> None:
    members = Types().members(_Given)["properties"]
    assert {name: each.get("secret") for name, each in members.items()} == {"user": None, "password": True}
    inputs = _SCHEMA["resources"]["metal-ipi:index:Installation"]["inputProperties"]
    assert {name for name, each in inputs.items() if each.get("secret")} == {
        *("privateKey", "script", "userData", "derived", "ipxeScriptUrl", "preRebootCommands", "pxeCommands"),
    }


@pytest.mark.parametrize("token", sorted(_RESOURCES))
def test_resources_have_the_inputs_that_the_provider_takes(token: str) -> None:
    platforms = ("equinix-metal", "redfish", "ironic", "local-vm") if token.endswith(":EphemeralMachine") else (None,)
    taken = set[str]().union(*(_taken(token, {"platform": each} if each else {}) for each in platforms))
    assert set(_SCHEMA["resources"][token]["inputProperties"]) == taken


def _taken(token: str, inputs: dict[str, Any]) -> set[str]:
    """The provider names what it knows when it is given what it does not."""
    reasons = {each.path: each.reason for each in _RESOURCES[token].check({**inputs, "°": 1})}
    known = reasons['["°"]'].partition("known are ")[2]
    return set() if known == "none" else set(known.split(", "))


def test_a_cluster_has_all_settings() -> None:
    cluster = _SCHEMA["resources"]["metal-ipi:index:Cluster"]
    assert set(cluster["inputProperties"]) == {info.alias for info in Settings.model_fields.values()}


@pytest.mark.parametrize("stack", _STACKS)
def test_stack_files_are_arguments_of_a_cluster(stack: str) -> None:
    assert problems(_SCHEMA, "metal-ipi:index:Cluster", tree(stack)) == []


def test_what_is_wrong_is_seen() -> None:
    given = tree("da11", workers={"cuont": 1}, dns={"type": "rfc2137"}, ssh={"authorizedKeys": [1]})
    del given["clusterName"]
    assert sorted(each.partition("Cluster.")[2] for each in problems(_SCHEMA, "metal-ipi:index:Cluster", given)) == [
        "clusterName is missing", "dns is of no kind there is", "ssh.authorizedKeys[0] is not a string",
        "workers.cuont does not exist",
    ]  # fmt: skip


@pytest.mark.engine
@pytest.mark.skipif(not ENGINE, reason="no Pulumi engine on PATH or in METAL_IPI_ENGINE")
def test_the_engine_gets_it_from_the_plugin_and_finds_it_right(tmp_path: Path) -> None:
    """`schema check` binds every type and reference, as the makers of SDKs do."""
    got = _engine(tmp_path, "package", "get-schema", str(PATH.with_name("pulumi-resource-metal-ipi")))
    told = json.loads(got.stdout)
    assert told["resources"].keys() == _SCHEMA["resources"].keys()
    assert told["types"].keys() == _SCHEMA["types"].keys()

    checked = _engine(tmp_path, "schema", "check", str(PATH))
    assert (checked.returncode, checked.stderr) == (0, "")
    broken = tmp_path / "broken.json"
    broken.write_text(PATH.read_text().replace('types/metal-ipi:settings:Tsig"', 'types/metal-ipi:settings:Tsgi"'))
    refused = _engine(tmp_path, "schema", "check", str(broken))
    assert refused.returncode != 0 and "metal-ipi:settings:Tsgi not found" in refused.stderr + refused.stdout


def _engine(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PULUMI_HOME": str(home), "PULUMI_SKIP_UPDATE_CHECK": "1"}
    return subprocess.run(
        [str(ENGINE), *arguments], env=environment, capture_output=True, text=True, check=False, cwd=home
    )
