"""ClusterKeys: made once, never silently replaced."""

from __future__ import annotations

import asyncio
import base64

import asyncssh
from pulumi.provider.experimental import provider as sdk

from provider.values import to_wire_map
from tests.provider.harness import Harness, Resource


def test_made_keys() -> None:
    async def run() -> None:
        it = Resource(Harness(), "ClusterKeys")
        state = await it.up({})
        public = asyncssh.import_private_key(state["privateKey"]).export_public_key().decode()
        assert public.split()[:2] == state["publicKey"].split()
        assert len(base64.b64decode(state["hostKeySeed"])) == 32
        assert await it.changes({}) == []

    asyncio.run(run())


def test_secrets_are_marked() -> None:
    async def run() -> None:
        it = Resource(Harness(), "ClusterKeys")
        made = await it.harness.provider.create(sdk.CreateRequest(it.urn, to_wire_map({}), 0, preview=False))
        assert {key for key, value in made.properties.items() if value.is_secret} == {"privateKey", "hostKeySeed"}

    asyncio.run(run())


def test_there_is_nothing_to_give() -> None:
    async def run() -> None:
        (problem,) = await Resource(Harness(), "ClusterKeys").check({"privateKey": "x"})
        assert "privateKey" in problem

    asyncio.run(run())
