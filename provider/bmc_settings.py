"""Section `bmcs` of the provider's configuration: how to reach the management controller of each server."""

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
        "a URL without user name and password: who fetches it would show them",
    ),
]


def _digits(fingerprint: str) -> str:
    return fingerprint.removeprefix("sha256:").replace(":", "").lower()


class LiveIso(Inputs):
    """CoreOS's live ISO, as the stream has it."""

    url: _Url
    """Where it is."""
    sha256: Sha256
    """Its digest in hex."""


class BmcSettings(Inputs):
    """One server's BMC. Its credentials are nowhere else, and never in a text made of this."""

    address: Annotated[
        str,
        form(rf"https://{HOST_AND_PORT}/?", "https:// and a host, without user name and path"),
        AfterValidator(lambda value: value.rstrip("/")),
    ]
    """`https://` and host, without a path."""
    username: Annotated[str, form(_ACCOUNT, "the name of an account, without a colon"), Field(repr=False)]
    """An account of the BMC."""
    password: Secret[str]
    """Its password."""
    ca: Annotated[str, form(PEM, "a certificate in PEM")] | None = None
    """PEM: only what these certificates signed is trusted. Neither this nor `fingerprint`: the system's CAs."""
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
    """64 hex digits: SHA-256 of the one certificate that is trusted, in DER."""
    system_id: Annotated[str, form(_SYSTEM, "the id of a System, or its path")] | None = None
    """Id or path of the System, where the BMC has several."""
    boot_method: Annotated[str, one_of(*BOOT_METHODS)] = "pxe"
    """One of BOOT_METHODS: how it boots from the network."""
    boot_mode: Annotated[str, one_of(*BOOT_MODES)] | None = None
    """One of BOOT_MODES; not given: the one it has."""
    boot_image: _Url | None = None
    """URL of an iPXE image, for virtual media."""
    boot_url: _Url | None = None
    """What UEFI fetches over HTTP; not given: what DHCP says."""
    live_iso: LiveIso | None = None
    """What the image of `live-iso` is made of."""
    secure_boot: Annotated[str, one_of("check", "ignore")] = "check"
    """`ignore`: what boots is signed for its firmware, although Secure Boot is on."""
    cards: Annotated[str, one_of("check", "ignore")] = "check"
    """`ignore`: the server has the network card that is named, although its BMC does not list it."""

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
