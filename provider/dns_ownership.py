"""Who owns which DNS values: markers, TXT records that stand beside them (docs/adr/0010).

    _metal-ipi.lab.example.com TXT "heritage=metal-ipi,owner=metal-ipi/lab,resource=dns-api-records,holds=<8><8>..."

The owner is project and stack, so it is the same after the state was lost; the resource is the one that holds the
values; each value is held by a digest of eight characters of its name, type and text. A set that takes several
markers has several: a text has at most 255 bytes.
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
    """Who holds values."""

    stack: str
    """`<project>/<stack>`."""
    resource: str
    """The resource's name."""

    @classmethod
    def of(cls, urn: str) -> Owner:
        """The owner that a resource is: `urn:pulumi:<stack>::<project>::<type>::<name>`."""
        head, project, _, name = urn.split("::", 3)
        return cls(stack=f"{project}/{head.rpartition(':')[2]}", resource=name)


@dataclass(frozen=True, kw_only=True)
class Marker:
    """One marker that was found."""

    place: str
    """Its name."""
    text: str
    owner: Owner
    holds: frozenset[str]
    """Digests of values."""


def digest(key: Key, value: str) -> str:
    """What stands for a value in a marker."""
    text = f"{key[0]} {key[1]} {value}".encode()
    return base64.b32encode(hashlib.sha256(text).digest()).decode().lower()[:_DIGEST]


def digests(records: Iterable[RecordSet]) -> frozenset[str]:
    """What stands for all values of some sets."""
    return frozenset(digest(record.key, value) for record in records for value in record.values)


def place_of(domain: str) -> str:
    """Where markers of values at or below a domain stand."""
    return f"{LABEL}.{domain}"


def is_place(key: Key) -> bool:
    """Whether a set is one of markers."""
    return key[1] == "TXT" and key[0].startswith(LABEL + ".")


def places(names: Iterable[str], zone: str) -> frozenset[Key]:
    """Where markers of names may stand: beside each domain above them, up to the zone."""
    found = {(place_of(zone), "TXT")}
    for name in names:
        above = name
        while above not in ("", zone) and "." in above:
            above = above.partition(".")[2]
            found.add((place_of(above), "TXT"))
    return frozenset(key for key in found if key[0].endswith("." + zone))


def markers(found: Found) -> list[Marker]:
    """The markers among what was found; other texts are somebody else's, and no concern of ours."""
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
    """What all markers together say."""

    def __init__(self, found: Found) -> None:
        self.markers = markers(found)
        self._holders: dict[str, set[Owner]] = {}
        for marker in self.markers:
            for held in marker.holds:
                self._holders.setdefault(held, set()).add(marker.owner)

    def holders(self, key: Key, value: str) -> frozenset[Owner]:
        """Who says that a value is theirs."""
        return frozenset(self._holders.get(digest(key, value), ()))

    def held_by(self, owner: Owner) -> frozenset[str]:
        """All that one resource says it holds."""
        return frozenset().union(*(marker.holds for marker in self.markers if marker.owner == owner))

    def is_others(self, key: Key, value: str, stack: str) -> bool:
        """Whether a value is another stack's, and not this one's."""
        holders = self.holders(key, value)
        return bool(holders) and all(holder.stack != stack for holder in holders)

    def rewritten(self, owner: Owner, holds: frozenset[str], place: str) -> list[Change]:
        """The changes after which an owner's markers hold exactly this, at this place: additions, then removals."""
        wanted = {(place, text) for text in texts(owner, holds)}
        there = {(marker.place, marker.text) for marker in self.markers if marker.owner == owner}
        added = [Change(key=(name, "TXT"), value=text) for name, text in sorted(wanted)]
        removed = [Change(key=(name, "TXT"), value=text, remove=True) for name, text in sorted(there - wanted)]
        return [*added, *removed]

    def without(self, stack: str, gone: frozenset[str]) -> list[Change]:
        """The changes after which no marker of a stack holds any of these, whichever resource held them."""
        touched = {marker.owner: marker.place for marker in self.markers if marker.holds & gone}
        changes: list[Change] = []
        for owner, place in sorted(touched.items(), key=lambda each: each[0].resource):
            if owner.stack == stack:
                changes += self.rewritten(owner, self.held_by(owner) - gone, place)
        return changes


def texts(owner: Owner, holds: frozenset[str]) -> Sequence[str]:
    """The markers of one owner."""
    head = f"heritage=metal-ipi,owner={owner.stack},resource={owner.resource},holds="
    room = (_LONGEST - len(head.encode())) // _DIGEST
    if room < 1 or "," in owner.stack + owner.resource or '"' in head:
        raise InvalidInputs(
            f"stack {owner.stack} and resource {owner.resource} do not fit into a DNS text: shorten them"
        )
    ordered = sorted(holds)
    return [head + "".join(ordered[start : start + room]) for start in range(0, len(ordered), room)]
