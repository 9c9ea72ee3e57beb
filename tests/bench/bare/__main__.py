"""`python -m tests.bench.bare preview|up`: one operation of the Automation API on a stack of its own.

The engine is called the way our driver calls it (no `pulumi version` first, the same parallelism): the comparison is to
show what the cluster's program and plug-ins cost, not what a different way of calling the engine would save.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import pulumi
from pulumi import automation

from tools.automation import EngineCommand
from tools.engine import Engine

_PLUGIN = Path(__file__).resolve().parent
_PROJECT = "bare"


class Thing(pulumi.CustomResource):
    """A resource that is nothing."""

    def __init__(self, number: int) -> None:
        super().__init__("bare:index:Thing", f"thing-{number}", {"number": number})


def main() -> int:
    """Run one operation; raises what the Automation API raises."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.bare", description=__doc__)
    parser.add_argument("operation", choices=("preview", "up"))
    parser.add_argument("--resources", type=int, required=True)
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--engine", type=Path, required=True)
    parser.add_argument("--engine-version", required=True)
    parser.add_argument("--parallel", type=int, required=True)
    options = parser.parse_args()

    def program() -> None:
        for number in range(options.resources):
            Thing(number)

    (options.state / "backend").mkdir()
    env = os.environ | {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PULUMI_BACKEND_URL": f"file://{options.state / 'backend'}",
        "PULUMI_CONFIG_PASSPHRASE": "bare",
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        "PULUMI_HOME": str(options.state / "home"),
        "PULUMI_SKIP_UPDATE_CHECK": "true",
    }
    (options.state / "Pulumi.yaml").write_text(
        f"name: {_PROJECT}\nruntime: python\nplugins:\n  providers:\n    - {{name: bare, path: {_PLUGIN}}}\n"
    )
    command = EngineCommand(Engine(path=options.engine, version=options.engine_version), env)
    workspace = automation.LocalWorkspaceOptions(work_dir=str(options.state), pulumi_command=command)
    stack = automation.create_stack("bare", project_name=_PROJECT, program=program, opts=workspace)
    if options.operation == "preview":
        stack.preview(parallel=options.parallel)
    else:
        stack.up(parallel=options.parallel)
    return 0


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    os._exit(status)  # as our driver ends: the Automation API's threads are not waited for
