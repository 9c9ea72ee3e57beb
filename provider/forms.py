"""Validators of values for declarations of inputs (`provider.inputs`).

Every form accepts `PLACEHOLDER`, which replaces a credential that a preview does not have.
"""

from __future__ import annotations

import re
from collections.abc import Sized
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_core import PydanticCustomError

HOST = r"[A-Za-z0-9_*]([A-Za-z0-9_-]*[A-Za-z0-9])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9])?)*"
"""A DNS name without trailing dot; a leading `*` label is allowed."""
PLACEHOLDER = "rehearsal"
"""A preview without credentials gives this in place of each credential."""
FILE_NAME = r"[A-Za-z0-9_][A-Za-z0-9._-]*"
"""A plain file name: no path, not hidden."""
MAC = r"[0-9a-fA-F]{2}([:-][0-9a-fA-F]{2}){5}"
"""A MAC address."""


def wrong(reason: str) -> PydanticCustomError:
    """An error about the value being validated, with the remedy."""
    return PydanticCustomError("metal_ipi", "{reason}", {"reason": reason})


def form(pattern: str, what: str) -> AfterValidator:
    """A validator: the whole text must match; `what` describes the form in the message."""
    expression = re.compile(pattern, re.DOTALL)

    def check(value: str) -> str:
        if value != PLACEHOLDER and not expression.fullmatch(value):
            raise wrong(f"must be {what}")
        return value

    return AfterValidator(check)


def one_of(*words: str) -> AfterValidator:
    """A validator: one of some words."""
    return form("|".join(map(re.escape, words)), f"one of {', '.join(words)}")


def between(minimum: float, maximum: float = 1e9) -> AfterValidator:
    """A validator: a number within bounds, both included."""

    def check(value: float) -> float:
        if not minimum <= value <= maximum:
            raise wrong(f"must be between {minimum:g} and {maximum:g}, not {value:g}")
        return value

    return AfterValidator(check)


def _not_empty(value: Sized) -> Sized:
    if not value:
        raise wrong("must not be empty")
    return value


NOT_EMPTY = AfterValidator(_not_empty)
"""A validator: at least one item."""


def _integer(value: Any) -> Any:
    """Convert a float to int: Pulumi's protocol has no integers."""
    if isinstance(value, float):
        if not value.is_integer():
            raise wrong(f"must be a whole number, not {value:g}")
        return int(value)
    return value


Whole = Annotated[int, BeforeValidator(_integer)]
HostName = Annotated[str, form(HOST, "a host name")]
Ipv4 = Annotated[str, form(r"(\d{1,3}\.){3}\d{1,3}", "an IPv4 address")]
ShortName = Annotated[str, form(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", "a host name")]
Url = Annotated[str, form(r"https?://[^\s/]+(/\S*)?", "a URL")]
HttpsUrl = Annotated[str, form(r"https://[^\s/]+(/\S*)?", "an https URL")]
PEM = r"\s*-----BEGIN [A-Z0-9 ]+-----.*"
Pem = Annotated[str, form(PEM, "in PEM")]
Uri = Annotated[str, form(r"[a-z][a-z0-9+.-]*://\S*", "a connection URI of libvirt's, qemu:///system")]
BaseUrl = Annotated[Url, AfterValidator(lambda value: value.rstrip("/"))]
"""A URL. A slash at its end is removed."""
SshKey = Annotated[str, form(r"(ssh|ecdsa)-[a-z0-9-]+ [A-Za-z0-9+/=]+( .*)?\s*", "an SSH public key")]
Sha256 = Annotated[str, form(r"[0-9a-f]{64}", "a SHA-256 in hexadecimal digits")]
FileName = Annotated[str, form(FILE_NAME, "a plain file name")]
AbsolutePath = Annotated[str, form(r"/.*", "an absolute path")]
Mac = Annotated[
    str,
    form(MAC, "a MAC address, 52:54:00:12:34:56"),
    AfterValidator(lambda value: value.lower().replace("-", ":")),
]
"""A MAC address. It is converted to lower case with colons."""
Anything = Annotated[str, Field(min_length=0)]
"""A text that may be empty."""
Domain = Annotated[str, form(HOST, "a domain")]
NodeName = Annotated[str, form(HOST, "a node name")]
ZoneName = Annotated[str, form(HOST, "a zone name without trailing dot")]
Port = Annotated[Whole, between(1, 65535)]
Seconds = Annotated[float, between(1)]
Seed = Annotated[str, form(r".{16,}", "at least 16 random characters")]
Directory = Annotated[str, form(r"[A-Za-z0-9_-]{20,}", "the output `directory` of an Artifacts")]
Script = Annotated[str, form(r"#!ipxe\n.*", "an iPXE script")]
BootScript = Annotated[str, form(r"#!ipxe\n(.*\n)?kernel .*", "an iPXE script with a kernel")]
Accept = Annotated[str, one_of("empty", "wipe")]
"""What may be on a server that is claimed."""
PLATFORMS = ("equinix-metal", "redfish", "ironic", "local-vm")
Platform = Annotated[str, one_of(*PLATFORMS)]
