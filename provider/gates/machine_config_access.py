"""machine-config-access: the machine config servers answer only the cluster's machines.

The allowed networks are sent to each node over SSH; then a connection to its port is tried from here. The host that
runs this is usually outside of the cluster's networks, so the blocked connection proves that the filter works. If the
host is inside (an allowed network contains the address from which the node sees it), its connection is allowed, and the
observation says that nothing was proven.
"""

from __future__ import annotations

import asyncio
import ipaddress
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from metal_ipi.provider.backoff import Backoff
from metal_ipi.provider.errors import ProviderError
from metal_ipi.provider.gates import Check, Observation, Spec, waiting_for
from metal_ipi.provider.gates.ssh import NotYet, WrongHostKey, answers, run
from metal_ipi.provider.platforms.registry import is_gone
from metal_ipi.provider.resource import Context
from metal_ipi.provider.resources.gate_kinds import GateLogs, GateNode

PORT = 22623
_PARTS = "/etc/metal-ipi/machine-config-networks.d"
"""The directory in which HAND_OVER stores the lists of all parts."""
_CLUSTER = "cluster"
"""The name of the part with the list of the cluster's own stack."""
HAND_OVER = r"""set -e
kept=/etc/metal-ipi/machine-config-networks
exec 9>/run/metal-ipi-machine-config.lock
flock 9
if [ ! -d "$kept.d" ]; then
    mkdir -p "$kept.d"
    [ ! -e "$kept" ] || cp "$kept" "$kept.d/cluster"
fi
cat >"$kept.d/.$2"
if [ -s "$kept.d/.$2" ]; then mv "$kept.d/.$2" "$kept.d/$2"; else rm -f "$kept.d/.$2" "$kept.d/$2"; fi
cat "$kept.d"/* | sort -u >"$kept.all"
"$1" set <"$kept.all"
rm "$kept.all"
printf "%s\n" "$SSH_CONNECTION"
"""
"""Stores the networks of one part, from standard input (empty: the part is removed), and passes the networks of all
parts to the node's program. A node from the time before there were parts has only the cluster's list."""
_WITHDRAWAL_SECONDS = 30.0


def open_check(context: Context, spec: Spec, old: Spec | None) -> Check | None:
    """Nodes that have these networks already are skipped, and so are nodes that are gone (the bootstrap machine)."""
    same = old is not None and old.get("networks") == spec["networks"] and old.get("program") == spec["program"]
    known = set(GateLogs.of_state(old).nodes) if old else set[GateNode]()
    access = GateLogs.of_state(spec)
    pending = [node for node in access.nodes if not (same and node in known)]
    return MachineConfigAccess(context, spec, access, pending, known) if pending else None


@dataclass(frozen=True)
class Loaded:
    """What a node did with the networks."""

    filtered: bool
    """False if it has no packet filter."""
    text: str
    source: str
    """The address from which the node sees us."""


