"""The resources that were created for a cluster's program: one entry each, with the same URN as in Pulumi's state."""

from __future__ import annotations

import base64
import json
import lzma
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

Values = dict[str, Any]
_LEAST = 4096
"""The smallest dictionary of LZMA2, bytes."""


class StateError(ValueError):
    """An entry of the install state cannot be read."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A created resource. It may contain secrets."""

    urn: str
    id: str
    """The id; empty if the creation was started but its result is unknown."""
    inputs: Values
    """Its inputs, by their names on the wire."""
    outputs: Values
    """Inputs and computed values, as far as its type keeps them."""
    dependencies: tuple[str, ...] = ()
    """The URNs of resources that must not be deleted before it."""
    unfinished: str = ""
    """Why it is not finished; empty if it is finished."""
    order: int = 0
    """Its position in the program: deletions are in reverse order."""

    def packed(self) -> str:
        """As the value of a Secret's key, base64. Takes a tenth of a second for the largest ones."""
        plain = json.dumps(asdict(self)).encode()
        # A dictionary of the text's size: to set up the usual one, of 8 MiB, takes longer than to pack most entries.
        size = max(_LEAST, 1 << len(plain).bit_length())
        filters = [{"id": lzma.FILTER_LZMA2, "preset": lzma.PRESET_DEFAULT, "dict_size": size}]
        return base64.b64encode(lzma.compress(plain, filters=filters)).decode()

    @classmethod
    def unpacked(cls, data: str) -> Entry:
        """Raises StateError."""
        try:
            tree: Values = json.loads(lzma.decompress(base64.b64decode(data, validate=True)))
            tree["dependencies"] = tuple(tree["dependencies"])
            return cls(**tree)
        except (ValueError, lzma.LZMAError, TypeError, KeyError) as error:
            raise StateError(f"an entry of the install state cannot be read: {error}") from None


@dataclass(frozen=True, kw_only=True)
class State:
    """All entries, by URN."""

    entries: Mapping[str, Entry] = field(default_factory=dict[str, Entry])

    def named(self, name: str) -> Entry | None:
        """The finished entry of a name."""
        found = (entry for urn, entry in self.entries.items() if name_of(urn) == name and not entry.unfinished)
        return next(found, None)


def name_of(urn: str) -> str:
    """A resource's own name."""
    return urn.rpartition("::")[2]


def action_urn(urn: str, name: str) -> str:
    """A URN for an action that is done for a resource: the resource's URN with another name."""
    return f"{urn.rpartition('::')[0]}::{name}"


def type_of(urn: str) -> str:
    """A resource's own type, without those of its parents."""
    return urn.split("::")[2].rpartition("$")[2]
