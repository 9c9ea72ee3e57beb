"""Validation of texts that end up in a shell, an SSH target, a path, a URL or an iPXE script.

Everything else is refused before it reaches a provider. The rules are stricter than the standards for characters that a
program on the way would interpret: iPXE expands `${...}` and ends a command at `&&`, and shells interpret many more.
"""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator

from metal_ipi.stacks.sections.base import matching, wrong

PROJECT = Path(__file__).resolve().parents[2]
"""The directory to which relative paths in the settings refer."""

_NAME = r"[A-Za-z0-9]([-A-Za-z0-9]{0,61}[A-Za-z0-9])?"
_HOST = re.compile(rf"(?=.{{1,253}}$){_NAME}(\.{_NAME})*\.?")
_ON_A_SERVER = re.compile(r"/|(/[A-Za-z0-9._+@=,~-]+)+/?")
_REMOTE_URL = r"(?P<host>[A-Za-z0-9.-]+|\[[0-9a-fA-F:.]+\])(:[0-9]{1,5})?(?P<path>/[A-Za-z0-9._~%+@,=:/-]*)?"
_LABEL = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_LONGEST_PATH = 1024


def is_host(value: str) -> bool:
    """Whether it is a host name or an IP address."""
    try:
        ipaddress.ip_address(value)
    except ValueError:
        # A name whose last label is a number would be read as an address.
        return bool(_HOST.fullmatch(value)) and not value.rstrip(".").rpartition(".")[2].isdigit()
    return "%" not in value


def _host(value: str) -> str:
    if not is_host(value):
        raise wrong("it is neither a host's name nor an IP address", "give the name or the address alone")
    return value


def _on_a_server(value: str) -> str:
    if not value.startswith("/"):
        raise wrong("it is not absolute", "give the whole path, from / on, as the SFTP server sees it")
    if not _ON_A_SERVER.fullmatch(value) or _climbs(value) or len(value) > _LONGEST_PATH:
        raise wrong("it is not a plain path", "use letters, digits and ._+@=,~- between the slashes, and no '..'")
    return value


def _here(value: str) -> str:
    if not value or not value.isprintable() or len(value) > _LONGEST_PATH or value.startswith("-"):
        raise wrong("it is not a path", "use printable characters, and no hyphen at the beginning")
    return value


def _climbs(path: str) -> bool:
    return ".." in path.split("/")


def _title(value: str) -> str:
    if not value.strip() or not value.isprintable() or len(value) > 80:
        raise wrong("it is not a readable name", "use up to 80 printable characters")
    return value


def _key_name(value: str) -> str:
    if not re.fullmatch(r"(?=.{1,254}$)[A-Za-z0-9_]([-A-Za-z0-9_.]*[A-Za-z0-9_])?\.?", value) or ".." in value:
        raise wrong("it is not a key's name", "give it as the server's configuration has it, e.g. metal-ipi.")
    return value


def _prefix(value: str) -> str:
    if not re.fullmatch(r"/?([A-Za-z0-9._+@=,~-]+(/[A-Za-z0-9._+@=,~-]+)*/?)?", value) or _climbs(value):
        raise wrong(
            "it is not a prefix of keys", "use letters, digits and ._+@=,~- between single slashes, and no '..'"
        )
    if len(value) > _LONGEST_PATH // 2:
        raise wrong("it is too long", f"use up to {_LONGEST_PATH // 2} characters: a whole key can have 1024")
    return value


def is_url(value: str, *schemes: str) -> bool:
    """Whether it is a URL of one of these schemes with only host, port and path, in characters that iPXE and shells do
    not interpret. No user name, query or fragment, because file names are appended to it."""
    found = re.fullmatch(rf"({'|'.join(schemes)})://{_REMOTE_URL}", value)
    return found is not None and is_host(found["host"].strip("[]")) and not _climbs(found["path"] or "")


def _endpoint(value: str) -> str:
    if not is_url(value, "https", "http"):
        raise wrong(
            "it is not an http(s) URL", "give scheme, host, and port and path where there are any, without account"
        )
    return value


ClusterName = Annotated[
    str,
    matching(
        r"[a-z0-9]([-a-z0-9]{0,52}[a-z0-9])?",
        "it is not a DNS label",
        "use up to 54 of a-z, 0-9 and '-', beginning and ending with a-z or 0-9",
    ),
]
PoolName = Annotated[
    str,
    matching(
        r"[a-z]([-a-z0-9]{0,18}[a-z0-9])?",
        "a pool cannot have this name",
        "use up to 20 of a-z, 0-9 and '-', beginning with a letter, such as gpu",
    ),
]
BaseDomain = Annotated[
    str,
    matching(
        rf"(?=.{{1,230}}$)({_LABEL}\.)+(?![0-9]){_LABEL}",
        "it is not a DNS domain",
        "use lower-case labels separated by dots, without a dot at the end",
    ),
]
Release = Annotated[
    str,
    matching(
        r"4\.\d+\.\d+([-.+][0-9A-Za-z.+-]+)?",
        "it is not a release",
        "give major, minor and patch, e.g. 4.21.3 or 4.20.0-okd-scos.5",
    ),
]
"""A release of OpenShift or OKD."""
Host = Annotated[str, AfterValidator(_host)]
"""The target of a connection: a host name or an IP address."""
User = Annotated[
    str,
    matching(
        r"[A-Za-z_][A-Za-z0-9_.-]{0,31}",
        "it is not user's name",
        "use up to 32 of a-z, A-Z, 0-9, '_', '.' and '-', beginning with a letter or '_'",
    ),
]
"""The user of a login."""
PathOnServer = Annotated[str, AfterValidator(_on_a_server)]
"""An absolute path on another system."""
PathHere = Annotated[str, AfterValidator(_here)]
"""A path, or the name of a program, on the host where `up` runs."""
Plan = Annotated[str, matching(r"[a-z0-9][a-z0-9._-]{0,62}", "it is not a plan", "give its slug, e.g. c3.small.x86")]
Metro = Annotated[str, matching(r"[a-z]{2,8}", "it is not a metro's code", "give the code, e.g. da")]
Title = Annotated[str, AfterValidator(_title)]
"""A name for people."""
Zone = Annotated[
    str,
    matching(
        rf"(?=.{{1,253}}$)([A-Za-z0-9_]([-A-Za-z0-9_]{{0,61}}[A-Za-z0-9_])?\.)*{_NAME}",
        "it is not a zone's name",
        "give the domain without a dot at the end, e.g. metal.example.com",
    ),
]
KeyName = Annotated[str, AfterValidator(_key_name)]
"""The name of a TSIG key."""
Bucket = Annotated[
    str,
    matching(
        r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?", "it is not a bucket's name", "use up to 63 of a-z, 0-9, '.' and '-'"
    ),
]
Prefix = Annotated[str, AfterValidator(_prefix)]
Region = Annotated[
    str, matching(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", "it is not a region", "give its code, e.g. eu-central-1")
]
KeyId = Annotated[
    str,
    matching(
        r"[A-Za-z0-9_][A-Za-z0-9._+=@-]{0,127}",
        "it is not an id of a key",
        "copy it as it was given to you, without spaces",
    ),
]
"""The id of an access key."""
Endpoint = Annotated[str, AfterValidator(_endpoint)]
"""The URL of a service."""
Interface = Annotated[
    str,
    matching(
        r"[A-Za-z0-9][A-Za-z0-9_.-]{0,14}",
        "it is not a name of an interface",
        "give it as `ip link` on the machines shows it, e.g. eno1",
    ),
]
