"""`DnsRecords` and its inputs, for programs.

On the wire, records are a map from a label to a record, so that a preview shows each change with the record's label
(`records["api.lab.example.com A"].values`). The provider also accepts a list.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import pulumi
from pydantic import BeforeValidator, WrapValidator

from metal_ipi.provider.forms import HOST, NOT_EMPTY, Whole, ZoneName, between, form, one_of
from metal_ipi.provider.given import Given, GivenList, Local, default, pass_what_is_not_known
from metal_ipi.provider.inputs import Conflict, Inputs
from metal_ipi.provider.resources.base import Resource, computed

TYPES = ("A", "AAAA", "PTR", "TXT", "CNAME")
RecordName = Annotated[str, form(HOST, "a full DNS name without trailing dot")]


def _by_label(records: Any) -> Any:
    """Converts a list of records to a map with their numbers as labels."""
    return dict(enumerate(records)) if isinstance(records, list) else records


if TYPE_CHECKING:

    class _Labelled:
        """Programs pass a sequence, and the provider reads a map: labels exist on the wire only."""

        def __get__(self, instance: object, owner: Any) -> Any: ...
        def __set__(self, instance: object, value: Sequence[DnsRecordArgs]) -> None: ...


class DnsRecordArgs(Inputs):
    """Values that we own in one record set."""

    name: Given[RecordName]
    """Fully qualified, without trailing dot."""
    type: Given[Annotated[str, one_of(*TYPES)]]
    """A, AAAA, PTR, TXT or CNAME."""
    values: Annotated[GivenList[str], NOT_EMPTY]
    """Addresses, names (a trailing dot is optional) or text. Never empty."""
    label: Local[str | None] = None
    """Name of the record in previews; default: name and type. Required if the name is an output."""

    @classmethod
    def conflicts(cls, given: Mapping[str, Any]) -> Iterator[Conflict]:
        kind, values = given.get("type"), given.get("values")
        items: list[Any] = values if isinstance(values, list) else []
        for index, value in enumerate(items):
            if isinstance(kind, str) and isinstance(value, str) and (why := value_problem(kind, value)):
                yield ("values", index), why

    def to_label(self) -> str:
        named: tuple[Any, Any] = (self.name, self.type)
        if self.label is None and not all(isinstance(each, str) for each in named):
            raise ValueError("a DNS record whose name is an output needs a label")
        return self.label or f"{self.name} {self.type}"


class RemovalRecordArgs(Inputs):
    """DNS values to withdraw."""

    zone: Given[ZoneName]
    """The zone of the record."""
    name: Given[RecordName]
    """Fully qualified, without trailing dot."""
    type: Given[Annotated[str, one_of(*TYPES)]]
    """A, AAAA, PTR, TXT or CNAME."""
    values: Annotated[GivenList[str], NOT_EMPTY]
    """The values to withdraw."""

    @classmethod
    def conflicts(cls, given: Mapping[str, Any]) -> Iterator[Conflict]:
        yield from _outside(given, given.get("zone"))
        yield from DnsRecordArgs.conflicts(given)


if not TYPE_CHECKING:
    _Labelled = Annotated[
        dict[Any, Annotated[DnsRecordArgs, WrapValidator(pass_what_is_not_known)]], BeforeValidator(_by_label)
    ]


class DnsRecordsArgs(Inputs):
    """Arguments of `DnsRecords`: one resource per zone, not one per record."""

    zone: Given[ZoneName]
    """The zone of the records, fully qualified: `facility.test`. A change replaces."""
    ttl: Given[Annotated[Whole, between(0, 604800)]]
    """Time to live, in seconds."""
    records: _Labelled
    """The values to own; each pair of name and type only once. PTR records outside the zone are ignored: the zone of a
    reverse name is known only after the address."""
    domain: Given[Annotated[str, form(HOST, "a domain without trailing dot")] | None] = default()
    """Domain under which the ownership markers are written, `_metal-ipi.<domain>`; default: the zone."""
    beside: Given[Annotated[str, form(r"[^/,\"\s]+/[^/,\"\s]+", "`<project>/<stack>`")] | None] = default()
    """`<project>/<stack>` of the cluster, if these records belong to one of its pools. Record sets may then contain
    values of that stack and of its pools' stacks (`<stack>-...`) from the start. Default: values of other stacks are a
    conflict."""
    ephemeral: Given[bool] = default(False)
    """Whether a `Removal` withdraws the values within the same up: then missing values are no drift."""

    @classmethod
    def conflicts(cls, given: Mapping[str, Any]) -> Iterator[Conflict]:
        zone, domain, records = given.get("zone"), given.get("domain"), given.get("records")
        if isinstance(zone, str) and isinstance(domain, str) and not within(domain.lower(), zone.lower()):
            yield ("domain",), f"{domain.lower()} is not in zone {zone.lower()}"
        members = _by_label(records)
        seen: set[tuple[str, str]] = set()
        for label, record in members.items() if isinstance(members, Mapping) else ():
            if not isinstance(record, Mapping):
                continue
            for where, why in _outside(record, zone):
                yield ("records", label, *where), why
            name, kind = record.get("name"), record.get("type")
            if isinstance(name, str) and isinstance(kind, str):
                if (name.lower(), kind) in seen:
                    reason = f"{name.lower()} {kind} is given twice; put all values into one record"
                    yield ("records", label, "name"), reason
                seen.add((name.lower(), kind))

    def to_wire(self) -> dict[str, Any]:
        return {**super().to_wire(), "records": _labelled(self.records)}


class DnsRecords(Resource[DnsRecordsArgs]):
    """Values in DNS record sets of one zone. Owns values, not sets: other values of a set are left alone."""

    records: pulumi.Output[dict[str, dict[str, Any]]] = computed()
    """The owned values by label, {name, type, values}; after a refresh those that really exist."""


def _labelled(records: Sequence[DnsRecordArgs]) -> dict[str, Any]:
    labels = [record.to_label() for record in records]
    twice = sorted({label for label in labels if labels.count(label) > 1})
    if twice:
        raise ValueError(f"DNS records are given twice: {', '.join(twice)}; put all values of a name into one")
    return dict(zip(labels, (record.to_wire() for record in records), strict=True))


def within(name: str, zone: str) -> bool:
    """Whether a name is in a zone, or is the zone's own name."""
    return name == zone or name.endswith("." + zone)


def _outside(record: Mapping[str, Any], zone: Any) -> Iterator[Conflict]:
    """Reports a record that is not in its zone. PTR records are not checked."""
    name, kind = record.get("name"), record.get("type")
    if not (isinstance(name, str) and isinstance(kind, str) and isinstance(zone, str)) or kind == "PTR":
        return
    if not within(name.lower(), zone.lower()):
        yield ("name",), f"{name.lower()} is not in zone {zone.lower()}"


def value_problem(kind: str, value: str) -> str | None:
    """What is wrong with a value for a record of this type; None if it is valid."""
    if kind in ("A", "AAAA"):
        try:
            version = ipaddress.ip_address(value).version
        except ValueError:
            version = 0
        wanted = 4 if kind == "A" else 6
        return None if version == wanted else f"must be an IPv{wanted} address"
    if kind == "TXT":
        fits = len(value.encode()) <= 255 and '"' not in value
        return None if fits else "must be at most 255 bytes without quotation marks"
    return None
