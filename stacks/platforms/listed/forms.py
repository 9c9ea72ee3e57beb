"""Validation of values that end up in requests to BMCs, in libvirt's descriptions, and on kernel command lines.

It is stricter than the standards for characters that programs on the way would interpret.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated
from urllib.parse import parse_qsl, urlsplit

from pydantic import AfterValidator, SecretStr

from metal_ipi.stacks.sections.base import IPv4, IPv6, matching, wrong

_LABEL = r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_NAME = re.compile(rf"(?=.{{1,253}}$){_LABEL}(\.{_LABEL})*")
_PATH = re.compile(r"(/[^/]+)+")
_SYSTEM = r"(/redfish/v1/Systems/)?[A-Za-z0-9_][A-Za-z0-9_.:~-]{0,127}/?"
_TRANSPORTS = ("unix", "ssh", "libssh", "libssh2", "tls", "tcp")
_PROGRAMS = ("command", "netcat")
"""Parameters of libvirt's connection URIs that name a program to run."""
_LONGEST = 1024


def _mac(value: str) -> str:
    if not re.fullmatch(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}", value):
        raise wrong("it is not a MAC address in lower case", "write it as 52:54:00:12:34:56")
    if int(value[:2], 16) & 1:
        raise wrong(
            "it is a group address (multicast), which no network card has", "copy it from the server's inventory"
        )
    if not value.strip("0:"):
        raise wrong("it is all zeros: no network card has it", "copy it from the server's inventory")
    return value


def _machine_address(value: str) -> str:
    address = ipaddress.IPv4Address(value)
    if address.is_multicast or address.is_unspecified or address.is_loopback or address.is_reserved:
        raise wrong("no machine can have this address", "give the address at which it is reached")
    return value


def _machine_ipv6(value: str) -> str:
    address = ipaddress.IPv6Address(value)
    if address.is_multicast or address.is_unspecified or address.is_loopback or address.ipv4_mapped is not None:
        raise wrong("no machine can have this address", "give the address at which it is reached")
    return value


def _account(value: str) -> str:
    if not value.isprintable() or ":" in value or value != value.strip() or not 0 < len(value) <= 128:
        raise wrong(
            "it is not a name of an account",
            "use up to 128 printable characters, no ':' (HTTP ends the name there), and no space around them",
        )
    return value


def _password(value: SecretStr) -> SecretStr:
    if not value.get_secret_value().isprintable():
        raise wrong(
            "it contains a line break or another control character",
            "set it anew, without the line break at its end",
        )
    return value


def _is_host(value: str) -> bool:
    """Whether it is a host name or an IP address; IPv6 in brackets."""
    try:
        return ipaddress.ip_address(value.strip("[]")).version == (6 if value.startswith("[") else 4)
    except ValueError:
        # A name whose last label is a number would be read as an address.
        return bool(_NAME.fullmatch(value)) and not value.rpartition(".")[2].isdigit()


def _has_authority(value: str) -> bool:
    """Whether a URL has a valid host and port; a user name may come before them."""
    try:
        parts = urlsplit(value)
        port = parts.port
    except ValueError:
        return False
    host = parts.netloc.rpartition("@")[2]
    host = re.sub(r":[0-9]{1,5}$", "", host)
    return _is_host(host) and port != 0


def _is_plain(value: str) -> bool:
    """Whether it has only visible characters that need no quotes."""
    return len(value) <= _LONGEST and value.isascii() and not re.search(r"[\x00-\x20\x7f\"'`\\<>{}|^]", value)


def _bmc_url(value: str) -> str:
    if not re.fullmatch(r"https://[A-Za-z0-9.:\[\]-]+/?", value) or not _has_authority(value):
        raise wrong(
            "it is not an https URL of a BMC: credentials are sent to it, so its certificate is always verified",
            "give scheme, host and no path, e.g. https://10.0.0.11",
        )
    return value.rstrip("/")


