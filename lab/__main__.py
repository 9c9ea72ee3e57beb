"""The lab's command line: `python -m lab <command> --state DIR`."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence

from lab.errors import LabError
from lab.layout import Layout

# Everything else is imported by the command that needs it: `run` stands before each command of an installation.


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    parsed = _parser().parse_args(arguments)
    command: Callable[[argparse.Namespace], int] = parsed.function
    try:
        return command(parsed)
    except LabError as error:
        print(f"lab: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m lab", description="A facility in a box, to rehearse installations in."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(
        name: str, function: Callable[[argparse.Namespace], int], text: str, *, state: bool = True
    ) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=text, description=text)
        command.set_defaults(function=function)
        if state:
            command.add_argument("--state", required=True, metavar="DIR", help="the lab's state directory")
        return command

    def add_machines(command: argparse.ArgumentParser) -> None:
        kinds = ("libvirt", "simulated")
        command.add_argument("--machines", choices=kinds, default="libvirt", help="what plays the servers")

    setup = add("setup", _setup, "install and build what the lab needs, after saying what", state=False)
    add_machines(setup)
    setup.add_argument("--kube-vip", action="store_true", help="build kube-vip, too, for nodes to pull")
    add_machines(add("up", _up, "start the lab; one that runs is left alone"))
    add("down", _down, "stop the lab, remove it, and prove that nothing is left")
    add("verify-clean", _verify_clean, "prove that nothing is left of a lab")
    add("status", _status, "say which services run")
    add("facts", _facts, "print where everything is and what opens it, as JSON with secrets")
    add("routes", _routes, "print what the facility's router holds, as JSON")
    run = add("run", _run, "run a command inside the lab's network")
    run.add_argument("command", nargs=argparse.REMAINDER, metavar="-- COMMAND ...")
    return parser


def _say(message: str) -> None:
    print(message, flush=True)


def _setup(arguments: argparse.Namespace) -> int:
    from lab import setup

    setup.run(arguments.machines, _say, kube_vip=arguments.kube_vip)
    return 0


def _up(arguments: argparse.Namespace) -> int:
    from lab import control, setup

    machines = setup.settle(arguments.machines, _say)
    layout = Layout.of(arguments.state)
    control.up(control.Wanted(layout=layout, machines=machines, installer=setup.installer), _say)
    return 0


def _down(arguments: argparse.Namespace) -> int:
    from lab import control

    return _report_left(control.down(Layout.of(arguments.state), _say))


def _verify_clean(arguments: argparse.Namespace) -> int:
    from lab import leftovers

    return _report_left(leftovers.find(Layout.of(arguments.state)))


def _report_left(left: list[str]) -> int:
    if not left:
        _say("nothing is left of the lab: no device, key, record, process, namespace, mount or file")
        return 0
    print("left over:", *left, sep="\n  ", file=sys.stderr)
    return 1


def _status(arguments: argparse.Namespace) -> int:
    from lab import control

    layout = Layout.of(arguments.state)
    seen = control.status(layout)
    _say(f"the lab in {layout.state}: {seen['state']}")
    for name, service in seen["services"].items():
        _say(f"  {name}: {service['state']} {service['detail']}".rstrip())
    return 0 if seen["state"] == "ready" else 1


def _facts(arguments: argparse.Namespace) -> int:
    from lab import facts

    layout = Layout.of(arguments.state)
    facts.require(layout)
    print(json.dumps(json.loads(layout.facts.read_text()), indent=2))
    return 0


def _routes(arguments: argparse.Namespace) -> int:
    from lab.network import routes

    print(json.dumps(routes.document(Layout.of(arguments.state)), indent=2))
    return 0


def _run(arguments: argparse.Namespace) -> int:
    from lab.network import enter

    command: list[str] = arguments.command[1:] if arguments.command[:1] == ["--"] else arguments.command
    if not command:
        raise LabError("no command: python -m lab run --state DIR -- COMMAND ...")
    layout = Layout.of(arguments.state)
    if layout.api_servers.exists():
        os.environ["LAB_OPENSHIFT_KUBERNETES"] = str(layout.api_servers)
    return enter.run(layout, command)


if __name__ == "__main__":
    sys.exit(main())
