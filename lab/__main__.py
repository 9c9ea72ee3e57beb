"""The lab's command line: `python -m lab <command> --state DIR`."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from binaries.errors import ProgramMissing
from lab.bmc import names
from lab.errors import LabError
from lab.layout import Layout

# Everything else is imported by the command that needs it: `run` stands before each command of an installation.

_NOTHING_LEFT = "nothing is left of the lab: no device, key, record, process, namespace, mount or file"

_RACK = {
    "rack": "print the servers of the rack: power, boots, faults, as JSON",
    "power": "switch or interrupt the power of a server, or of its BMC",
    "hardware": "set what a server's BMC reports, and whether Secure Boot is on",
    "fault": "make a server's BMC misbehave (see lab/bmc/faults.py)",
    "clear-faults": "make a server's BMC behave again",
}
"""Commands for a lab with a rack."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    parsed = _parser().parse_args(arguments)
    command: Callable[[argparse.Namespace], int] = parsed.function
    try:
        return command(parsed)
    except (LabError, ProgramMissing) as error:
        print(f"lab: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m lab", description="An emulated facility, to rehearse installations."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(
        name: str, function: Callable[[argparse.Namespace], int], text: str, *, state: bool = True
    ) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=text, description=text)
        command.set_defaults(function=function, name=name)
        if state:
            command.add_argument("--state", required=True, metavar="DIR", help="the lab's state directory")
        return command

    setup = add("setup", _setup, "list, install and build what the lab needs", state=False)
    setup.add_argument("--hub", action="store_true", help="the parts of a hub, too")
    setup.add_argument("--kube-vip", action="store_true", help="build kube-vip, too, for nodes to pull")
    setup.add_argument("--metallb", action="store_true", help="build MetalLB, too, for nodes to pull")
    setup.add_argument("--proxy", action="store_true", help="install a forward proxy, too")
    up = add("up", _up, "start the lab, unless it runs")
    rack = "the number of servers with BMCs, which replace the Metal API; any: as many as a running lab has"
    up.add_argument("--proxy", action="store_true", help="with a forward proxy")
    up.add_argument("--rack", type=_rack, default=0, metavar="N", help=rack)
    text = "one API server for each cluster, in the place of one for each machine of its control plane: less memory"
    up.add_argument("--shared-api-servers", action="store_true", help=text)
    for command in (setup, up):
        kinds = ("libvirt", "simulated")
        command.add_argument("--machines", choices=kinds, default="libvirt", help="how the machines are emulated")
        text = "the lab's stand-in for OpenShift, or its real programs, which are built once (20 minutes)"
        command.add_argument("--openshift", choices=("stand-in", "real"), default="stand-in", help=text)
        text = "small services that start at once, in the place of a real Kubernetes API"
        command.add_argument("--small-kubernetes", action="store_true", help=text)
        text = "nothing outside of the site resolves or answers; the site has a registry of images"
        command.add_argument("--disconnected", action="store_true", help=text)
        text = "with the Operator Lifecycle Manager for complete clusters, which is built once (6 minutes)"
        command.add_argument("--day-two", action="store_true", help=text)
    add("down", _down, "stop the lab, remove it, and verify that nothing is left")
    add("hub", _hub, "start a one-node Kubernetes in the lab's network, beside its machines")
    cluster_api = add("cluster-api", _cluster_api, "install Cluster API in the hub: the core, and providers if given")
    cluster_api.add_argument("--providers", metavar="DIR", type=Path, help="more (see lab/cluster_api/providers.py)")
    add("hub-down", _hub_down, "stop the hub, remove it, and verify that nothing is left")
    add("verify-clean", _verify_clean, "verify that nothing is left of a lab")
    add("status", _status, "print which services run")
    add("facts", _facts, "print addresses and credentials of the lab's services, as JSON with secrets")
    add(
        "outside",
        _outside,
        "print the outside names that were looked up in a disconnected lab, and the packets that were sent out",
    )
    add("routes", _routes, "print what the facility's router holds, as JSON")
    quirk = add("quirk", _quirk, "set faults of the system of a rack's simulated server; without options: no faults")
    quirk.add_argument("server", help="its name")
    quirk.add_argument("--clock-ahead", type=float, default=0.0, metavar="SECONDS", help="of its clock")
    quirk.add_argument("--mtu", type=int, default=1500, help="of its network card (bytes)")
    quirk.add_argument("--host-name", default="", dest="hostname", help="what DHCP calls it")
    _add_rack({name: add(name, _ask_rack, text) for name, text in _RACK.items()})
    run = add("run", _run, "run a command inside the lab's network")
    run.add_argument("command", nargs=argparse.REMAINDER, metavar="-- COMMAND ...")
    return parser


