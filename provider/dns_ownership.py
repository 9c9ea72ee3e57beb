"""Which stack and resource own which DNS values: markers, TXT records beside the values (docs/adr/0010).

    _metal-ipi.lab.example.com TXT "heritage=metal-ipi,owner=metal-ipi/lab,resource=dns-api-records,holds=<8><8>..."

The owner is project and stack, so it is the same after the state was lost. The resource is the one that holds the
values. Each held value is represented by a digest of eight characters of its name, type and text. A text has at most
255 bytes, so a resource may have several markers.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from metal_ipi.provider.dns_services import Change, Found, Key, RecordSet
from metal_ipi.provider.errors import InvalidInputs

LABEL = "_metal-ipi"
_DIGEST = 8
_LONGEST = 255
_MARKER = re.compile(r"heritage=metal-ipi,owner=([^,]+),resource=([^,]+),holds=((?:[a-z2-7]{8})*)")


@dataclass(frozen=True, kw_only=True)
class Owner:
    """The owner of values."""

    stack: str
    """`<project>/<stack>`."""
    resource: str
    """The resource's name."""

    @classmethod
    def of(cls, urn: str) -> Owner:
        """The owner of a resource's URN: `urn:pulumi:<stack>::<project>::<type>::<name>`."""
        head, project, _, name = urn.split("::", 3)
        return cls(stack=f"{project}/{head.rpartition(':')[2]}", resource=name)


@dataclass(frozen=True, kw_only=True)
class Marker:
    """One marker that was found in DNS."""

    place: str
    """The marker's DNS name."""
    text: str
    owner: Owner
    holds: frozenset[str]
    """Digests of the values that it holds."""


def digest(key: Key, value: str) -> str:
    """The digest of a value, for markers."""
    text = f"{key[0]} {key[1]} {value}".encode()
    return base64.b32encode(hashlib.sha256(text).digest()).decode().lower()[:_DIGEST]


def digests(records: Iterable[RecordSet]) -> frozenset[str]:
    """The digests of all values of these sets."""
    return frozenset(digest(record.key, value) for record in records for value in record.values)


def place_of(domain: str) -> str:
    """The DNS name of markers for values at or below a domain."""
    return f"{LABEL}.{domain}"


def is_place(key: Key) -> bool:
    """Whether a record set consists of markers."""
    return key[1] == "TXT" and key[0].startswith(LABEL + ".")


def places(names: Iterable[str], zone: str) -> frozenset[Key]:
    """The record sets in which markers of these names may be: beside each domain above a name, up to the zone."""
    found = {(place_of(zone), "TXT")}
    for name in names:
        above = name
        while above not in ("", zone) and "." in above:
            above = above.partition(".")[2]
            found.add((place_of(above), "TXT"))
    return frozenset(key for key in found if key[0].endswith("." + zone))


def markers(found: Found) -> list[Marker]:
    """The markers among record sets; other TXT records are ignored."""
    result: list[Marker] = []
    for (name, kind), values in found.items():
        if not is_place((name, kind)):
            continue
        for text in values:
            match = _MARKER.fullmatch(text)
            if match:
                stack, resource, held = match.groups()
                holds = frozenset(held[start : start + _DIGEST] for start in range(0, len(held), _DIGEST))
                owner = Owner(stack=stack, resource=resource)
                result.append(Marker(place=name, text=text, owner=owner, holds=holds))
    return result


class Claims:
    """All markers together."""

    def __init__(self, found: Found) -> None:
        self.markers = markers(found)
        self._holders: dict[str, set[Owner]] = {}
        for marker in self.markers:
            for held in marker.holds:
                self._holders.setdefault(held, set()).add(marker.owner)

    def holders(self, key: Key, value: str) -> frozenset[Owner]:
        """The owners of a value."""
        return frozenset(self._holders.get(digest(key, value), ()))

    def held_by(self, owner: Owner) -> frozenset[str]:
        """The digests of all values that one resource holds."""
        return frozenset().union(*(marker.holds for marker in self.markers if marker.owner == owner))

    def is_others(self, key: Key, value: str, stack: str) -> bool:
        """Whether a value belongs to another stack, and not to this one."""
        holders = self.holders(key, value)
        return bool(holders) and all(holder.stack != stack for holder in holders)

    def rewritten(self, owner: Owner, holds: frozenset[str], place: str) -> list[Change]:
        """The changes that make an owner's markers at this place hold exactly these values: additions, then
        removals."""
        wanted = {(place, text) for text in texts(owner, holds)}
        there = {(marker.place, marker.text) for marker in self.markers if marker.owner == owner}
        added = [Change(key=(name, "TXT"), value=text) for name, text in sorted(wanted)]
        removed = [Change(key=(name, "TXT"), value=text, remove=True) for name, text in sorted(there - wanted)]
        return [*added, *removed]

    def without(self, stack: str, gone: frozenset[str]) -> list[Change]:
        """The changes that remove these values from all markers of a stack, for all its resources."""
        touched = {marker.owner: marker.place for marker in self.markers if marker.holds & gone}
        changes: list[Change] = []
        for owner, place in sorted(touched.items(), key=lambda each: each[0].resource):
            if owner.stack == stack:
                changes += self.rewritten(owner, self.held_by(owner) - gone, place)
        return changes


def texts(owner: Owner, holds: frozenset[str]) -> Sequence[str]:
    """The texts of an owner's markers. Raises InvalidInputs if the owner's name is too long for a TXT record."""
    head = f"heritage=metal-ipi,owner={owner.stack},resource={owner.resource},holds="
    room = (_LONGEST - len(head.encode())) // _DIGEST
    if room < 1 or "," in owner.stack + owner.resource or '"' in head:
        raise InvalidInputs(
            f"stack {owner.stack} and resource {owner.resource} are too long for a TXT record: shorten them"
        )
    ordered = sorted(holds)
    return [head + "".join(ordered[start : start + room]) for start in range(0, len(ordered), room)]
