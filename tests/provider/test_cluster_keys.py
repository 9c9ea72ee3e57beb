"""ClusterKeys: made once, never silently replaced."""

from __future__ import annotations

import base64

import asyncssh
import pytest
from pulumi.provider.experimental import provider as sdk

from metal_ipi.provider.errors import InvalidInputs
from metal_ipi.provider.values import to_wire_map
from tests.provider.harness import Harness, Resource


@pytest.mark.parametrize(
    ("wanted", "begins"),
    [
        ({}, "ssh-ed25519 AAAA"),
        # The only type with FIPS: openshift/installer pkg/types/validation/installconfig.go, validateFIPSconfig.
        ({"keyType": "ecdsa"}, "ecdsa-sha2-nistp256 AAAA"),
    ],
)
async def test_made_keys(wanted: dict[str, str], begins: str) -> None:
    it = Resource(Harness(), "ClusterKeys")
    state = await it.up(wanted)
    public = asyncssh.import_private_key(state["privateKey"]).export_public_key().decode()
    assert public.split()[:2] == state["publicKey"].split() and state["publicKey"].startswith(begins)
    assert len(base64.b64decode(state["hostKeySeed"])) == 32
    # A cluster that was never asked for a type has what was always made.
    assert await it.changes({"keyType": "ed25519", **wanted}) == [] == await it.changes(wanted)


async def test_secrets_are_marked() -> None:
    it = Resource(Harness(), "ClusterKeys")
    made = await it.harness.provider.create(sdk.CreateRequest(it.urn, to_wire_map({}), 0, preview=False))
    assert {key for key, value in made.properties.items() if value.is_secret} == {"privateKey", "hostKeySeed"}


@pytest.mark.parametrize(
    ("made", "wanted", "told"),
    [
        ({}, {"keyType": "ecdsa"}, "of the type ed25519, and the settings now need the type ecdsa"),
        ({"keyType": "ecdsa"}, {}, "of the type ecdsa, and the settings now need the type ed25519"),
    ],
)
async def test_another_type_of_key_is_refused_in_the_preview(
    made: dict[str, str], wanted: dict[str, str], told: str
) -> None:
    it = Resource(Harness(), "ClusterKeys")
    await it.up(made)
    with pytest.raises(InvalidInputs, match=told) as caught:
        await it.diff(wanted)
    assert "metal-ipi:install.fips" in str(caught.value) and "make down" in str(caught.value)


@pytest.mark.parametrize("given", [{"keyType": "dsa"}, {"privateKey": "x"}])
async def test_there_is_nothing_else_to_give(given: dict[str, str]) -> None:
    (problem,) = await Resource(Harness(), "ClusterKeys").check(given)
    assert problem.startswith(next(iter(given)))
    assert "keyType" not in given or problem == "keyType must be one of ed25519, ecdsa"
