"""Section `bmcs` of the provider's configuration: how to reach the management controller of each server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from provider.fields import PEM, SHA256, Reader

LIVE_ISO = "live-iso"
BOOT_METHODS = ("pxe", "uefi-http", "virtual-media", LIVE_ISO)
BOOT_MODES = ("bios", "uefi")
_SECURE_BOOT = ("check", "ignore")
_ADDRESS = r"https://([A-Za-z0-9.-]+|\[[0-9a-fA-F:.]+\])(:[0-9]{1,5})?/?"
_ACCOUNT = r"[^\x00-\x1f\x7f:]+"
_SYSTEM = r"(/redfish/v1/Systems/)?[A-Za-z0-9_][A-Za-z0-9_.:~-]*/?"
_URL = r"https?://[^\s/@]+(/\S*)?"
_URL_WORDS = "a URL without user name and password: who fetches it would show them"
_KEYS = ("address", "username", "password", "ca", "fingerprint", "systemId", "bootMethod", "bootMode", "bootImage",
         "bootUrl", "liveIso", "secureBoot")  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class LiveIso:
    """CoreOS's live ISO, as the stream has it."""

    url: str
    sha256: str


@dataclass(frozen=True, kw_only=True)
class BmcSettings:
    """One server's BMC. Its credentials are nowhere else, and never in a text made of this."""

    address: str
    """`https://` and host, without a path."""
    username: str = field(repr=False)
    password: str = field(repr=False)
    ca: str | None = None
    """PEM: only what these certificates signed is trusted. Neither this nor `fingerprint`: the system's CAs."""
    fingerprint: str | None = None
    """64 hex digits: SHA-256 of the one certificate that is trusted, in DER."""
    system_id: str | None = None
    """Id or path of the System, where the BMC has several."""
    boot_method: str = "pxe"
    """One of BOOT_METHODS: how it boots from the network."""
    boot_mode: str | None = None
    """One of BOOT_MODES; not given: the one it has."""
    boot_image: str | None = None
    """URL of an iPXE image, for virtual media."""
    boot_url: str | None = None
    """What UEFI fetches over HTTP; not given: what DHCP says."""
    live_iso: LiveIso | None = None
    """What the image of `live-iso` is made of."""
    ignores_secure_boot: bool = False
    """Whether the owner knows that the server boots what it is to boot, although Secure Boot is on."""


def read(reader: Reader) -> Mapping[str, BmcSettings]:
    """The section by server name."""
    servers = {name: reader.section(name) for name in reader.values}
    return {name: _server(server) for name, server in servers.items()}


def _server(reader: Reader) -> BmcSettings:
    reader.only(*_KEYS)
    if reader.values.get("ca") is not None and reader.values.get("fingerprint") is not None:
        reader.fail("fingerprint", "and `ca` are given: a certificate is trusted by one of them")
    method = reader.text("bootMethod", default="pxe", pattern="|".join(BOOT_METHODS), what=_one_of(BOOT_METHODS))
    mode = reader.optional_text("bootMode", pattern="|".join(BOOT_MODES), what=_one_of(BOOT_MODES))
    if method == "virtual-media" and reader.values.get("bootImage") is None:
        reader.fail("bootImage", "is required for virtual-media: the URL of an iPXE image")
    if method == LIVE_ISO and reader.values.get("liveIso") is None:
        reader.fail("liveIso", "is required for live-iso: URL and SHA-256 of CoreOS's live ISO")
    if method == "uefi-http" and mode == "bios":
        reader.fail("bootMode", "must be uefi for uefi-http")
    words = _one_of(_SECURE_BOOT)
    secure_boot = reader.text("secureBoot", default=_SECURE_BOOT[0], pattern="|".join(_SECURE_BOOT), what=words)
    fingerprint = reader.optional_text(
        "fingerprint",
        pattern=r"sha256:[0-9A-Fa-f]{2}(:?[0-9A-Fa-f]{2}){31}",
        what="`sha256:` and the 64 hex digits of the certificate's digest",
    )
    return BmcSettings(
        address=reader.text("address", pattern=_ADDRESS, what="https:// and a host, without user name and path").rstrip(
            "/"
        ),
        username=reader.text("username", pattern=_ACCOUNT, what="the name of an account, without a colon"),
        password=reader.text("password"),
        ca=reader.optional_text("ca", pattern=PEM, what="a certificate in PEM"),
        fingerprint=None if fingerprint is None else fingerprint.removeprefix("sha256:").replace(":", "").lower(),
        system_id=reader.optional_text("systemId", pattern=_SYSTEM, what="the id of a System, or its path"),
        boot_method=method,
        boot_mode=mode,
        boot_image=reader.optional_text("bootImage", pattern=_URL, what=_URL_WORDS),
        boot_url=reader.optional_text("bootUrl", pattern=_URL, what=_URL_WORDS),
        live_iso=None if reader.values.get("liveIso") is None else _live_iso(reader.section("liveIso")),
        ignores_secure_boot=secure_boot == "ignore",
    )


def _live_iso(reader: Reader) -> LiveIso:
    reader.only("url", "sha256")
    return LiveIso(
        url=reader.text("url", pattern=_URL, what=_URL_WORDS),
        sha256=reader.text("sha256", pattern=SHA256, what="a SHA-256 in hexadecimal digits"),
    )


def _one_of(words: tuple[str, ...]) -> str:
    return f"one of {', '.join(words)}"