def _add_rack(commands: dict[str, argparse.ArgumentParser]) -> None:
    power, hardware, fault = (commands[name] for name in ("power", "hardware", "fault"))
    for command in (power, hardware, fault):
        command.add_argument("server", help="its name, or all")
    commands["clear-faults"].add_argument("server", nargs="?", default="all", help="its name (default: all)")
    power.add_argument("to", choices=names.POWERS)
    power.add_argument("--seconds", type=float, help=f"how long a loss lasts (default: {names.LOSS_SECONDS:g})")
    hardware.add_argument(
        "--memory", type=float, metavar="GIB", help="0: the BMC does not report it", dest="memory_gib"
    )
    hardware.add_argument("--cpus", type=int)
    hardware.add_argument("--disk", type=float, metavar="GIB", help="the first; 0: as at first", dest="disk_gib")
    hardware.add_argument("--tpm", choices=names.TPMS)
    hardware.add_argument("--link", choices=("up", "down"), help="of the first network card")
    health = "of a part: system, processor, memory, disk or power supply; OK, Warning or Critical"
    hardware.add_argument("--health", metavar="PART=HEALTH", help=health)
    hardware.add_argument("--same-as", metavar="SERVER", help="whose UUID and serial number it tells; itself: its own")
    hardware.add_argument("--secure-boot", choices=("on", "off"), help="from the next start on; on: in UEFI mode")
    fault.add_argument("kind", choices=names.FAULTS)
    fault.add_argument("--seconds", type=float)
    fault.add_argument("--count", type=int, help="the requests that it affects")
    fault.add_argument("--which", choices=names.CERTIFICATES, help="the wrong certificate")
    fault.add_argument("--days", type=float, help="how far off the clock is")


def _ask_rack(arguments: argparse.Namespace) -> int:
    """Send the command to the BMCs' service (lab/bmc/control.py) and print its answer."""
    from lab.bmc import control

    given = {name: value for name, value in vars(arguments).items() if name not in ("function", "name", "state")}
    command = {"rack": "servers", "clear-faults": "clear"}.get(arguments.name, arguments.name)
    if command == "hardware" and given["secure_boot"] is not None:
        given["secure_boot"] = given["secure_boot"] == "on"
    if command == "hardware" and given["link"] is not None:
        given["link"] = given["link"] == "up"
    if command == "hardware" and given["health"] is not None:
        part, _, health = given["health"].partition("=")
        given["health"] = {part: health}
    if command == "fault":
        server = given.pop("server")
        given = {"server": server, "fault": given}
    print(json.dumps(control.ask(Layout.of(arguments.state), {"do": command, **given}), indent=2))
    return 0


def _rack(text: str) -> int | None:
    return None if text == "any" else int(text)


def _say(message: str) -> None:
    print(message, flush=True)


def _setup(arguments: argparse.Namespace) -> int:
    from lab import setup

    setup.run(
        arguments.machines,
        _say,
        kube_vip=arguments.kube_vip,
        metallb=arguments.metallb,
        day_two=arguments.day_two,
        openshift=arguments.openshift,
        real_kubernetes=not arguments.small_kubernetes,
        hub=arguments.hub,
        forward_proxy=arguments.proxy,
        disconnected=arguments.disconnected,
    )
    return 0


def _hub(arguments: argparse.Namespace) -> int:
    from lab.hub import control

    control.up(Layout.of(arguments.state), _say)
    return 0


def _cluster_api(arguments: argparse.Namespace) -> int:
    from lab.cluster_api import control

    return control.install(Layout.of(arguments.state), _say, arguments.providers)


def _hub_down(arguments: argparse.Namespace) -> int:
    from lab.hub import control

    left = control.down(Layout.of(arguments.state), _say)
    return _report_left(left, "nothing is left of the hub: no process, cgroup or file")


def _up(arguments: argparse.Namespace) -> int:
    from lab import control, facts, setup
    from lab.openshift import kinds

    layout, rack = Layout.of(arguments.state), arguments.rack
    if rack is None:
        known = facts.load(layout)
        rack = len(known.rack.servers) if known and known.rack else 0
    wanted = control.Wanted(
        layout=layout,
        machines=setup.settle(arguments.machines, _say),
        services=(*(control.RACK_SERVICES if rack else control.SERVICES), *(("proxy",) if arguments.proxy else ())),
        rack=rack,
        real_kubernetes=not arguments.small_kubernetes,
        disconnected=arguments.disconnected,
        day_two=arguments.day_two,
        shared_api_servers=arguments.shared_api_servers,
        openshift=lambda: kinds.ensure(arguments.openshift, _say),
    )
    control.up(wanted, _say)
    return 0


def _down(arguments: argparse.Namespace) -> int:
    from lab import control

    return _report_left(control.down(Layout.of(arguments.state), _say))


def _verify_clean(arguments: argparse.Namespace) -> int:
    from lab import leftovers

    return _report_left(leftovers.find(Layout.of(arguments.state)))


def _report_left(left: list[str], nothing: str = _NOTHING_LEFT) -> int:
    if not left:
        _say(nothing)
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


def _quirk(arguments: argparse.Namespace) -> int:
    from lab import facts
    from lab.machines.simulated.quirks import Quirks, save

    layout = Layout.of(arguments.state)
    known = facts.require(layout)
    servers = {each.name: each.uuid for each in known.rack.servers} if known.rack else {}
    if arguments.server not in servers or known.machines != "simulated":
        there = ", ".join(servers) if known.machines == "simulated" else ""
        raise LabError(f"there is no simulated server {arguments.server}; there are {there or 'none'}")
    found = Quirks(clock_ahead=arguments.clock_ahead, mtu=arguments.mtu, hostname=arguments.hostname)
    save(layout.state / "machines" / servers[arguments.server], found)
    return 0


def _outside(arguments: argparse.Namespace) -> int:
    from lab.network import witness

    seen = witness.load(Layout.of(arguments.state))
    if seen is None:
        raise LabError("this lab is not disconnected: start it with --disconnected (lab.disconnected in a stack file)")
    print(json.dumps(seen, indent=2))
    return 0


def _routes(arguments: argparse.Namespace) -> int:
    from lab.network import bird_control

    print(json.dumps(bird_control.document(Layout.of(arguments.state)), indent=2))
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