class MachineConfigAccess(Check):
    """See `Check`."""

    def __init__(
        self, context: Context, spec: Spec, access: GateLogs, pending: Sequence[GateNode], known: set[GateNode]
    ) -> None:
        self._context, self._access, self._known = context, access, known
        self._spec = spec
        self._networks = [str(network) for network in spec["networks"]]
        self._addresses = [str(address) for address in spec.get("addresses") or ()]
        self._pending = list(pending)
        self._loaded: dict[GateNode, Loaded] = {}

    async def look(self, elapsed: float) -> Observation:
        seen = await asyncio.gather(*(self._hand_over(node) for node in self._pending))
        refused: dict[str, str] = {}
        for node, answer in zip(self._pending, seen, strict=True):
            if isinstance(answer, Loaded):
                self._loaded[node] = answer
            elif answer is not None:
                refused[node.name] = answer
        self._pending = [node for node in self._pending if node.name in refused]
        if refused:
            return waiting_for(refused)
        return await self._prove()

    async def _hand_over(self, node: GateNode) -> Loaded | str | None:
        """What the node did, or why it did not; None if its machine does not exist any more."""
        try:
            if node in self._known and await is_gone(node.machine_id, self._context.settings):
                return None
            text = await _hand_over(node, self._access, self._spec, self._networks)
        except (NotYet, WrongHostKey, ProviderError) as error:
            return str(error)
        return parse(text)

    async def _prove(self) -> Observation:
        """Try the filtered ports from here."""
        unfiltered = [f"{node.name}: {it.text}" for node, it in self._loaded.items() if not it.filtered]
        filtered = {node: it for node, it in self._loaded.items() if it.filtered}
        inside = {it.source: network for it in filtered.values() if (network := within(it.source, self._networks))}
        notes = list(unfiltered)
        if inside:
            where = ", ".join(f"{source} is in {network}" for source, network in inside.items())
            notes.append(f"not tested, because this computer is allowed itself: {where}")
        elif filtered:
            targets = {node.name: node.address for node in filtered} | {item: item for item in self._addresses}
            open_ones = await asyncio.gather(*(answers(address, PORT) for address in targets.values()))
            reached = [name for name, is_open in zip(targets, open_ones, strict=True) if is_open]
            if reached:
                sources = ", ".join(sorted({it.source for it in filtered.values()}))
                text = f"port {PORT} of {', '.join(reached)} answers {sources}, which is in no allowed network"
                return Observation(passed=False, text=text, waiting=tuple(reached))
            notes.append(f"port {PORT} of {', '.join(targets)} does not answer this computer")
        return Observation(passed=True, text="; ".join(notes) or "the machines are gone")


async def _hand_over(node: GateNode, access: GateLogs, spec: Spec, networks: Sequence[str]) -> str:
    script = [
        shlex.quote(each) for each in (HAND_OVER, "hand-over", str(spec["program"]), spec.get("part") or _CLUSTER)
    ]
    command = " ".join(("sudo -n env", '"SSH_CONNECTION=$SSH_CONNECTION"', "sh -c", *script))
    return await run(node, access, command, "".join(f"{network}\n" for network in networks))


async def withdraw(context: Context, spec: Spec) -> None:
    """Make the nodes delete a pool's networks. A node that cannot be reached is reported, and does not block the pool's
    removal."""
    access = GateLogs.of_state(spec)

    async def of(node: GateNode) -> None:
        backoff, last = Backoff(timeout=_WITHDRAWAL_SECONDS, longest=5.0), ""
        while not backoff.over:
            try:
                if await is_gone(node.machine_id, context.settings):
                    return
                last = "" if isinstance(parse(await _hand_over(node, access, spec, ())), Loaded) else "no answer"
            except (NotYet, WrongHostKey, ProviderError) as error:
                last = str(error)
            if not last:
                return
            await backoff.pause()
        await context.status.warn(
            f"{node.name} still allows the machines of pool {spec['part']} to get configuration, because it could not "
            f"be changed: {last}. To remove them, run `cd {_PARTS} && rm {spec['part']} && cat * | {spec['program']} "
            "set` "
            "there, as root"
        )

    await asyncio.gather(*map(of, access.nodes))


def parse(text: str) -> Loaded | str:
    """Parse the output of the program and the shell; returns the reason if it did not work."""
    lines = text.splitlines()
    state, _, detail = lines[0].partition("\t") if lines else ("", "", "")
    if len(lines) != 2 or state not in ("loaded", "skipped"):
        return f"it answered '{text.strip()[-300:]}'"
    return Loaded(filtered=state == "loaded", text=detail, source=lines[1].partition(" ")[0])


def within(address: str, networks: Sequence[str]) -> str | None:
    """The first network that contains an address; None if there is none."""
    place = ipaddress.ip_address(address)
    for network in networks:
        if place in ipaddress.ip_network(network, strict=False):
            return network
    return None
