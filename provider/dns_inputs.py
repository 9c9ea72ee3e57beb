"""The inputs of DnsRecords: parsed, compared, and written back.

Records are a map from a label to a record, so that a preview shows each change by the record's label
(`records["api.lab.example.com A"].values`), or a list, for which the labels are name and type.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from metal_ipi.provider.dns_services import RecordSet, canonical
from metal_ipi.provider.resource import Kind, Values
from metal_ipi.provider.resources.dns_records import DnsRecordsArgs, within
from metal_ipi.provider.values import has_unknown


@dataclass(frozen=True, kw_only=True)
class Spec:
    """The inputs with their types."""

    zone: str
    domain: str
    """The domain beside which markers are written."""
    ttl: int
    records: tuple[RecordSet, ...]
    """The records in the zone. Others are left out: a list of PTR records may have records of other reverse zones."""
    ephemeral: bool
    beside: str | None
    """The stack `<project>/<name>` of the cluster, if these are a pool's records."""


def spec_of(inputs: Values) -> Spec:
    """Parse the inputs. Raises InvalidInputs."""
    given = DnsRecordsArgs.read(inputs)
    zone = given.zone.lower()
    records = tuple(record for record in records_of(inputs["records"]) if within(record.name, zone))
    domain = (given.domain or zone).lower()
    return Spec(
        zone=zone,
        domain=domain,
        ttl=given.ttl,
        records=records,
        ephemeral=given.ephemeral,
        beside=given.beside,
    )


def path_of(label: str) -> str:
    """The property path of a record."""
    return f'records["{label}"]'


def records_of(values: Sequence[Mapping[str, Any]] | Mapping[str, Mapping[str, Any]]) -> list[RecordSet]:
    """Parse records from a state or from checked inputs."""
    members: Iterable[Mapping[str, Any]] = values.values() if isinstance(values, Mapping) else values
    return [
        RecordSet(
            name=str(value["name"]).lower(),
            type=str(value["type"]),
            values=frozenset(canonical(str(value["type"]), str(item)) for item in value["values"]),
        )
        for value in members
    ]


def as_given(given: Any, records: Iterable[RecordSet]) -> Any:
    """Record sets in the form of the inputs `given`. Sets without values are left out."""
    wires = {
        record.key: {"name": record.name, "type": record.type, "values": sorted(record.values)}
        for record in records
        if record.values
    }
    if isinstance(given, Mapping):
        keys = {label: records_of([record])[0].key for label, record in given.items()}
        return {label: wires[key] for label, key in keys.items() if key in wires}
    return list(wires.values())


def record_changes(old: Any, new: Any) -> dict[str, Kind]:
    """Changes of each record, by the record's path."""
    if not isinstance(new, (list, Mapping)):
        return {"records": "update"}
    before, after = _labelled(old or []), _labelled(new)
    changes: dict[str, Kind] = {path_of(label): "delete" for label in before.keys() - after.keys()}
    for label, record in after.items():
        if label not in before:
            changes[path_of(label)] = "add"
        elif has_unknown(record):
            changes.update({f"{path_of(label)}.{key}": "update" for key in ("name", "values") if _open(record, key)})
        elif records_of([before[label]]) != records_of([record]):
            for key in ("name", "type", "values"):
                if _compared(before[label], key) != _compared(record, key):
                    changes[f"{path_of(label)}.{key}"] = "update"
    return changes


def _open(record: Any, key: str) -> bool:
    return not isinstance(record, Mapping) or has_unknown(record.get(key))


def _compared(record: Any, key: str) -> Any:
    (parsed,) = records_of([record])
    return getattr(parsed, key)


def _labelled(records: Any) -> dict[str, Any]:
    if isinstance(records, Mapping):
        return {str(label): record for label, record in records.items()}
    return {_label(record, index): record for index, record in enumerate(records)}


def _label(record: Any, index: int) -> str:
    if not isinstance(record, Mapping) or has_unknown([record.get("name"), record.get("type")]):
        return f"number {index}"
    return f"{str(record['name']).lower()} {record['type']}"
