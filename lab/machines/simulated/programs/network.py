"""Programs that look at the network and at the clock. All machines share one kernel, so what differs is made up: from
what the network knows the machine by, and from its quirks."""

from __future__ import annotations

import ipaddress
import json
import shlex
from pathlib import Path

from lab.machines.simulated import quirks, record
from lab.machines.simulated.programs import Answer, Arguments, Call, Host, Refused

_DEVICE = "eth0"
_HEADERS = 28
"""Bytes of a packet that ping's own come on top of (IPv4 and ICMP)."""
_NTP = "192.0.2.1"


async def ip(call: Call, host: Host) -> Answer:
    """`ip -json route show default`, `route get ADDRESS` and `link show dev DEVICE`; all else is the host's."""
    match call.arguments:
        case ("-json", "route", "show", "default"):
            found = [{"dst": "default", "gateway": each.gateway, "dev": _DEVICE} for each in host.spec.addresses]
        case ("-json", "route", "get", address):
            found = [{"dst": address, "dev": _DEVICE}]
        case ("-json", "link", "show", "dev", device):
            if device != _DEVICE:
                raise Refused(f'Device "{device}" does not exist.')
            found = [{"ifname": device, "mtu": quirks.load(host.directory).mtu}]
        case _:
            return Answer(then=shlex.join(["ip", *call.arguments]))
    return Answer(stdout=json.dumps(found) + "\n")


async def ping(call: Call, host: Host) -> Answer:
    """Packets to another machine of the lab: they arrive where it is up, and where its MTU lets them."""
    options = Arguments("-n", "-q")
    options.add_argument("-c", type=int, default=1)
    options.add_argument("-i", type=float)
    options.add_argument("-W", type=float)
    options.add_argument("-M", choices=["do"])
    options.add_argument("-s", type=int, default=56)
    options.add_argument("target", type=ipaddress.IPv4Address)
    given = options.parse_args(call.arguments)
    other = _machine_at(host.directory.parent, str(given.target))
    size = given.s + _HEADERS
    if given.M and size > quirks.load(host.directory).mtu:
        raise Refused("local error: message too long")
    arrives = other is not None and not (given.M and size > quirks.load(other).mtu)
    told = (
        f"{given.c} packets transmitted, {given.c if arrives else 0} received, {0 if arrives else 100}% packet loss\n"
    )
    if arrives:
        told += "rtt min/avg/max/mdev = 0.100/0.200/0.300/0.050 ms\n"
    return Answer(status=0 if arrives else 1, stdout=told)


async def chronyc(call: Call, host: Host) -> Answer:
    """`chronyc -c tracking` (chrony 4, client.c): the clock is synchronised unless it is off."""
    if call.arguments != ("-c", "tracking"):
        raise Refused("simulated machines know `chronyc -c tracking` alone")
    if quirks.load(host.directory).clock_ahead:
        return Answer(stdout="7F7F0101,,0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,1.0,1.0,0.0,Not synchronised\n")
    return Answer(stdout=f"C0000201,{_NTP},3,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,64.0,Normal\n")


async def date(call: Call, host: Host) -> Answer:
    """The time of the machine's clock."""
    ahead = quirks.load(host.directory).clock_ahead
    shifted = [f"--date={ahead:+f} seconds"] if ahead and not any(word[:1] == "-" for word in call.arguments) else []
    return Answer(then=shlex.join(["date", *shifted, *call.arguments]))


def _machine_at(machines: Path, address: str) -> Path | None:
    """The directory of the machine that is up at an address."""
    for directory in machines.iterdir():
        if record.is_up_at(directory, address):
            return directory
    return None
