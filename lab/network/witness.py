"""Records requests to the outside world: looked-up names, and packets that leave the site.

Run by the supervisor of a lab that is disconnected as `python -m lab.network.witness --state DIR`. There the way out
leads to a device behind which nobody is, as behind a firewall that says nothing. Names are those of queries over UDP;
resolvers turn to TCP only after an answer by UDP that was cut off.
"""

from __future__ import annotations

import argparse
import ctypes
import ipaddress
import json
import selectors
import socket
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.layout import Layout, write_private
from lab.network import link, plan

_EVERYTHING = 3  # ETH_P_ALL, linux/if_ether.h
_IP = 0x0800
_FILTER = 26  # SO_ATTACH_FILTER, asm-generic/socket.h
# Classic BPF (linux/filter.h): UDP, no later fragment, to port 53; offsets are the IP packet's.
_QUERIES = (
    (0x30, 0, 0, 9),  # the protocol
    (0x15, 0, 6, socket.IPPROTO_UDP),
    (0x28, 0, 0, 6),  # flags and offset of the fragment
    (0x45, 4, 0, 0x1FFF),
    (0xB1, 0, 0, 0),  # the header's length
    (0x48, 0, 0, 2),  # the port
    (0x15, 0, 1, 53),
    (0x06, 0, 0, 0xFFFF),
    (0x06, 0, 0, 0),
)
_OF_THE_WIRE = bytes((224, 0, 0))
"""Multicast that no router passes on (RFC 5771): the device's own reports of groups."""
_PORTS = (socket.IPPROTO_TCP, socket.IPPROTO_UDP)


@dataclass
class Seen:
    """What was seen, each once."""

    names: set[str] = field(default_factory=set[str])
    """Looked up, without the final dot."""
    sent: set[str] = field(default_factory=set[str])
    """Left the site: `<protocol> <address>[:<port>] from <address>`."""

    def document(self) -> dict[str, Any]:
        """As `lab outside` prints it."""
        return {
            "site": sorted(name for name in self.names if plan.is_of_the_site(name)),
            "outside": sorted(name for name in self.names if not plan.is_of_the_site(name)),
            "sent": sorted(self.sent),
        }


def queried(packet: bytes) -> str | None:
    """The name that an IP packet with a DNS query asks for; None for what is none."""
    message = packet[(packet[0] & 0x0F) * 4 + 8 :]
    labels: list[str] = []
    place = 12
    while place < len(message) and (length := message[place]):
        if length > 63:
            return None
        labels.append(message[place + 1 : place + 1 + length].decode(errors="replace").lower())
        place += 1 + length
    return ".".join(labels) if place < len(message) else None


def describe(packet: bytes) -> str:
    """Where an IP packet was to go."""
    header = (packet[0] & 0x0F) * 4
    protocol = packet[9]
    source, target = (ipaddress.IPv4Address(packet[at : at + 4]) for at in (12, 16))
    name = {socket.IPPROTO_TCP: "tcp", socket.IPPROTO_UDP: "udp", socket.IPPROTO_ICMP: "icmp"}.get(protocol)
    port = f":{struct.unpack('!H', packet[header + 2 : header + 4])[0]}" if protocol in _PORTS else ""
    return f"{name or protocol} {target}{port} from {source}"


def load(layout: Layout) -> dict[str, Any] | None:
    """What was seen until now; None in a lab that is not disconnected."""
    return json.loads(layout.witness.read_text()) if layout.witness.exists() else None


def _listen(device: str | None) -> socket.socket:
    """A socket that gets IP packets: DNS queries of all devices, or all that leaves by one."""
    kind = _EVERYTHING if device else _IP
    found = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(kind))
    if device:
        found.bind((device, kind))
        return found
    packed = b"".join(struct.pack("HBBI", *each) for each in _QUERIES)
    program = ctypes.create_string_buffer(packed, len(packed))
    found.setsockopt(socket.SOL_SOCKET, _FILTER, struct.pack("HxxxxxxP", len(_QUERIES), ctypes.addressof(program)))
    return found


def watch(layout: Layout) -> None:
    """Write down what is seen, until the supervisor ends us."""
    seen = Seen(**_before(layout.witness))
    queries, outside = _listen(None), _listen(link.OUTSIDE)
    write_private(layout.witness, json.dumps(seen.document(), indent=2) + "\n")
    waiting = selectors.DefaultSelector()
    for each in (queries, outside):
        waiting.register(each, selectors.EVENT_READ)
    while True:
        known = len(seen.names) + len(seen.sent)
        for key, _ in waiting.select():
            packet, (_, kind, *_) = queries.recvfrom(4096) if key.fileobj is queries else outside.recvfrom(4096)
            if key.fileobj is queries:
                name = queried(packet)
                seen.names |= {name} if name else set()
            elif kind == _IP and packet[16:19] != _OF_THE_WIRE:
                seen.sent.add(describe(packet))
        if len(seen.names) + len(seen.sent) > known:
            write_private(layout.witness, json.dumps(seen.document(), indent=2) + "\n")


def _before(file: Path) -> dict[str, set[str]]:
    """What was seen before the lab's power was cut."""
    told = json.loads(file.read_text()) if file.exists() else {"site": [], "outside": [], "sent": []}
    return {"names": {*told["site"], *told["outside"]}, "sent": set(told["sent"])}


def main() -> None:
    """Watch."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--state", required=True)
    watch(Layout.of(parser.parse_args().state))


if __name__ == "__main__":
    main()
