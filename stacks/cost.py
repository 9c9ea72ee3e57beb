"""From settings to the stack's cost: the output `cost`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pulumi

from metal_ipi.components.machines.contract import LastingMachine
from metal_ipi.components.machines.node import Node
from metal_ipi.provider.types import MachineOrder, Orders
from metal_ipi.provider.types import cost as cost_of
from metal_ipi.stacks.model import Settings
from metal_ipi.stacks.platforms.registry import facility
from metal_ipi.stacks.sections.forms import PROJECT

_OFFLINE = "a rehearsal requests no prices: set cost.priceFile to a file with prices (docs/cost.md)"


class PriceFileError(ValueError):
    """The price file cannot be used; the message names the setting."""


def cost(
    settings: Settings, machines: Mapping[Node, LastingMachine], opts: pulumi.InvokeOptions
) -> pulumi.Output[dict[str, Any]] | None:
    """The stack's cost; existing machines count with the order that they were made with. None if nothing is ordered.

    Raises PriceFileError.
    """
    ordered = facility(settings).orders
    if ordered is None:
        return None
    prices = _prices(settings.cost.price_file)
    if prices is None and settings.rehearsal:
        return pulumi.Output.from_input({"unknown": ["everything"], "source": _OFFLINE, "lines": list[Any]()})
    there = {node.hostname: machine.ordered for node, machine in machines.items() if machine.ordered is not None}
    kept = pulumi.Output.all(**there).apply(lambda found: _as_kept(ordered, found).to_wire())
    return cost_of(kept, prices=prices, source=settings.cost.price_file, opts=opts)


def _as_kept(ordered: Orders, there: Mapping[str, MachineOrder]) -> Orders:
    """The orders, with existing machines as they were ordered, by host name. Machines of a role that differ are
    split."""
    found: dict[MachineOrder, list[str]] = {}
    for order in ordered.machines:
        for hostname in order.hostnames:
            alike = there.get(hostname, order).model_copy(update={"hostnames": ()})
            found.setdefault(alike, []).append(hostname)
    machines = tuple(order.model_copy(update={"hostnames": tuple(names)}) for order, names in found.items())
    return ordered.model_copy(update={"machines": machines})


def _prices(file: str | None) -> dict[str, Any] | None:
    if file is None:
        return None
    try:
        document: Any = json.loads((PROJECT / file).read_text())
    except OSError as error:
        raise PriceFileError(f"cost.priceFile '{file}' cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise PriceFileError(f"cost.priceFile '{file}' is not a JSON document: {error}") from None
    if not isinstance(document, dict) or not isinstance(document.get("plans"), list):
        raise PriceFileError(
            f"cost.priceFile '{file}' has no list `plans`: save the answer of GET /plans there (docs/cost.md)"
        )
    return document
