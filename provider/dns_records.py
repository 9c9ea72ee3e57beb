"""DnsRecords: values in DNS record sets of one zone.

Ownership is by value: other values of a set, of other resources or people, are never touched.

Life cycle: create refuses, before anything is changed, sets that hold values nobody announced (`alongside`); then adds,
and waits until the server answers with the values. update adds and removes what differs, no more. read tells which of
our values are really there, so that the next up adds the missing ones; of an `ephemeral` resource missing values are
still ours. delete removes our values; finding none is fine.
Killed after the update, before the state is written: the next create finds exactly our values, adds them again, which
changes nothing, and goes on. Killed within an update: the server applies a message wholly or not at all; the next run
compares with the old state and repeats, which changes nothing either.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from provider.backoff import Backoff
from provider.dns_service import DnsService, RecordSet, Rfc2136Service, canonical, values_of
from provider.errors import DnsConflict, InitFailed, RemoteError
from provider.fields import HOST_NAME, Problem, Reader
from provider.resource import Changes, Context, Kind, Made, ResourceType, Values
from provider.values import has_unknown

TYPES = ("A", "AAAA", "PTR", "TXT", "CNAME")


@dataclass(frozen=True, kw_only=True)
class Spec:
    """Typed inputs."""

    zone: str
    ttl: int
    records: tuple[RecordSet, ...]
    alongside: Mapping[tuple[str, str], frozenset[str]]
    ephemeral: bool


class DnsRecords(ResourceType):
    """Values in DNS record sets of one zone."""

    token = "metal-ipi:index:DnsRecords"  # noqa: S105 - a type token

    def check(self, inputs: Values) -> list[Problem]:
        return _parse(inputs)[1].problems

    def diff(self, context: Context, old: Values, new: Values) -> Changes:
        changes: dict[str, Kind] = {}
        for key in ("zone", "ttl"):
            if old.get(key) != new.get(key):
                changes[key] = "update"
        if bool(old.get("ephemeral")) != bool(new.get("ephemeral")):
            changes["ephemeral"] = "update"
        changes.update(_record_changes(old.get("records") or [], new.get("records")))
        return Changes(changes=changes, replaces=frozenset({"zone"}) & changes.keys())

    def preview(self, context: Context, old: Values | None, new: Values) -> Values:
        return {}

    async def create(self, context: Context, inputs: Values) -> Made:
        spec = _spec(inputs)
        service = _service(context, spec.zone)
        if not spec.ephemeral:
            await _refuse_conflicts(service, spec, spec.records)
        resource_id = f"{spec.zone}/{context.name}"
        await _apply(context, service, spec, add=spec.records, remove=(), resource_id=resource_id)
        return Made(id=resource_id, outputs={})

    async def update(self, context: Context, resource_id: str, old: Values, new: Values) -> Values:
        spec, before = _spec(new), {record.key: record for record in records_of(old.get("records") or [])}
        service = _service(context, spec.zone)
        fresh = [record for record in spec.records if record.key not in before]
        if not spec.ephemeral:
            await _refuse_conflicts(service, spec, fresh)
        wanted = {record.key: record for record in spec.records}
        remove = [_minus(record, wanted.get(key)) for key, record in before.items()]
        all_again = int(old.get("ttl") or 0) != spec.ttl
        add = [record if all_again else _minus(record, before.get(record.key)) for record in spec.records]
        await _apply(context, service, spec, add=add, remove=remove, resource_id=resource_id)
        return {}

    async def read(self, context: Context, resource_id: str, old: Values) -> Values | None:
        if old.get("ephemeral"):
            return {}
        records = records_of(old["records"])
        service = _service(context, old["zone"])
        there = await _retried(context, service, [record.key for record in records])
        seen = [_wire(record, record.values & there[record.key]) for record in records]
        present = [record for record in seen if record["values"]]
        complete = all(record.values <= there[record.key] for record in records)
        return {} if complete else {"records": present}

    async def delete(self, context: Context, resource_id: str, old: Values) -> None:
        records = records_of(old.get("records") or [])
        await withdraw(context, old["zone"], records)


async def withdraw(context: Context, zone: str, records: Sequence[RecordSet]) -> None:
    """Removes values of ours. Only what the server still has is asked for: a zone that is gone needs no update."""
    service = _service(context, zone)
    there = await _retried(context, service, [record.key for record in records])
    present = [_with(record, record.values & there[record.key]) for record in records]
    await _change(context, service, add=(), remove=[record for record in present if record.values], ttl=0)


def _service(context: Context, zone: str) -> DnsService:
    return Rfc2136Service(context.settings.need_dns(), zone)


def _parse(inputs: Values) -> tuple[Spec, Reader]:
    reader = Reader(inputs)
    reader.only("zone", "ttl", "records", "ephemeral")
    zone = reader.text("zone", pattern=HOST_NAME, what="a zone name without trailing dot").lower()
    records: list[RecordSet] = []
    alongside: dict[tuple[str, str], frozenset[str]] = {}
    for member in reader.sections("records"):
        record = parse_record(member, zone, also=("alongside",))
        if record.name and any(record.key == other.key for other in records):
            member.fail("name", f"{record.name} {record.type} is given twice; put all values into one record")
        records.append(record)
        others = member.texts("alongside", required=False)
        alongside[record.key] = frozenset(canonical(record.type, value) for value in others)
    ttl = int(reader.number("ttl", minimum=0, maximum=604800))
    spec = Spec(zone=zone, ttl=ttl, records=tuple(records), alongside=alongside, ephemeral=reader.boolean("ephemeral"))
    return spec, reader


def parse_record(reader: Reader, zone: str, also: tuple[str, ...] = ()) -> RecordSet:
    """One record; its values must fit its type, its name must be in the zone."""
    reader.only("name", "type", "values", *also)
    name = reader.text("name", pattern=HOST_NAME, what="a full DNS name without trailing dot").lower()
    if name and zone and not reader.unknown("type") and name != zone and not name.endswith("." + zone):
        reader.fail("name", f"{name} is not in zone {zone}")
    type_ = reader.text("type", pattern="|".join(TYPES), what="one of " + ", ".join(TYPES))
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


def _spec(inputs: Values) -> Spec:
    spec, reader = _parse(inputs)
    reader.raise_problems()
    return spec


def records_of(values: Sequence[Mapping[str, Any]]) -> list[RecordSet]:
    """Records of a state, which were checked when they went in."""
    return [
        RecordSet(
            name=str(value["name"]).lower(),
            type=str(value["type"]),
            values=frozenset(canonical(str(value["type"]), str(item)) for item in value["values"]),
        )
        for value in values
    ]


def _with(record: RecordSet, values: frozenset[str]) -> RecordSet:
    return RecordSet(name=record.name, type=record.type, values=values)


def _minus(record: RecordSet, other: RecordSet | None) -> RecordSet:
    return record if other is None else _with(record, record.values - other.values)


def _wire(record: RecordSet, values: frozenset[str]) -> dict[str, Any]:
    return {"name": record.name, "type": record.type, "values": sorted(values)}


def _record_changes(old: Sequence[Any], new: Any) -> dict[str, Kind]:
    """Changes per record, told by its place: in the new list, or in the old one when it is no longer there."""
    if not isinstance(new, list):
        return {"records": "update"}
    before = {_identity(record): record for record in old}
    changes: dict[str, Kind] = {}
    for index, record in enumerate(new):
        known = None if has_unknown(record) else before.get(_identity(record))
        if known is not None:
            if records_of([known]) != records_of([record]):
                changes[f"records[{index}].values"] = "update"
        elif has_unknown(record) and _identity(record) in before:
            changes[f"records[{index}].values"] = "update"
        else:
            changes[f"records[{index}]"] = "add"
    kept = {_identity(record) for record in new}
    changes.update({f"records[{index}]": "delete" for index, record in enumerate(old) if _identity(record) not in kept})
    return changes


def _identity(record: Any) -> tuple[str, str]:
    known = isinstance(record, Mapping)
    return (str(record.get("name")).lower(), str(record.get("type"))) if known else ("", "")


async def _refuse_conflicts(service: DnsService, spec: Spec, records: Sequence[RecordSet]) -> None:
    """Values of others in a set we are about to own are an error: somebody else's cluster may answer there."""
    there = await values_of(service, [record.key for record in records])
    foreign = {
        record: strange
        for record in records
        if (strange := there[record.key] - record.values - spec.alongside.get(record.key, frozenset()))
    }
    if foreign:
        shown = "; ".join(f"{record.name} {record.type} is {', '.join(sorted(v))}" for record, v in foreign.items())
        raise DnsConflict(
            f"zone {spec.zone} already has values which are not ours, and nothing was changed: {shown}. "
            "Remove them, or choose another cluster name or domain"
        )


