"""The facility's DNS: Knot, with zones that survive a power failure and take updates signed by the lab's key."""

from __future__ import annotations

import shutil
from pathlib import Path

from lab.errors import LabError
from lab.facts import Facts
from lab.layout import Layout, write_private
from lab.network import plan

_TTL = 5
_NEGATIVE_TTL = 1  # a resolver that asked too early must not remember it


def render_zone(zone: str) -> str:
    """A zone as it is born."""
    origin = zone if zone.endswith(".") else f"{zone}."
    lines = [
        f"$ORIGIN {origin}",
        f"$TTL {_TTL}",
        f"@ SOA {plan.NAMESERVER}. hostmaster.{plan.ZONE}. 1 60 30 3600 {_NEGATIVE_TTL}",
        f"@ NS {plan.NAMESERVER}.",
        *(f"{owner} {kind} {data}" for owner, kind, data in plan.STATIC_RECORDS[zone]),
    ]
    return "\n".join(lines) + "\n"


def zone_file(layout: Layout, zone: str) -> Path:
    """The file of a zone."""
    return layout.dns / "zones" / f"{'root' if zone == '.' else zone}.zone"


def render_knot(layout: Layout, facts: Facts) -> str:
    """Knot's configuration. One thread each: this is a facility of a few hundred names on a busy small machine.

    Knot insists on a control socket; named by way of /proc, for the path of a state directory may be too long for one.
    """
    key = facts.dns.tsig
    head = f"""\
server:
    rundir: "."
    listen: {plan.DNS}@53
    udp-workers: 1
    tcp-workers: 1
    background-workers: 1
    automatic-acl: off
control:
    listen: "/proc/self/cwd/knot.sock"
database:
    storage: "{layout.dns}/database"
    journal-db-max-size: 64M
log:
  - target: stderr
    any: info
key:
  - id: "{key.name}"
    algorithm: {key.algorithm}
    secret: {key.secret}
acl:
  - id: signed
    key: "{key.name}"
    action: [update, transfer]
template:
  - id: default
    storage: "{layout.dns}/zones"
    semantic-checks: off
    zonefile-sync: 0
    zonefile-load: whole
    journal-content: changes
zone:
"""
    zones = [
        f'  - domain: "{zone}"\n    file: "{zone_file(layout, zone)}"\n'
        + ("    acl: signed\n" if zone in plan.UPDATABLE_ZONES else "")
        for zone in plan.zones(disconnected=facts.mirror is not None)
    ]
    return head + "".join(zones)


def knot() -> str:
    """Knot's daemon; sbin is not on everybody's PATH. Raises LabError where it is not installed."""
    found = shutil.which("knotd") or shutil.which("knotd", path="/usr/sbin:/usr/local/sbin")
    if found is None:
        raise LabError("the lab's DNS server, Knot, is not installed: install it (on Debian: apt-get install knot)")
    return found


def prepare(layout: Layout, facts: Facts) -> None:
    """Write the configuration, and the zones that are not there yet."""
    (layout.dns / "zones").mkdir(exist_ok=True)
    (layout.dns / "database").mkdir(exist_ok=True)
    for zone in plan.STATIC_RECORDS:
        path = zone_file(layout, zone)
        if not path.exists():
            write_private(path, render_zone(zone))
    # Knot takes the process id of its last run for its own: in a new pid namespace the same small number is somebody's.
    (layout.dns / "knot.pid").unlink(missing_ok=True)
    write_private(layout.dns / "knot.conf", render_knot(layout, facts))
