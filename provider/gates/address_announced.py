"""address-announced: the machines that are to serve an address do so.

With BGP each node must have the address and a session that is up: whoever it is then routed to is the routers' choice,
and losing one machine loses nothing. With ARP one node has the address at a time.
"""

from __future__ import annotations

import asyncio

from provider.fields import Reader
from provider.gates import Check, Node, Observation, Spec, read_access
from provider.gates.ssh import NotYet, WrongHostKey, run
from provider.resource import Context

_BGP_PORT = 179
_ESTABLISHED = "01"


def open_check(context: Context, spec: Spec, old: Spec | None) -> Check | None:
    """Nodes that had this address before have passed."""
    reader = Reader(spec, "spec")
    access = read_access(reader, required=True)
    reader.raise_problems()
    passed = set[Node]()
    if old is not None and all(old.get(key) == spec[key] for key in ("address", "mode")):
        passed = set(read_access(Reader(old, "spec"), required=True).nodes)
    pending = [node for node in access.nodes if node not in passed]
    return AddressAnnounced(spec, pending) if pending else None


class AddressAnnounced:
    """See `Check`."""

    def __init__(self, spec: Spec, pending: list[Node]) -> None:
        self._access = read_access(Reader(spec, "spec"), required=True)
        self._address, self._mode = str(spec["address"]), str(spec["mode"])
        self._pending = pending
        self._announcing: list[str] = []

    async def look(self, elapsed: float) -> Observation:
        seen = await asyncio.gather(*(self._ask(node) for node in self._pending))
        missing = {node.name: why for node, why in zip(self._pending, seen, strict=True) if why}
        self._announcing += [node.name for node in self._pending if node.name not in missing]
        self._pending = [node for node in self._pending if node.name in missing]
        if missing and not (self._mode == "arp" and self._announcing):
            text = "; ".join(f"{name} ({why})" for name, why in missing.items())
            return Observation(passed=False, text=text, waiting=tuple(missing))
        return Observation(passed=True, text=f"{self._address} is announced by {', '.join(self._announcing)}")

    async def _ask(self, node: Node) -> str | None:
        """Why the node does not announce yet."""
        command = f"ip -4 -o address show to {self._address}/32 && cat /proc/net/tcp"
        try:
            told = await run(node, self._access, command)
        except (NotYet, WrongHostKey) as error:
            return str(error)
        return not_announced(told, self._address, self._mode)


def not_announced(told: str, address: str, mode: str) -> str | None:
    """What is missing in a node's addresses (`ip -o address`) and TCP connections (`/proc/net/tcp`); None: nothing."""
    if f" {address}/32 " not in told:
        return f"it does not have {address}"
    if mode == "bgp" and not any(_is_bgp(line) for line in told.splitlines()):
        return "no BGP session is up"
    return None


def _is_bgp(line: str) -> bool:
    """Whether a line of /proc/net/tcp is an established connection with BGP's port at either end."""
    fields = line.split()
    if len(fields) < 4 or fields[3] != _ESTABLISHED:
        return False
    ports = [place.partition(":")[2] for place in fields[1:3]]
    return f"{_BGP_PORT:04X}" in ports
