"""A machine that speaks BGP, for tests: a network namespace with a BIRD of its own and an HTTP server.

Run inside a lab as `python -m tests.lab.network.machine '{"address": ..., "announce": [...], ...}'`. It says `ready`
once it is there, and is gone with everything when it is killed or its input ends.
"""

from __future__ import annotations

import ipaddress
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from lab.network import bird, namespaces
from lab.network.plan import BGP_ASN, BGP_PEERS

_HERE = Path("/proc/self/ns/net")


def ip(commands: str, *descriptors: int) -> None:
    """`ip -batch`; fails the machine."""
    subprocess.run(["ip", "-batch", "-"], input=commands, text=True, check=True, pass_fds=descriptors)


def plug_in(address: str, addresses: list[str]) -> None:
    """Move to a namespace of our own, linked to the facility like a machine with this private address.

    Simulated machines have all machine addresses in the facility's own namespace, so the way to ours goes into the
    table that is looked at first.
    """
    gateway = str(ipaddress.IPv4Address(address) - 1)
    link = f"machine{address.rsplit('.', 1)[-1]}"
    facility = os.open(_HERE, os.O_RDONLY)
    namespaces.unshare(namespaces.CLONE_NEWNET)
    ours = os.open(_HERE, os.O_RDONLY)
    ip(f"link add eth0 type veth peer name {link}\nlink set {link} netns /proc/self/fd/{facility}", facility)
    namespaces.enter(facility, "net")
    ip(f"address add {gateway}/31 dev {link}\nlink set {link} up\nroute add {address}/32 dev {link} table local")
    namespaces.enter(ours, "net")
    ip(f"link set lo up\naddress add {address}/31 dev eth0\nlink set eth0 up\nroute add default via {gateway}")
    ip("".join(f"address add {each}/32 dev lo\n" for each in addresses))


def configuration(address: str, asn: int, password: str | None, announce: list[str]) -> str:
    """Of the machine's BIRD."""
    secret = f'password "{password}";' if password else ""
    sessions = [
        f"protocol bgp tor{number} {{ local {address} as {asn}; neighbor {peer} as {BGP_ASN}; multihop; {secret} "
        "connect delay time 1; connect retry time 1; error wait time 1, 1; "
        "ipv4 { import none; export all; next hop self; }; }\n"
        for number, peer in enumerate(BGP_PEERS, start=1)
    ]
    routes = "".join(f"route {prefix} blackhole; " for prefix in announce)
    return (
        f"log stderr all;\nrouter id {address};\nprotocol device {{ }}\nprotocol static {{ ipv4; {routes}}}\n"
        + "".join(sessions)
    )


def serve(address: str, body: str) -> None:
    """Answer every request on `address` with who we are."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, format: str, *args: Any) -> None:
            """Quiet."""

    server = ThreadingHTTPServer((address, 80), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()


def main() -> None:
    """Be the machine until our input ends."""
    wanted: dict[str, Any] = json.loads(sys.argv[1])
    address, announce = wanted["address"], wanted["announce"]
    single = [prefix.removesuffix("/32") for prefix in announce if prefix.endswith("/32")]
    plug_in(address, single)
    for each in single:
        serve(each, socket.gethostname() if wanted.get("body") is None else wanted["body"])
    with tempfile.TemporaryDirectory() as directory:
        conf = Path(directory, "bird.conf")
        conf.write_text(configuration(address, wanted["asn"], wanted["password"], announce))
        command = [bird.program() or "bird", "-f", "-c", str(conf), "-s", f"{directory}/bird.ctl"]
        with subprocess.Popen(command, preexec_fn=namespaces.die_with_parent) as router:  # noqa: PLW1509
            print("ready", flush=True)
            sys.stdin.read()
            router.terminate()


if __name__ == "__main__":
    main()
