"""A client for BIRD's control socket.

A command is answered by lines with a code of four digits and a hyphen, the last one with a space instead; a line that
begins with a space has the code of the line above.
"""

from __future__ import annotations

import asyncio
import re
import socket
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from lab import facts
from lab.errors import NotRunning
from lab.layout import Layout, short_path, write_private
from lab.network import bird, plan
from lab.network.bgp import RouterError, Routes, Seen
from lab.supervision import holder

_SECONDS = 5.0
_START_SECONDS = 20.0
_FAILURE = 8000
"""Codes from here on say that a command failed."""
_ROUTE = re.compile(r"(?P<prefix>\S+)?\s+(?P<kind>\w+) \[(?P<name>\w+) ")
_VIA = re.compile(r"\s+via (?P<via>\S+) on ")


@dataclass(frozen=True, kw_only=True)
class Route:
    """A destination that the router knows a way to."""

    prefix: str
    via: tuple[str, ...]
    """The machines it leads over, empty while none of them can be reached."""
    protocols: tuple[str, ...]
    """Which of BIRD's protocols have it."""


class Bird:
    """The router as the Metal API sees it; see `lab.metal_api.routing.Router`."""

    def __init__(self, directory: Path, *, md5: bool) -> None:
        """`directory` is where BIRD runs; `md5` says whether its kernel signs TCP segments."""
        self._directory = directory
        self._md5 = md5
        self._peers: tuple[str, ...] = ()

    async def configure(self, routes: Routes) -> None:
        """Set the peers and routes. Waits for a router that is just starting."""
        write_private(self._directory / bird.CONFIGURATION, bird.render(routes, md5=self._md5))
        await asyncio.to_thread(ask, self._directory, ["configure"], patience=_START_SECONDS)
        self._peers = tuple(peer.name for peer in routes.peers)

    async def sessions(self) -> Mapping[str, Seen]:
        """What BIRD sees of its peers."""
        if not self._peers:
            return {}
        states, routes = await asyncio.to_thread(read, self._directory)
        return seen(self._peers, states, routes)


def read(directory: Path) -> tuple[dict[str, str], list[Route]]:
    """BIRD's protocols with their states, and its routes."""
    protocols, table = ask(directory, ["show protocols", f"show route table {bird.TABLE}"])
    return parse_protocols(protocols), parse_routes(table)


def document(layout: Layout) -> dict[str, Any] | None:
    """What the router of a running lab holds; None for a lab without one. Raises NotRunning and RouterError.

        {"sessions": {"<session id>": {"states": ["up", "up"], "learned": ["192.0.2.128/32"]}},
         "routes": [{"prefix": "192.0.2.128/32", "via": ["203.0.113.1"], "sessions": ["<session id>"]}]}

    `via` are the private addresses of the machines that announce it, and is empty while none can be reached.
    """
    if facts.require(layout).bgp is None:
        return None
    if holder(layout.lock) is None:
        raise NotRunning(f"no lab runs in {layout.state}: start it with `python -m lab up --state {layout.state}`")
    states, routes = read(bird.directory(layout))
    peers = sorted({session for name in states if (session := bird.session(name))})
    sessions = {
        peer: {"states": list(entry.states), "learned": list(entry.learned)}
        for peer, entry in seen(peers, states, routes).items()
    }

    def shown(route: Route) -> dict[str, Any]:
        announcing = {session for name in route.protocols if (session := bird.session(name))}
        return {"prefix": route.prefix, "via": list(route.via), "sessions": sorted(announcing)}

    return {"sessions": sessions, "routes": [shown(route) for route in routes]}


def seen(peers: Iterable[str], states: Mapping[str, str], routes: Sequence[Route]) -> dict[str, Seen]:
    """The same, session by session."""
    found: dict[str, Seen] = {}
    for peer in peers:
        names = [bird.protocol(peer, number) for number in range(1, len(plan.BGP_PEERS) + 1)]
        found[peer] = Seen(
            states=tuple("up" if states.get(name) == "up" else "down" for name in names),
            learned=tuple(route.prefix for route in routes if set(names) & set(route.protocols)),
        )
    return found


def parse_protocols(lines: Iterable[str]) -> dict[str, str]:
    """Name → state, of `show protocols`: columns name, protocol, table, state."""
    rows = [line.split() for line in lines]
    return {row[0]: row[3] for row in rows if len(row) > 3 and row[0] != "Name"}


def parse_routes(lines: Iterable[str]) -> list[Route]:
    """The routes of `show route`, without the default route that is only there to be offered."""
    ways: dict[str, list[str]] = {}
    protocols: dict[str, list[str]] = {}
    prefix = ""
    for line in lines:
        route, via = _ROUTE.match(line), _VIA.match(line)
        if via:
            ways[prefix].append(via["via"])
        elif route:
            prefix = route["prefix"] or prefix
            ways.setdefault(prefix, [])
            protocols.setdefault(prefix, []).append(route["name"])
    return [
        Route(prefix=prefix, via=tuple(sorted(set(ways[prefix]))), protocols=tuple(protocols[prefix]))
        for prefix in sorted(ways)
        if protocols[prefix] != [bird.DEFAULT_ROUTE]
    ]


def ask(directory: Path, commands: Sequence[str], *, patience: float = 0.0) -> list[list[str]]:
    """The answers to commands, line by line without codes; raises RouterError. `patience`: for one that is starting."""
    deadline = time.monotonic() + patience
    while True:
        try:
            with _connected(directory) as stream:
                _answer(stream.readline, "its greeting")
                answers: list[list[str]] = []
                for command in commands:
                    stream.write(f"{command}\n")
                    stream.flush()
                    answers.append(_answer(stream.readline, command))
                return answers
        except OSError as error:
            if time.monotonic() >= deadline:
                raise RouterError(f"BIRD does not answer in {directory}: {error}; see the log bgp.log") from error
            time.sleep(0.05)


@contextmanager
def _connected(directory: Path) -> Generator[TextIO, None, None]:
    with short_path(directory, bird.CONTROL) as path, socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(_SECONDS)
        sock.connect(path)
        with sock.makefile("rw") as stream:
            yield stream


def _answer(readline: Callable[[], str], command: str) -> list[str]:
    lines: list[str] = []
    while True:
        line = readline()
        if not line.endswith("\n"):
            raise ConnectionResetError(f"it hung up in its answer to `{command}`")
        if line[0] == "+":  # something that happened meanwhile
            continue
        if line[0] == " ":
            lines.append(line[1:].rstrip())
            continue
        lines.append(line[5:].rstrip())
        if int(line[:4]) >= _FAILURE:
            raise RouterError(f"BIRD refuses `{command}`: {lines[-1]}")
        if line[4] == " ":
            return lines
