"""The plugin under the real engine: one installation's worth of resources, failures and secrets included."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pulumi
import pytest
from pulumi import automation

from metal_ipi.provider import types
from tests.provider import ssh_servers as ssh
from tests.provider.fake_machine import CLIENT
from tests.provider.fake_metal import FakeMetal
from tests.provider.installation_site import UPLOAD_HOST
from tests.provider.test_ephemeral_machine import TAGS
from tests.real_engine import make_stack, needs_engine, resources, state_of

TOKEN = "a-token-nobody-may-see"
pytestmark = needs_engine


def machine(opts: pulumi.ResourceOptions, timeout: float = 20) -> types.EphemeralMachine:
    args = types.EphemeralMachineArgs(
        project_id="p", hostname="lab-bootstrap", plan="c3", metro="lb", tags=TAGS, timeout_seconds=timeout
    )
    return types.EphemeralMachine("bootstrap", args, opts)


def test_an_unfinished_machine_is_kept_gone_on_with_and_removed(metal: FakeMetal, tmp_path: Path) -> None:
    timeout = 1.0

    def program() -> None:
        provider = types.Provider("p", types.ProviderArgs(metal={"authToken": TOKEN, "endpoint": metal.url}))
        opts = pulumi.ResourceOptions(provider=provider)
        keys = types.ClusterKeys("keys", opts=opts)
        made = machine(opts, timeout)
        removal = types.Removal("removal", types.RemovalArgs(machine_id=made.machine_id), opts)
        pulumi.export("address", made.public_ipv4)
        pulumi.export("removed", removal.removed_at)
        pulumi.export("key", keys.private_key)

    metal.states = ["queued"] + ["provisioning"] * 10_000
    stack = make_stack(tmp_path, program)
    printed: list[str] = []
    with pytest.raises(automation.CommandError):
        stack.up(on_output=printed.append)
    output = "\n".join(printed)
    assert "machine lab-bootstrap" in output and "is still provisioning after 1 s; it is kept" in output
    assert "Traceback" not in output and TOKEN not in output
    (device,) = metal.devices
    kept = resources(stack)["bootstrap"]
    assert kept["id"] == device and kept["initErrors"]

    timeout = 20.0
    metal.devices[device]["walk"] = ["active"]
    result = stack.up(on_output=printed.append)
    assert result.outputs["address"].value == "198.51.100.1" and metal.count("POST") == 1
    assert metal.devices == {}, "the removal deletes it within the same up"

    # It stays gone, without anything to do, after a refresh as well.
    for _ in range(2):
        assert set(stack.up().summary.resource_changes or {}) == {"same"}
        stack.refresh()
    assert metal.count("POST") == 1

    assert TOKEN not in state_of(tmp_path) and "PRIVATE KEY" not in state_of(tmp_path)
    stack.destroy()
    assert resources(stack) == {}


async def test_files_that_were_withdrawn_are_uploaded_again_when_their_artifacts_are_replaced(tmp_path: Path) -> None:
    async with ssh.artifact_host(tmp_path, UPLOAD_HOST, CLIENT) as section:

        def program() -> None:
            opts = pulumi.ResourceOptions(provider=types.Provider("p", types.ProviderArgs(artifacts=section)))
            args = types.ArtifactsArgs(files={"worker-0.ign": "{}"}, path_seed="x" * 32, ephemeral=True)
            types.Artifacts("workers-installers", args, opts)

        def uploaded() -> list[str]:
            return [path.name for path in (tmp_path / "artifacts").rglob("*") if path.is_file()]

        stack = await asyncio.to_thread(make_stack, tmp_path, program)
        await asyncio.to_thread(stack.up)
        assert uploaded() == ["worker-0.ign"]
        next((tmp_path / "artifacts").rglob("worker-0.ign")).unlink()  # its machine is installed
        again = await asyncio.to_thread(stack.up)
        assert set(again.summary.resource_changes or {}) == {"same"} and uploaded() == []
        urn = (await asyncio.to_thread(resources, stack))["workers-installers"]["urn"]
        await asyncio.to_thread(stack.up, replace=[urn])
        assert uploaded() == ["worker-0.ign"]
        await asyncio.to_thread(stack.destroy)
        assert uploaded() == []
