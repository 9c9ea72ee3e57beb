"""ClusterKeys: made once, never silently replaced."""

from __future__ import annotations

import base64

import asyncssh
import pytest
from pulumi.provider.experimental import provider as sdk

from metal_ipi.provider.errors import InvalidInputs
from metal_ipi.provider.values import to_wire_map
from tests.provider.harness import Harness, Resource


async def test_made_keys() -> None:
    it = Resource(Harness(), "ClusterKeys")
    state = await it.up({})
    public = asyncssh.import_private_key(state["privateKey"]).export_public_key().decode()
    assert public.split()[:2] == state["publicKey"].split()
    assert len(base64.b64decode(state["hostKeySeed"])) == 32
    assert await it.changes({}) == []


async def test_secrets_are_marked() -> None:
    it = Resource(Harness(), "ClusterKeys")
    made = await it.harness.provider.create(sdk.CreateRequest(it.urn, to_wire_map({}), 0, preview=False))
    assert {key for key, value in made.properties.items() if value.is_secret} == {"privateKey", "hostKeySeed"}


async def test_fips_takes_ecdsa_keys() -> None:
    """openshift/installer refuses all others: pkg/types/validation/installconfig.go, validateFIPSconfig."""
    it = Resource(Harness(), "ClusterKeys")
    state = await it.up({"keyType": "ecdsa"})
    assert state["publicKey"].startswith("ecdsa-sha2-nistp256 AAAA")
    public = asyncssh.import_private_key(state["privateKey"]).export_public_key().decode()
    assert public.split()[:2] == state["publicKey"].split()
    assert await it.changes({"keyType": "ecdsa"}) == []


@pytest.mark.parametrize(
    ("made", "wanted", "told"),
    [
        ({}, {"keyType": "ecdsa"}, "of the type ed25519, and are now to be of the type ecdsa"),
        ({"keyType": "ecdsa"}, {}, "of the type ecdsa, and are now to be of the type ed25519"),
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


async def test_a_cluster_that_was_never_asked_for_a_type_has_what_was_always_made() -> None:
    it = Resource(Harness(), "ClusterKeys")
    await it.up({})
    assert await it.changes({"keyType": "ed25519"}) == []


async def test_a_type_that_is_unknown_is_refused() -> None:
    (problem,) = await Resource(Harness(), "ClusterKeys").check({"keyType": "dsa"})
    assert problem == "keyType must be one of ed25519, ecdsa"


async def test_there_is_nothing_else_to_give() -> None:
    (problem,) = await Resource(Harness(), "ClusterKeys").check({"privateKey": "x"})
    assert "privateKey" in problem
