"""What a running lab still holds, by its API, DNS and boot server: a JSON list of sentences, empty when all is clean.

Run inside the lab as `python -m lab.network.inventory --state DIR`.
"""

from __future__ import annotations

import argparse
import json
import ssl
import subprocess
import urllib.request
from collections.abc import Iterator
from typing import Any

import dns.name
import dns.query
import dns.rdatatype
import dns.tsigkeyring
import dns.xfr
import dns.zone

from lab import facts
from lab.layout import Layout
from lab.network import bird, bird_control, plan
from lab.network.dns import render_zone

_SECONDS = 10.0


def dns_records(known: facts.Dns) -> Iterator[str]:
    """Records that the zones were not born with, by zone transfer."""
    keyring = dns.tsigkeyring.from_text({known.tsig.name: (known.tsig.algorithm, known.tsig.secret)})
    for name in plan.UPDATABLE_ZONES:
        origin = dns.name.from_text(name)
        zone = dns.zone.Zone(origin, relativize=False)
        request, _ = dns.xfr.make_query(zone, serial=None, keyring=keyring)
        dns.query.inbound_xfr(known.server, zone, request, timeout=_SECONDS, lifetime=_SECONDS)
        for record in sorted(
            _records(zone) - _records(dns.zone.from_text(render_zone(name), origin, relativize=False))
        ):
            yield f"DNS record {record}"


def _records(zone: dns.zone.Zone) -> set[str]:
    """The records of a zone, without its SOA and without TTLs."""
    return {
        f"{name} {dns.rdatatype.to_text(record.rdtype)} {record}"
        for name, _, record in zone.iterate_rdatas()
        if record.rdtype != dns.rdatatype.SOA
    }


def api_objects(known: facts.Facts) -> Iterator[str]:
    """Devices, keys, projects, reservations, faults: whatever the API's inventory lists."""
    assert known.api is not None, "the Metal API runs in labs that have one"
    request = urllib.request.Request("https://api.equinix.com/lab/inventory", headers={"X-Auth-Token": known.api.token})
    context = ssl.create_default_context(cafile=known.ca_path)
    with urllib.request.urlopen(request, timeout=_SECONDS, context=context) as answer:  # noqa: S310
        inventory: dict[str, list[dict[str, Any]]] = json.load(answer)
    for kind, objects in inventory.items():
        for each in objects:
            label = each.get("hostname") or each.get("label") or each.get("name") or each.get("kind") or ""
            yield f"{kind}: {label} {each.get('id', '')}".rstrip()


def uploaded_files(layout: Layout) -> Iterator[str]:
    """Files that were uploaded to the boot server and not removed; they may contain secrets."""
    for path in sorted((layout.boot / "artifacts").rglob("*")):
        if path.is_file():
            yield f"uploaded file {path.name}"


def routes(layout: Layout) -> Iterator[str]:
    """The routes that the facility's router still has."""
    for route in bird_control.read(bird.directory(layout))[1]:
        yield f"route {route.prefix} via {', '.join(route.via) or 'nobody'}"


def servers(layout: Layout) -> Iterator[str]:
    """Servers that are still powered on, and faults that were not cleared. The content of disks does not count."""
    from lab.bmc import control

    for name, server in control.ask(layout, {"do": "servers"}).items():
        if server["power"] != "off":
            yield f"server {name} has power"
        for fault in server["faults"]:
            yield f"fault {fault['kind']} of {name}"


def guests(rack: facts.Rack) -> Iterator[str]:
    """Virtual machines of others in the lab's libvirt."""
    if rack.guest is None:
        return
    command = ["virsh", "--quiet", "--connect", rack.guest.uri, "list", "--all", "--name"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=_SECONDS)
    servers = {server.uuid for server in rack.servers}
    for name in done.stdout.split():
        if name not in servers:
            yield f"virtual machine {name}"


def main() -> None:
    """Print the list."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--state", required=True)
    layout = Layout.of(parser.parse_args().state)
    known = facts.require(layout)
    held = [*dns_records(known.dns), *uploaded_files(layout)]
    services = json.loads(layout.status.read_text())["services"]
    if "metal-api" in services:
        held += api_objects(known)
    if "bgp" in services:
        held += routes(layout)
    if "bmc" in services:
        assert known.rack is not None, "BMCs run in labs that have a rack"
        held += [*servers(layout), *guests(known.rack)]
    print(json.dumps(held))


if __name__ == "__main__":
    main()
