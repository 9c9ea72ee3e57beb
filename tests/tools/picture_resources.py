"""Recorded resources to draw: of rehearsed previews, of states, and of a preview of changes, cut to what is drawn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pulumi.automation import EngineEvent

from tools.pictures import model
from tools.pictures.shapes import Topology

_GOLDEN = Path(__file__).resolve().parents[1] / "golden"
UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
SECRET = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "plaintext": "hunter2hunter2"}


def recorded(name: str) -> Topology:
    """The topology of a recording: `tests/golden/resources-<name>.json`."""
    rows = json.loads((_GOLDEN / f"resources-{name}.json").read_text())
    if "event" in rows[0]:
        return model.from_events(
            event(row.pop("urn"), row.pop("type"), row.pop("op"), row.pop("event"), **row) for row in rows
        )
    return model.from_state(rows)


def event(urn: str, type_: str, op: str, kind: str = "resOutputsEvent", **states: Any) -> EngineEvent:
    """One event of the engine about a resource; `old` and `new` hold parent, inputs and outputs."""
    whole = {when: {"urn": urn, "type": type_, **state} for when, state in states.items()}
    metadata = {"op": op, "urn": urn, "type": type_, **whole}
    return EngineEvent.from_json({"sequence": 1, "timestamp": 1, kind: {"metadata": metadata}})


def urn(type_: str, name: str) -> str:
    """The URN of a resource without parents."""
    return f"urn:pulumi:t::metal-ipi::{type_}::{name}"


def resource(type_: str, name: str, *, parent: str = "", outputs: Any = None, **inputs: Any) -> dict[str, Any]:
    """One resource of a state."""
    return {"urn": urn(type_, name), "type": type_, "parent": parent, "inputs": inputs, "outputs": outputs or {}}


def machines(count: int, *, role: str = "worker", prefix: str = "t", **values: Any) -> list[dict[str, Any]]:
    """Ordered machines of a role, in its pool."""
    pool = urn("metal-ipi:cluster:NodePool", "workers" if role == "worker" else role)
    names = [f"{prefix}-{role}-{number}" for number in range(count)]
    return [
        resource(
            "equinix-metal:index/device:Device",
            f"{name}-device",
            parent=pool,
            **{"hostname": name, "plan": "c3.medium.x86", "metro": "da", "accessPublicIpv4": f"198.51.100.{number}"},
            **values,
        )
        for number, name in enumerate(names)
    ]
