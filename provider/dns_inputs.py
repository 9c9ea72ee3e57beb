"""The inputs of DnsRecords: parsed, compared, and written back.

Records come as a map from a label to a record, so that a preview tells each change by the record's label
(`records["api.lab.example.com A"].values`), or as a list, whose labels are name and type.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from provider.dns_services import RecordSet, canonical
from provider.fields import HOST_NAME, Reader
from provider.resource import Kind, Values
from provider.values import Unknown, has_unknown

TYPES = ("A", "AAAA", "PTR", "TXT", "CNAME")


@dataclass(frozen=True, kw_only=True)
class Spec:
    """Typed inputs."""

    zone: str
    domain: str
    """Beside which the markers stand."""
    ttl: int
    records: tuple[RecordSet, ...]
    """Those in the zone: reverse names are only known once addresses are, so others of type PTR are passed over."""
    ephemeral: bool


def parse(inputs: Values) -> tuple[Spec, Reader]:
    """The inputs, and a reader with every problem of theirs."""
    reader = Reader(inputs)
    reader.only("zone", "domain", "ttl", "records", "ephemeral")
    zone = reader.text("zone", pattern=HOST_NAME, what="a zone name without trailing dot").lower()
    domain = (reader.optional_text("domain", pattern=HOST_NAME, what="a domain without trailing dot") or zone).lower()
    if zone and not within(domain, zone):
        reader.fail("domain", f"{domain} is not in zone {zone}")
    records: list[RecordSet] = []
    for member in _members(reader):
        record = parse_record(member, zone)
        if record.name and any(record.key == other.key for other in records):
            member.fail("name", f"{record.name} {record.type} is given twice; put all values into one record")
        records.append(record)
    ttl = int(reader.number("ttl", minimum=0, maximum=604800))
    inside = tuple(record for record in records if within(record.name, zone))
    return Spec(zone=zone, domain=domain, ttl=ttl, records=inside, ephemeral=reader.boolean("ephemeral")), reader


def _members(reader: Reader) -> list[Reader]:
    records = reader.values.get("records")
    if not isinstance(records, Mapping):
        return reader.sections("records")
    members: list[Reader] = []
    for label, record in records.items():
        if isinstance(record, Mapping):
            members.append(Reader(record, path_of(str(label)), reader.problems))
        elif not isinstance(record, Unknown):
            reader.fail("records", f"must hold maps, but {label} is none")
    return members


def path_of(label: str) -> str:
    """The property path of a record."""
    return f'records["{label}"]'


def within(name: str, zone: str) -> bool:
    """Whether a name is a zone's own or below it."""
    return name == zone or name.endswith("." + zone)


def parse_record(reader: Reader, zone: str, also: tuple[str, ...] = ()) -> RecordSet:
    """One record; its values must fit its type, its name must be in the zone, unless it is a PTR record."""
    reader.only("name", "type", "values", *also)
    name = reader.text("name", pattern=HOST_NAME, what="a full DNS name without trailing dot").lower()
    type_ = reader.text("type", pattern="|".join(TYPES), what="one of " + ", ".join(TYPES))
    if name and zone and not reader.unknown("type") and type_ != "PTR" and not within(name, zone):
        reader.fail("name", f"{name} is not in zone {zone}")
    values = reader.texts("values")
    for index, value in enumerate(values):
        problem = _value_problem(type_, value)
        if problem:
            reader.fail(f"values[{index}]", problem)
    good = [value for value in values if not _value_problem(type_, value)]
    return RecordSet(name=name, type=type_, values=frozenset(canonical(type_, value) for value in good))


def _value_problem(type_: str, value: str) -> str | None:
    if type_ in ("A", "AAAA"):
        try:
            version = ipaddress.ip_address(value).version
        except ValueError:
            version = 0
        wanted = 4 if type_ == "A" else 6
        return None if version == wanted else f"must be an IPv{wanted} address"
    if type_ == "TXT":
        fits = len(value.encode()) <= 255 and '"' not in value
        return None if fits else "must be at most 255 bytes without quotation marks"
    return None


def records_of(values: Sequence[Mapping[str, Any]] | Mapping[str, Mapping[str, Any]]) -> list[RecordSet]:
    """Records of a state, which were checked when they went in."""
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
    """Sets in the shape that the inputs have: those of no values are left out."""
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
    """Changes per record, by its label."""
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
