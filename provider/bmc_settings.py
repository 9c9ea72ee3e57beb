"""Section `bmcs` of the provider's configuration: how each server's BMC is reached."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from metal_ipi.provider.forms import PEM, Sha256, form, one_of
from metal_ipi.provider.given import Secret
from metal_ipi.provider.inputs import Conflict, Inputs

LIVE_ISO = "live-iso"
BOOT_METHODS = ("pxe", "uefi-http", "virtual-media", LIVE_ISO)
BOOT_MODES = ("bios", "uefi")
HOST_AND_PORT = r"([A-Za-z0-9.-]+|\[[0-9a-fA-F:.]+\])(:[0-9]{1,5})?"
_ACCOUNT = r"[^\x00-\x1f\x7f:]+"
_SYSTEM = r"(/redfish/v1/Systems/)?[A-Za-z0-9_][A-Za-z0-9_.:~-]*/?"
_Url = Annotated[
    str,
    form(
        r"https?://[^\s/@]+(/\S*)?",
        "a URL without user name and password, which BMCs and firmware would show",
    ),
]


def _digits(fingerprint: str) -> str:
    return fingerprint.removeprefix("sha256:").replace(":", "").lower()


class LiveIso(Inputs):
    """CoreOS's live ISO, as in the stream metadata."""

    url: _Url
    """Its URL."""
    sha256: Sha256
    """Its SHA-256 in hex."""


class BmcSettings(Inputs):
    """One server's BMC. Its credentials are stored nowhere else, and never part of its text form."""

    address: Annotated[
        str,
        form(rf"https://{HOST_AND_PORT}/?", "https:// and a host, without user name and path"),
        AfterValidator(lambda value: value.rstrip("/")),
    ]
    """`https://` and host, without a path."""
    username: Annotated[str, form(_ACCOUNT, "the name of an account, without a colon"), Field(repr=False)]
    """An account of the BMC."""
    password: Secret[str]
    """The account's password."""
    ca: Annotated[str, form(PEM, "a certificate in PEM")] | None = None
    """PEM: only certificates signed by these authorities are trusted. Without this and `fingerprint`: the system's
    authorities."""
    fingerprint: (
        Annotated[
            str,
            form(
                r"sha256:[0-9A-Fa-f]{2}(:?[0-9A-Fa-f]{2}){31}",
                "`sha256:` and the 64 hex digits of the certificate's digest",
            ),
            AfterValidator(_digits),
        ]
        | None
    ) = None
    """64 hex digits: the SHA-256 of the only certificate that is trusted, in DER."""
    system_id: Annotated[str, form(_SYSTEM, "the id of a System, or its path")] | None = None
    """Id or path of the Redfish System; needed if the BMC has several."""
    boot_method: Annotated[str, one_of(*BOOT_METHODS)] = "pxe"
    """How the server boots from the network: one of BOOT_METHODS."""
    boot_mode: Annotated[str, one_of(*BOOT_MODES)] | None = None
    """The firmware's boot mode, one of BOOT_MODES. Not given: it is not changed."""
    boot_image: _Url | None = None
    """URL of an iPXE image, for bootMethod virtual-media."""
    boot_url: _Url | None = None
    """The URL that UEFI firmware boots over HTTP. Not given: from DHCP."""
    live_iso: LiveIso | None = None
    """The ISO from which the image of bootMethod live-iso is made."""
    secure_boot: Annotated[str, one_of("check", "ignore")] = "check"
    """`ignore`: accept a server with Secure Boot on; you state that what it boots is signed for its firmware."""
    cards: Annotated[str, one_of("check", "ignore")] = "check"
    """`ignore`: accept a server whose BMC does not list the configured network card; you state that it has the card."""

    @classmethod
    def conflicts(cls, given: Mapping[str, Any]) -> Iterator[Conflict]:
        method = given.get("bootMethod")
        if given.get("ca") is not None and given.get("fingerprint") is not None:
            yield ("fingerprint",), "and `ca` are given: a certificate is trusted by one of them"
        if method == "virtual-media" and given.get("bootImage") is None:
            yield ("bootImage",), "is required for virtual-media: the URL of an iPXE image"
        if method == LIVE_ISO and given.get("liveIso") is None:
            yield ("liveIso",), "is required for live-iso: URL and SHA-256 of CoreOS's live ISO"
        if method == "uefi-http" and given.get("bootMode") == "bios":
            yield ("bootMode",), "must be uefi for uefi-http"
