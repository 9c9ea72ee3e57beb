"""ClusterKeys: made once, never silently replaced."""

from __future__ import annotations

import asyncio
import base64
import shutil
import subprocess
from pathlib import Path

import asyncssh
import pytest
from pulumi.provider.experimental import provider as sdk

from provider.values import to_wire_map
from tests.provider.harness import Harness, Resource


def user_key(kind: str = "ssh-ed25519") -> str:
    return asyncssh.generate_private_key(kind).export_private_key().decode()


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


def test_a_users_key_updates_and_keeps_the_seed() -> None:
    async def run() -> None:
        it = Resource(Harness(), "ClusterKeys")
        seed = (await it.up({}))["hostKeySeed"]
        first, second = user_key(), user_key("ecdsa-sha2-nistp256")
        for key in (first, second):
            found = await it.diff({"privateKey": key})
            assert list(found.detailed_diff) == ["privateKey"] and found.replaces == []
            await it.up({"privateKey": key})
            assert it.state["privateKey"] == key and it.state["hostKeySeed"] == seed
            assert await it.changes({"privateKey": key}) == []
        assert it.state["publicKey"].startswith("ecdsa-sha2-nistp256 ")
        assert await it.changes({}) == ["privateKey"]

    asyncio.run(run())


@pytest.mark.skipif(not shutil.which("ssh-keygen"), reason="ssh-keygen is not installed (apt: openssh-client)")
def test_an_encrypted_key_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "open sesame", "-f", path], check=True)

    async def run() -> None:
        (problem,) = await Resource(Harness(), "ClusterKeys").check({"privateKey": path.read_text()})
        assert "without passphrase" in problem

    asyncio.run(run())


def test_an_unreadable_key_is_refused_and_not_shown() -> None:
    async def run() -> None:
        it = Resource(Harness(), "ClusterKeys")
        (problem,) = await it.check({"privateKey": "-----BEGIN OPENSSH PRIVATE KEY-----\nnonsense\n"})
        assert "cannot be read" in problem and "nonsense" not in problem

    asyncio.run(run())
