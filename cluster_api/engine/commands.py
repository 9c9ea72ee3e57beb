"""The commands of the program: the installer, and the checks of nodes. In an `up`, pulumi-command runs them."""

from __future__ import annotations

import asyncio
import json
import tempfile
from pathlib import Path

from metal_ipi.components.checks import driver as checks
from metal_ipi.components.install import driver as installer
from metal_ipi.provider.errors import ProviderError
from metal_ipi.provider.inputs import Inputs, Problem
from metal_ipi.provider.resource import Changes, Context, Made, ResourceType, Values, simple_changes
from metal_ipi.provider.values import UNKNOWN


class Command(ResourceType):
    """A run of one of the program's drivers; it is repeated when its input has changed.

    If it is killed while it runs, nothing was saved, and it runs again; the installer then makes other assets.
    """

    token = "command:local:Command"  # noqa: S105 - a type token
    inputs = Inputs

    def check(self, inputs: Values) -> list[Problem]:
        return []

    def diff(self, context: Context, old: Values, new: Values) -> Changes:
        # Not `create` and `dir`: a changed path of Python is no reason to run again.
        return simple_changes(old, new, ("stdin", "environment", "triggers"))

    def preview(self, context: Context, old: Values | None, new: Values) -> Values:
        return {"stdout": UNKNOWN, "stderr": UNKNOWN}

    async def create(self, context: Context, inputs: Values) -> Made:
        return Made(id=context.identity, outputs={"stdout": await _run(inputs), "stderr": ""})

    async def update(self, context: Context, resource_id: str, old: Values, new: Values) -> Values:
        return {"stdout": await _run(new), "stderr": ""}


async def _run(inputs: Values) -> str:
    module = str(inputs.get("create") or "").rpartition(" ")[2]
    request = str(inputs["stdin"])
    if module == installer.__name__:
        return await _install(request)
    if module == checks.__name__:
        targets = checks.targets(json.loads(request))
        passed, failures = await checks.check_all(targets, inputs["environment"][checks.KEY])
        if failures:
            raise ProviderError("\n".join(failures))
        return json.dumps(passed)
    raise ProviderError(f"only the program's own drivers are run here, not this command: {inputs.get('create')}")


async def _install(request: str) -> str:
    """The driver's document; secret."""
    with tempfile.TemporaryDirectory(prefix="metal-ipi-") as folder:
        try:
            made = await asyncio.to_thread(installer.fulfil, request, Path(folder) / "assets")
        except installer.DriverError as error:
            raise ProviderError(str(error)) from error
    return json.dumps(made)
