"""The command line; see the package's docstring. The inner process is imported only when needed, because it loads
Pulumi's SDK."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from tools.choices import Asked
from tools.commands import COMMANDS, fleet, preview_report
from tools.containment import HAS_WORK, LEFT, LOOKING, contained, end, python_module
from tools.engine import Engine
from tools.errors import ToolError
from tools.layout import ROOT, Layout


def _arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools", description="Drives the stacks of this project.")
    parser.add_argument("--root", type=Path, default=ROOT, help="the project's root (default: this one)")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, function in COMMANDS.items():
        command = commands.add_parser(name, help=function.__doc__, description=function.__doc__)
        command.add_argument("--stack", default="lab", help="the stack's name (default: %(default)s)")
        command.add_argument(
            "--machines",
            default=os.environ.get("MACHINES") or None,
            help="libvirt or simulated, for lab stacks (default: $MACHINES, else the stack file's)",
        )
        command.add_argument(
            "--installer",
            default=os.environ.get("INSTALLER") or None,
            help="stand-in or real, for lab stacks (default: $INSTALLER, else the stack file's)",
        )
    imported = commands.add_parser("import", help="write a stack file from install-config.yaml and agent-config.yaml")
    imported.add_argument("--stack", help="the stack's name (default: the cluster's)")
    imported.add_argument("--install-config", type=Path, required=True, metavar="FILE")
    imported.add_argument("--agent-config", type=Path, metavar="FILE")
    imported.add_argument("--overwrite", action="store_true", help="overwrite an existing stack file")
    compared = commands.add_parser("preview-report", help="write what a change does to every facility, with pictures")
    compared.add_argument("--base", default="main", help="the commit to compare with (default: %(default)s)")
    compared.add_argument("--target", type=Path, help="the directory to write to (default: .state/preview-report)")
    compared.add_argument("--pictures", default="", metavar="URL", help="the URL prefix of the pictures in the report")
    overview = commands.add_parser("fleet", help="write a page and a picture of all clusters")
    overview.add_argument("--hub", action="append", default=[], metavar="NAME=KUBECONFIG", help="a hub to ask")
    overview.add_argument("--target", type=Path, help="the directory to write to (default: .state/fleet)")
    # The commands of the inner process; containment.py, fork_server.py and session.py explain them.
    with_engine = argparse.ArgumentParser(add_help=False)
    with_engine.add_argument("--engine", required=True)
    with_engine.add_argument("--engine-version", required=True)
    rehearsed = commands.add_parser("rehearse", parents=[with_engine])
    rehearsed.add_argument("--target", type=Path, required=True)
    rehearsed.add_argument("names", nargs="*")
    inner = commands.add_parser("engine", parents=[with_engine])
    inner.add_argument("operation", choices=("up", "down", "refresh", "preview", LEFT, *LOOKING))
    inner.add_argument("--stack", required=True)
    inner.add_argument("--pool")
    inner.add_argument("--made-of", nargs=2, metavar=("MACHINES", "INSTALLER"))
    contain = commands.add_parser("contain")
    contain.add_argument("rest", nargs=argparse.REMAINDER)
    forks = commands.add_parser("fork-server")
    forks.add_argument("--stack", required=True)
    return parser.parse_args(given)


def main(given: Sequence[str] | None = None) -> int:
    """Runs one command, by default that of this process; returns its exit status."""
    arguments = _arguments(given)
    try:
        if arguments.command == "contain":
            command = contained(python_module("--root", str(arguments.root), *arguments.rest))
            os.execvp(command[0], command)  # noqa: S606  no shell is wanted
        if arguments.command == "fork-server":
            from tools.fork_server import serve

            serve(Layout(root=arguments.root, stack=arguments.stack), main)
        elif arguments.command in ("engine", "rehearse"):
            from tools.inner import has_nothing_to_do, rehearse_side, run_engine

            found = Engine(path=Path(arguments.engine), version=arguments.engine_version)
            if arguments.command == "engine":
                layout = Layout(root=arguments.root, stack=arguments.stack, pool=arguments.pool)
                if arguments.operation == LEFT:
                    return 0 if has_nothing_to_do(layout, found) else HAS_WORK
                run_engine(arguments.operation, layout, found, arguments.made_of)
            else:
                rehearse_side(arguments.root, found, arguments.target, arguments.names)
        elif arguments.command == "preview-report":
            root = arguments.root.resolve()
            target = arguments.target or root / ".state" / "preview-report"
            preview_report(root, arguments.base, target, arguments.pictures)
        elif arguments.command == "fleet":
            root = arguments.root.resolve()
            fleet(root, arguments.hub, arguments.target or root / ".state" / "fleet")
        elif arguments.command == "import":
            from tools.importing.command import write

            files = (arguments.install_config, arguments.agent_config)
            print(write(arguments.root.resolve(), arguments.stack, *files, overwrite=arguments.overwrite).told)
        else:
            layout = Layout(root=arguments.root.resolve(), stack=arguments.stack)
            asked = Asked(machines=arguments.machines or None, installer=arguments.installer or None)
            COMMANDS[arguments.command](layout, asked)
    except ToolError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return 141  # the reader of our output has closed it, as in `... | head`
    return 0


if __name__ == "__main__":
    end(main())
