"""Files of a release on the artifact host: their places, as plain data.

    mirror/<sha256>-<name>                   a file; it has this name only after its hash was checked
    mirror/<sha256>-<name>.<claim>.claim     somebody uses it: an empty file, one for each `Mirror`

So files of several releases can be stored together, stacks with the same artifact directory share equal files, and a
file is deleted with its last claim.
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
    """A file and its source."""

    url: str
    """Its source, an http or https URL."""
    sha256: str
    """Its SHA-256, 64 hexadecimal digits."""

    @property
    def name(self) -> str:
        """Its name in the mirror."""
        last = unquote(urlsplit(self.url).path).rpartition("/")[2][-_LONGEST:]
        return f"{self.sha256}-{last}" if re.fullmatch(FILE_NAME, last) else self.sha256

    def url_below(self, boot_base_url: str) -> str:
        """Its URL on the artifact host."""
        return f"{boot_base_url.rstrip('/')}/{DIRECTORY}/{self.name}"


def claim_of(name: str, claim: str) -> str:
    """The name of the file that claims a file."""
    return f"{name}.{claim}.claim"


def is_claim_of(name: str, other: str) -> bool:
    """Whether `other` is a claim of the file `name`."""
    return re.fullmatch(rf"{re.escape(name)}\.[0-9a-f]+\.claim", other) is not None
