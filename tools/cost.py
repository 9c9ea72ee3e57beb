"""Compares the costs before and after a change: counts the ordered things in the engine's events, with the prices from
the stack's output `cost`. Resources that an interrupted `up` has ordered count as costs before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from pulumi.automation import EngineEvent
from pulumi.automation.events import StepEventMetadata
from rich.table import Table

from tools.state import DEVICE, SPOT_REQUEST, STACK_TYPE

GATEWAY = "equinix-metal:index/gateway:Gateway"
ADDRESSES = "equinix-metal:index/reservedIpBlock:ReservedIpBlock"
_GOING = frozenset({"delete", "delete-replaced", "discard"})
_COMING = frozenset({"create", "create-replacement", "import"})

Thing = tuple[str, str]
"""Kind and plan, as in the lines of the output `cost`."""
Things = Mapping[Thing, int]
"""How many of each."""
Tree = Mapping[str, Any]
_OWN_SUBNET = 31
"""Prefix length of the public IPv4 subnet that every machine has."""


@dataclass
class Bill:
    """What is ordered before and after an operation, from the engine's events."""

    before: dict[str, Things] = field(default_factory=dict[str, Things])
    """URN to the paid things and their numbers."""
    after: dict[str, Things] = field(default_factory=dict[str, Things])
    prices: dict[Thing, float | None] = field(default_factory=dict[Thing, float | None])
    """Price of one in USD per hour; None: unknown."""
    output: Tree = field(default_factory=dict[str, Any])
    """The stack's output `cost`; empty if nothing is ordered."""

    def handle(self, event: EngineEvent) -> None:
        """Handles one event."""
        if event.resource_pre_event:
            self._note(event.resource_pre_event.metadata)
        elif event.res_outputs_event:
            metadata = event.res_outputs_event.metadata
            self._note(metadata)
            if metadata.type == STACK_TYPE:
                for state in (metadata.old, metadata.new):
                    self._price(cast("Tree", (state.outputs or {}).get("cost") or {}) if state else {})

    def _note(self, metadata: StepEventMetadata) -> None:
        op = str(getattr(metadata.op, "value", metadata.op))
        if metadata.old and op not in _COMING and (found := _ordered(metadata.type, metadata.old.inputs)):
            self.before[metadata.urn] = found
        if metadata.new and op not in _GOING and (found := _ordered(metadata.type, metadata.new.inputs)):
            self.after[metadata.urn] = found

    def _price(self, output: Tree) -> None:
        """Later prices replace earlier ones. Things that are no longer ordered keep their last price."""
        for line in cast("list[Tree]", output.get("lines") or []):
            self.prices[str(line["kind"]), str(line["plan"])] = line.get("each")
        self.output = output or self.output

    def line(self) -> str:
        """One line for people; empty if nothing is ordered."""
        if not self.output:
            return ""
        if not self.prices:
            return f"cost: not known: {self.output.get('source')}"
        before, after, hours = self._sum(self.before), self._sum(self.after), float(self.output["hoursPerMonth"])
        hour, month = _change(before, after, ".2f"), _change(before * hours, after * hours, ",.0f")
        there, going = self._unknown(self.after), self._unknown(self.before)
        more = f"; and {', '.join(sorted(there))}, whose price is not known" if there else ""
        gone = sorted(going - there)
        less = f"; less {', '.join(gone)}, whose price is not known" if gone else ""
        return f"cost: {hour} USD per hour, {month} per month{more}{less}"

    def _sum(self, known: Mapping[str, Things]) -> float:
        found = ((self.prices.get(thing), count) for things in known.values() for thing, count in things.items())
        return sum(price * count for price, count in found if price is not None)

    def _unknown(self, known: Mapping[str, Things]) -> Counter[str]:
        """The plans without a price, with the number of things of each."""
        found: Counter[str] = Counter()
        for things in known.values():
            found.update({thing[1]: count for thing, count in things.items() if self.prices.get(thing) is None})
        return found

    def table(self) -> Table | None:
        """The lines of the output as a table; None if there are none."""
        lines = cast("list[Tree]", self.output.get("lines") or [])
        if not lines:
            return None
        shown = Table(title=f"cost (prices: {self.output.get('source')})", title_justify="left", title_style="bold")
        for column in ("what", "plan", "USD per hour", ""):
            shown.add_column(column, justify="right" if column.startswith("USD") else "left")
        for line in lines:
            hourly = line.get("hourly")
            note = "; ".join(filter(None, [line.get("note"), None if line.get("lasting") else "while installing"]))
            shown.add_row(line["what"], line["plan"], "not known" if hourly is None else f"{hourly:.2f}", note)
        return shown


def _ordered(type_: str, inputs: Tree | None) -> Things:
    """The things that a resource orders and that are paid by the hour."""
    if inputs is None:
        return {}
    if type_ == DEVICE:
        kind = "reserved" if inputs.get("hardwareReservationId") else "machine"
        subnet = _subnet(cast("list[Tree]", inputs.get("ipAddresses") or []))
        return {(kind, str(inputs.get("plan"))): 1, **({("address", "public_ipv4"): subnet} if subnet else {})}
    if type_ == SPOT_REQUEST:
        plan = (inputs.get("instanceParameters") or {}).get("plan")
        return {("spot", str(plan)): int(inputs.get("devicesMax") or 1)}
    if type_ == ADDRESSES:
        return {("address", str(inputs.get("type") or "public_ipv4")): int(inputs.get("quantity") or 1)}
    if type_ == GATEWAY:
        return {("gateway", "gateway"): 1}
    return {}


def _subnet(addresses: list[Tree]) -> int:
    """Number of addresses of a machine's public IPv4 subnet, if it is larger than the default; else 0."""
    lengths = [int(each["cidr"]) for each in addresses if each.get("type") == "public_ipv4" and each.get("cidr")]
    return sum(2 ** (32 - length) for length in lengths if length < _OWN_SUBNET)


def _change(before: float, after: float, form: str) -> str:
    """`7.50`, or `7.50 → 9.00 (+1.50)` for a change from a value that is not zero."""
    now = f"{after:{form}}"
    return now if before in (0, after) else f"{before:{form}} → {now} ({after - before:+{form}})"
