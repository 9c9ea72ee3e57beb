"""Stacks of the real Pulumi engine, each in a folder of its own, with the plug-ins of this checkout."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pulumi import automation

from tools.project import choose_log

ENGINE = os.environ.get("METAL_IPI_ENGINE") or shutil.which("pulumi")
ROOT = Path(__file__).resolve().parents[1]
PLUGINS = (ROOT / "provider", ROOT / "lab" / "plugins")

needs_engine = [
    pytest.mark.engine,
    # The Automation API leaves the event loop of an inline program open.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.usefixtures("collected"),
    pytest.mark.skipif(not ENGINE, reason="no Pulumi engine on PATH or in METAL_IPI_ENGINE"),
]
"""Marks of a module whose tests run the engine."""


def make_stack(folder: Path, program: Callable[[], None], **environment: str) -> automation.Stack:
    """A stack in a file back end whose engine and plugin are ours, whatever else the user has."""
    (folder / "bin").mkdir(exist_ok=True)
    engine = folder / "bin" / "pulumi"
    if not engine.exists():
        engine.symlink_to(str(ENGINE))
    work = folder / "work"
    work.mkdir(exist_ok=True)
    (folder / "home").mkdir(exist_ok=True)
    choose_log(folder / "home", wanted=False)
    variables = {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), *map(str, PLUGINS), os.environ["PATH"]]),
        "PULUMI_HOME": str(folder / "home"),
        "PULUMI_SKIP_UPDATE_CHECK": "1",
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "1",
        "PULUMI_CONFIG_PASSPHRASE": "test",
        **environment,
    }
    backend = automation.ProjectBackend(url=f"file://{folder}")
    options = automation.LocalWorkspaceOptions(
        work_dir=str(work),
        env_vars=variables,
        project_settings=automation.ProjectSettings(name="provider-test", runtime="python", backend=backend),
        pulumi_command=automation.PulumiCommand(root=str(folder)),
    )
    return automation.create_or_select_stack("test", project_name="provider-test", program=program, opts=options)


def resources(stack: automation.Stack) -> dict[str, Any]:
    """What is in its state, by logical name."""
    deployment = stack.export_stack().deployment or {}
    return {item["urn"].rsplit("::", 1)[-1]: item for item in deployment.get("resources", [])}


def state_of(folder: Path) -> str:
    """The file that the state is in."""
    return next((folder / ".pulumi" / "stacks").rglob("test.json")).read_text()
