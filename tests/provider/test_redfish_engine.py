"""Servers with a BMC under the real engine: claimed, lent and given back, and no credential left anywhere."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pulumi
import pytest
from pulumi import automation

from metal_ipi.provider import types
from tests.provider import fake_bmc
from tests.provider import ssh_servers as ssh
from tests.provider.fake_bmc import MAC, PASSWORD, USER, UUID
from tests.real_engine import make_stack, needs_engine, resources, state_of

pytestmark = needs_engine


def test_a_server_is_lent_given_back_and_claimed(tmp_path: Path) -> None:
    twice = False

    def program(bmcs: dict[str, Any], artifacts: dict[str, Any]) -> None:
        provider = types.Provider("p", types.ProviderArgs(bmcs=bmcs, artifacts=artifacts))
        opts = pulumi.ResourceOptions(provider=provider)
        loan = types.LentServerArgs(
            server="worker-0",
            hostname="lab-bootstrap",
            mac=MAC,
            public_ipv4="192.0.2.97",
            script="#!ipxe\n# a-script-nobody-may-see\n",
            chain="#!ipxe\nexit\n",
        )
        bootstrap = types.EphemeralMachine("bootstrap", loan, opts)
        removal = types.Removal("removal", types.RemovalArgs(machine_id=bootstrap.machine_id, platform="redfish"), opts)
        after = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(depends_on=[removal]))
        for name in ("worker-0", "worker-1")[: 2 if twice else 1]:
            claim = types.RedfishMachineArgs(server="worker-0", hostname=name, mac=MAC, public_ipv4="192.0.2.97")
            made = types.RedfishMachine(name, claim, after)
            pulumi.export(name, made.machine_id)

    async def run() -> None:
        nonlocal twice
        key = ssh.key()
        async with ssh.artifact_host(tmp_path / "files", ssh.key(), key) as artifacts:
            stack = make_stack(tmp_path, lambda: program({"worker-0": bmc.settings(password=bmc.password)}, artifacts))
            printed: list[str] = []
            result = await asyncio.to_thread(stack.up, on_output=printed.append)
            assert result.outputs["worker-0"].value == f"worker-0/{UUID}"
            assert bmc.machine.boots == ["Pxe"] and bmc.machine.state() == "Off"
            await asyncio.to_thread(stack.refresh)
            result = await asyncio.to_thread(stack.up, on_output=printed.append)
            assert set(result.summary.resource_changes or {}) == {"same"}
            # Other credentials change nothing but the provider.
            bmc.machine.power, bmc.password = "On", f"new-{PASSWORD}"
            result = await asyncio.to_thread(stack.up, on_output=printed.append)
            assert (result.summary.resource_changes or {}).get(automation.OpType.UPDATE) == 1 and len(
                bmc.machine.boots
            ) == 1
            await asyncio.to_thread(stack.refresh)

            twice = True
            with pytest.raises(automation.CommandError):
                await asyncio.to_thread(stack.up, on_output=printed.append)
            output = "\n".join(printed)
            assert "server worker-0 is wanted twice" in output
            state = state_of(tmp_path)
            for secret in (PASSWORD, USER, "a-script-nobody-may-see"):
                assert secret not in state and secret not in output
            twice = False
            await asyncio.to_thread(stack.destroy)
            assert resources(stack) == {} and bmc.machine.state() == "Off"

    with fake_bmc.running() as bmc:
        asyncio.run(run())
    assert bmc.sessions == {}
