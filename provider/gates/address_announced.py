"""address-announced: the control plane serves an address, and the bootstrap machine no longer announces it.

First every node must be ready to serve it: with BGP it has the address and an established session; with ARP, where one
node has the address at a time, its kube-vip runs. Then the nodes in `from` are told to stop announcing, while they can
still tell their routers, or release the lease; otherwise others would need seconds to notice. With ARP, one node must
have taken over in the end.

OpenShift's bootstrap machine ends its API server itself, long before the machine is removed (bootkube.sh). By then it
has withdrawn the address; its program still accepts `stop`, and reports if it could not withdraw it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from metal_ipi.provider.errors import ProviderError
from metal_ipi.provider.gates import Check, Observation, Spec, waiting_for
from metal_ipi.provider.gates.ssh import NotYet, WrongHostKey, run
from metal_ipi.provider.platforms.registry import is_gone
from metal_ipi.provider.resource import Context
from metal_ipi.provider.resources.gate_kinds import GateLogs, GateNode

_RUNS = "kube-vip runs"
_BGP_PORT = 179
_ESTABLISHED = "01"


def open_check(context: Context, spec: Spec, old: Spec | None) -> Check | None:
    """Nodes that passed for the same address and mode are not checked again; nodes that stopped announcing have stopped
    for good."""
    same = old is not None and all(old.get(key) == spec[key] for key in ("address", "mode"))
    passed = {*_nodes(old, "nodes"), *_nodes(old, "from")} if same and old is not None else set[GateNode]()
    pending = [node for node in _nodes(spec, "nodes") if node not in passed]
    leaving = [node for node in _nodes(spec, "from") if node not in passed]
    return AddressAnnounced(context, spec, pending, leaving) if pending or leaving else None


def _nodes(spec: Spec, key: str) -> list[GateNode]:
    return [GateNode.of_state(value) for value in spec.get(key) or ()]


class AddressAnnounced(Check):
    """See `Check`."""

    def __init__(self, context: Context, spec: Spec, pending: list[GateNode], leaving: list[GateNode]) -> None:
        self._context = context
        self._access = GateLogs.of_state(spec)
        self._address, self._arp, self._program = str(spec["address"]), spec["mode"] == "arp", str(spec["program"])
        self._pending, self._leaving = pending, leaving
        self._announcing: list[str] = []

    async def look(self, elapsed: float) -> Observation:
        missing = await self._each(self._pending, self._ask)
        self._announcing += [node.name for node in self._pending if node.name not in missing]
        self._pending = [node for node in self._pending if node.name in missing]
        if missing:
            return waiting_for(missing)
        staying = await self._each(self._leaving, self._let_go)
        self._leaving = [node for node in self._leaving if node.name in staying]
        if staying:
            return waiting_for(staying)
        holders = self._announcing
        if self._arp:
            without = await self._each(self._access.nodes, self._ask_holder)
            holders = [node.name for node in self._access.nodes if node.name not in without]
            if not holders:
                return waiting_for(without)
        return Observation(passed=True, text=f"{self._address} is announced by {', '.join(holders) or 'all'}")

    async def _each(
        self, nodes: Sequence[GateNode], ask: Callable[[GateNode], Awaitable[str | None]]
    ) -> dict[str, str]:
        """Ask nodes; returns the reason for each node that is not ready."""

        async def one(node: GateNode) -> str | None:
            try:
                return await ask(node)
            except (NotYet, WrongHostKey, ProviderError) as error:
                return str(error)

        seen = await asyncio.gather(*(one(node) for node in nodes))
        return {node.name: why for node, why in zip(nodes, seen, strict=True) if why}

    async def _ask(self, node: GateNode) -> str | None:
        told = await self._tell(node, "status")
        if self._arp:
            return None if _RUNS in told.splitlines() else "its kube-vip does not run yet"
        return not_announced(told, self._address)

    async def _ask_holder(self, node: GateNode) -> str | None:
        told = await self._tell(node, "status")
        return None if has_address(told, self._address) else f"it does not have {self._address}"

    async def _let_go(self, node: GateNode) -> str | None:
        if await is_gone(node.machine_id, self._context.settings):
            return None
        await self._tell(node, "stop")
        return None

    async def _tell(self, node: GateNode, word: str) -> str:
        return await run(node, self._access, f"sudo -n {self._program} {word}")


def has_address(told: str, address: str) -> bool:
    """Whether the output of `ip -o address` has an address."""
    return f" {address}/32 " in told


def not_announced(told: str, address: str) -> str | None:
    """What is missing in a node's addresses (`ip -o address`) and TCP connections (`/proc/net/tcp`). None: nothing."""
    if not has_address(told, address):
        return f"it does not have {address}"
    return None if any(_is_bgp(line) for line in told.splitlines()) else "no BGP session is up"


def _is_bgp(line: str) -> bool:
    """Whether a line of /proc/net/tcp is an established connection with BGP's port at either end."""
    fields = line.split()
    if len(fields) < 4 or fields[3] != _ESTABLISHED:
        return False
    ports = [place.partition(":")[2] for place in fields[1:3]]
    return f"{_BGP_PORT:04X}" in ports