def _server_bmc_url(value: str) -> str:
    if value.startswith("ipmi://"):
        if not re.fullmatch(r"ipmi://[A-Za-z0-9.:\[\]-]+", value) or not _has_authority(value):
            raise wrong("it is not an ipmi URL of a BMC", "give scheme, host and no path, e.g. ipmi://10.0.0.11")
        return value
    return _bmc_url(value)


def _url(value: str) -> str:
    if not re.fullmatch(r"https?://[^/]+/.+", value) or not _is_plain(value) or not _has_authority(value):
        raise wrong("it is not an http(s) URL", "give the URL under which the BMC or the firmware fetches it")
    if urlsplit(value).username is not None:
        raise wrong(
            "it contains a user name, which BMCs and firmware would show",
            "serve it without authentication in the machines' network, and remove everything up to the @",
        )
    return value


def _path(value: str) -> str:
    if not _PATH.fullmatch(value) or value.endswith("/"):
        raise wrong("it is not an absolute path of a file", "give the path on the system where libvirt runs")
    if not value.isprintable() or {".", ".."} & set(value.split("/")) or len(value) > _LONGEST:
        raise wrong("it is not a plain path", "give printable characters, without '.' and '..' between slashes")
    return value


def _connection(value: str) -> str:
    form = rf"qemu(\+({'|'.join(_TRANSPORTS)}))?://[^/?#]*/(system|session)(\?[^#]+)?"
    if not re.fullmatch(form, value) or not _is_plain(value):
        raise wrong("it is not a connection URI of QEMU's", "give it as `virsh uri` prints it, e.g. qemu:///system")
    parts = urlsplit(value)
    user = parts.netloc.rpartition("@")[0] if "@" in parts.netloc else None
    if parts.netloc and (not _has_authority(value) or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.-]*", user or "root")):
        raise wrong("it names no valid host, or no valid user", "write qemu+ssh://user@host/system")
    query = parse_qsl(parts.query.replace(";", "&"), keep_blank_values=True)  # libvirt accepts both separators
    programs = sorted({name.lower() for name, _ in query} & set(_PROGRAMS))
    if programs:
        raise wrong(
            f"{' and '.join(programs)} would make libvirt's client run a program",
            "remove it, and set up ssh for that host in ~/.ssh/config",
        )
    return value


Mac = Annotated[str, AfterValidator(_mac)]
"""The MAC address of a network card, in lower case."""
MachineAddress = Annotated[IPv4, AfterValidator(_machine_address)]
"""An IPv4 address that a machine can have."""
MachineIpv6 = Annotated[IPv6, AfterValidator(_machine_ipv6)]
"""An IPv6 address that a machine can have."""
Account = Annotated[str, AfterValidator(_account)]
Password = Annotated[SecretStr, AfterValidator(_password)]
Fingerprint = Annotated[
    str,
    matching(
        r"sha256:[0-9a-f]{64}",
        "it is not 'sha256:' and 64 hexadecimal digits",
        "take it from `openssl s_client -connect <bmc>:443 </dev/null | openssl x509 -outform der | sha256sum`,"
        " over a network that you trust",
    ),
]
BmcUrl = Annotated[str, AfterValidator(_bmc_url)]
AnyBmcUrl = Annotated[str, AfterValidator(_server_bmc_url)]
"""An https URL, or `ipmi://<host>[:<port>]` as in Metal3's BareMetalHost."""
Url = Annotated[str, AfterValidator(_url)]
"""A URL that a BMC or firmware fetches."""
SystemId = Annotated[
    str,
    matching(
        _SYSTEM,
        "it is not an id of a System",
        "give the last part of its path below /redfish/v1/Systems, e.g. System.Embedded.1",
    ),
]
FilePath = Annotated[str, AfterValidator(_path)]
"""An absolute path on libvirt's host."""
Connection = Annotated[str, AfterValidator(_connection)]
"""libvirt's connection URI."""