async def _apply(
    context: Context,
    service: DnsService,
    spec: Spec,
    *,
    add: Sequence[RecordSet],
    remove: Sequence[RecordSet],
    resource_id: str,
) -> None:
    """Changes the zone and waits for the answers. What fails after the change keeps its state."""
    await _change(context, service, add=add, remove=[record for record in remove if record.values], ttl=spec.ttl)
    timeout = context.settings.need_dns().propagation_timeout
    backoff, last = Backoff(timeout=timeout, first=0.1, longest=2.0), "nothing"
    while True:
        try:
            there = await values_of(service, [record.key for record in spec.records])
            missing = [record for record in spec.records if not record.values <= there[record.key]]
            if not missing:
                return
            last = ", ".join(f"{record.name} {record.type}" for record in missing)
        except RemoteError as error:
            last = str(error)
        if backoff.over:
            outputs = {"records": [_wire(record, record.values) for record in spec.records]}
            message = f"zone {spec.zone} does not answer with what was added within {timeout:g} s; missing: {last}"
            raise InitFailed(message, resource_id, outputs)
        await context.status.live(f"waiting for {last}, {backoff.elapsed:.0f} s")
        await backoff.pause()


async def _change(
    context: Context, service: DnsService, *, add: Sequence[RecordSet], remove: Sequence[RecordSet], ttl: int
) -> None:
    """Repeats a change while the server does not answer: adding or removing a value twice changes nothing."""
    backoff = Backoff(timeout=context.settings.need_dns().propagation_timeout)
    while True:
        try:
            return await service.change(add, remove, ttl)
        except RemoteError as error:
            if backoff.over or not error.passing:
                raise
            await context.status.live(f"{error}; trying again")
        await backoff.pause()


async def _retried(
    context: Context, service: DnsService, keys: Sequence[tuple[str, str]]
) -> dict[tuple[str, str], frozenset[str]]:
    backoff = Backoff(timeout=context.settings.need_dns().propagation_timeout)
    while True:
        try:
            return await values_of(service, keys)
        except RemoteError as error:
            if backoff.over or not error.passing:
                raise
            await context.status.live(f"{error}; trying again")
        await backoff.pause()
