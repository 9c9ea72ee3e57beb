"""Files of a release that are kept on the artifact host: where they lie, as plain data.

    mirror/<sha256>-<name>                   a file; it has this name only once its hash was found right
    mirror/<sha256>-<name>.<claim>.claim     somebody uses it: empty, one for each `Mirror`

So two releases lie beside each other, stacks with one artifact directory share what they have in common, and whoever
gives up the last claim takes the file away.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from metal_ipi.provider.forms import FILE_NAME

DIRECTORY = "mirror"
_LONGEST = 100


@dataclass(frozen=True, kw_only=True)
class MirroredFile:
    """A file and where it comes from."""

    url: str
    """Where it is fetched from, http or https."""
    sha256: str
    """Its SHA-256, 64 hexadecimal digits."""

    @property
    def name(self) -> str:
        """What it is called in the mirror."""
        last = unquote(urlsplit(self.url).path).rpartition("/")[2][-_LONGEST:]
        return f"{self.sha256}-{last}" if re.fullmatch(FILE_NAME, last) else self.sha256

    def url_below(self, boot_base_url: str) -> str:
        """Where the artifact host serves it."""
        return f"{boot_base_url.rstrip('/')}/{DIRECTORY}/{self.name}"


def claim_of(name: str, claim: str) -> str:
    """The file that says that somebody uses a file."""
    return f"{name}.{claim}.claim"


def is_claim_of(name: str, other: str) -> bool:
    """Whether `other` says that somebody uses the file `name`."""
    return re.fullmatch(rf"{re.escape(name)}\.[0-9a-f]+\.claim", other) is not None
