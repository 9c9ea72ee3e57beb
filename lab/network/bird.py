"""The facility's router: BIRD, as Metal's two top-of-rack routers, in the lab's network namespace.

It is passive, one protocol per session and router address: machines call, from their private address, over several
hops, with the password of their project. What a machine announces is accepted if it lies in a block that its project
reserved, at most ten prefixes (an eleventh ends the session, which may come back), and is installed into the kernel's
table; announced by several machines, over all of them.

Here a session is held for 3 s, the shortest that BGP has, so that the loss of a machine shows within 5 s: the lower of
both sides' times counts. Metal does not publish its routers' timers (inferred: the 90 s that are usual).

TCP's MD5 signatures (RFC 2385) take CONFIG_TCP_MD5SIG, and no privilege: they work in unprivileged namespaces too.
Where the kernel lacks them sessions go without, and the lab's facts say so.
"""

from __future__ import annotations

import shutil
import socket
import struct
from pathlib import Path
from uuid import UUID

from lab.layout import Layout, write_private
from lab.network import plan
from lab.network.bgp import Peer, Routes

CONFIGURATION = "bird.conf"
CONTROL = "bird.ctl"
"""The control socket, in the directory that BIRD runs in: the path of a state directory may be too long for one."""
TABLE = "master4"
DEFAULT_ROUTE = "default_route"
HOLD_SECONDS, KEEPALIVE_SECONDS = 3, 1

_TCP_MD5SIG = 14  # linux/tcp.h
_HEAD = f"""\
log stderr all;
router id {plan.BGP_PEERS[0]};
# Where next hops are looked up: not among what machines announce.
ipv4 table facility4;
protocol device {{ }}
protocol direct {{
  ipv4 {{ table facility4; }};
}}
protocol kernel {{
  merge paths yes;
  ipv4 {{ import none; export where net != 0.0.0.0/0; }};
}}
protocol static {DEFAULT_ROUTE} {{
  ipv4;
  route 0.0.0.0/0 unreachable;
}}
template bgp machine {{
  local as {plan.BGP_ASN};
  multihop;
  passive yes;
  strict bind yes;
  hold time {HOLD_SECONDS};
  keepalive time {KEEPALIVE_SECONDS};
  error wait time 1, 2;
}}
"""


def program() -> str | None:
    """BIRD's daemon, if it is installed; sbin is not on everybody's PATH."""
    return shutil.which("bird") or shutil.which("bird", path="/usr/sbin:/usr/local/sbin")


def signatures_work() -> bool:
    """Whether this kernel signs TCP segments with MD5."""
    address = struct.pack("=HH4s120x", socket.AF_INET, 0, socket.inet_aton("127.0.0.1"))
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as sock:
        try:
            sock.setsockopt(socket.IPPROTO_TCP, _TCP_MD5SIG, address + struct.pack("=BBHi80s", 0, 0, 1, 0, b"x"))
        except OSError:
            return False
    return True


def directory(layout: Layout) -> Path:
    """The directory of BIRD's configuration and control socket."""
    return layout.state / "bgp"


def prepare(layout: Layout) -> None:
    """Write the configuration of a router without peers; the Metal API tells it of them."""
    directory(layout).mkdir(exist_ok=True, mode=0o700)
    (directory(layout) / CONTROL).unlink(missing_ok=True)
    write_private(directory(layout) / CONFIGURATION, render(Routes(), md5=True))


def render(routes: Routes, *, md5: bool) -> str:
    """BIRD's configuration; without `md5` passwords are left out."""
    sessions = [
        _session(peer, number, local, md5=md5)
        for peer in routes.peers
        for number, local in enumerate(plan.BGP_PEERS, start=1)
    ]
    return _HEAD + "".join(sessions)


def protocol(session: str, number: int) -> str:
    """The name of one router's protocol of a session."""
    return f"s{session.replace('-', '')}_{number}"


def session(protocol_name: str) -> str | None:
    """The session whose protocol this is, None if it is another protocol."""
    name, _, number = protocol_name.rpartition("_")
    if not (name.startswith("s") and len(name) == 33 and number.isdecimal()):
        return None
    return str(UUID(name[1:]))


def _session(peer: Peer, number: int, local: str, *, md5: bool) -> str:
    """One router's session with a machine.

    BIRD lets no two protocols have the same neighbor and port. The port is where it would call, which it never does:
    each router has one of its own.
    """
    password = f'  password "{peer.password}";\n' if md5 and peer.password else ""
    reserved = ", ".join(f"{prefix}+" for prefix in peer.prefixes)
    accepted = f"where net ~ [ {reserved} ]" if reserved else "none"
    offered = f'where proto = "{DEFAULT_ROUTE}"' if peer.default_route else "none"
    return f"""\
protocol bgp {protocol(peer.name, number)} from machine {{
  local {local};
  neighbor {peer.address} port {178 + number} as {peer.asn};
{password}  ipv4 {{
    igp table facility4;
    import table yes;
    import {accepted};
    import limit {plan.BGP_MAX_PREFIX} action restart;
    export {offered};
  }};
}}
"""
