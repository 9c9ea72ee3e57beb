"""The commands of the program: the installer, and the checks of nodes. `up` has them run by pulumi-command."""

from __future__ import annotations

import asyncio
import json
import tempfile
from pathlib import Path
from typing import Any

from metal_ipi.components.install import driver
from metal_ipi.provider.errors import ProviderError
from metal_ipi.provider.gates import ssh
from metal_ipi.provider.inputs import Inputs, Problem
from metal_ipi.provider.resource import Changes, Context, Made, ResourceType, Values, simple_changes
from metal_ipi.provider.resources.gate_kinds import GateLogs, GateNode
from metal_ipi.provider.values import UNKNOWN

_CHECK_SECONDS = 180.0
"""A check waits two minutes for Afterburn."""


class _Command(ResourceType):
    """What both have in common: they have no id, and run again when an input has changed."""

    inputs = Inputs
    compared = ("create", "stdin", "environment", "triggers", "connection")

    def check(self, inputs: Values) -> list[Problem]:
        return []

    def diff(self, context: Context, old: Values, new: Values) -> Changes:
        return simple_changes(old, new, self.compared)

    def preview(self, context: Context, old: Values | None, new: Values) -> Values:
        return {"stdout": UNKNOWN, "stderr": UNKNOWN}

    async def create(self, context: Context, inputs: Values) -> Made:
        return Made(id=context.identity, outputs={"stdout": await self._run(inputs), "stderr": ""})

    async def update(self, context: Context, resource_id: str, old: Values, new: Values) -> Values:
        return {"stdout": await self._run(new), "stderr": ""}

    async def _run(self, inputs: Values) -> str:
        raise NotImplementedError


class Installer(_Command):
    """Runs the installer once; the driver's document is its output, secret.

    Killed while it runs: nothing was kept, and the next run makes other assets.
    """

    token = "command:local:Command"  # noqa: S105 - a type token

    async def _run(self, inputs: Values) -> str:
        if not str(inputs.get("create") or "").endswith(driver.__name__):
            raise ProviderError(f"a command that is not the installer's is not run here: {inputs.get('create')}")
        request: dict[str, Any] = json.loads(str(inputs["stdin"]))
        with tempfile.TemporaryDirectory(prefix="metal-ipi-") as folder:
            try:
                made = await asyncio.to_thread(
                    driver.create,
                    installer=request["installer"],
                    version=request["version"],
                    install_config=request["installConfig"],
                    work_directory=Path(folder) / "assets",
                    in_place=request.get("inPlace", False),
                    manifests=request.get("manifests"),
                )
            except driver.DriverError as error:
                raise ProviderError(str(error)) from error
        return json.dumps(made)


class NodeCheck(_Command):
    """Runs a check on a node over SSH; its output has one line for each thing that was checked."""

    token = "command:remote:Command"  # noqa: S105 - a type token

    async def _run(self, inputs: Values) -> str:
        connection = inputs["connection"]
        node = GateNode(name=str(connection["host"]), address=connection["host"], host_key=connection["hostKey"])
        access = GateLogs(nodes=[node], user=connection["user"], private_key=connection["privateKey"], directory="")
        try:
            said = await ssh.run(node, access, str(inputs["create"]), timeout=_CHECK_SECONDS)
        except (ssh.NotYet, ssh.WrongHostKey) as error:
            raise ProviderError(f"the check of {node.address} failed: {error}") from error
        return said.removesuffix("\n")
