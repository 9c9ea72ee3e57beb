"""What all sections share."""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated, TypeVar

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

Item = TypeVar("Item")

REHEARSAL = "rehearsal"
"""Replaces secrets that a rehearsal (an offline preview) does not have; never used in a real change."""

LONGEST_TEXT = 1 << 18
"""The largest number of characters in a text. The longest real values are pull secrets and lists of certificates."""
LONGEST_WAIT = 30 * 24 * 3600
"""The longest timeout in seconds. A longer one is a mistake."""

_SSH_KEY_TYPES = ("ssh-ed25519", "ssh-rsa", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521")


class Section(BaseModel):
    """A part of the settings: camelCase keys, no unknown keys, no conversion of values."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,
        strict=True,
        allow_inf_nan=False,
        str_max_length=LONGEST_TEXT,
    )


def wrong(why: str, remedy: str, *, at: str = "") -> PydanticCustomError:
    """An error about the value being validated, or about the setting `at` below it."""
    return PydanticCustomError("metal_ipi", "{why}", {"why": why, "remedy": remedy, "at": at})


def revealed(value: SecretStr | None) -> str:
    """The secret's text, for the provider that needs it; the placeholder if a rehearsal has no secret."""
    return value.get_secret_value() if value is not None else REHEARSAL


def matching(pattern: str, why: str, remedy: str) -> AfterValidator:
    """A validator: the whole text must match the pattern."""
    form = re.compile(pattern)

    def check(value: str) -> str:
        if not form.fullmatch(value):
            raise wrong(why, remedy)
        return value

    return AfterValidator(check)


def is_public_key(text: str) -> bool:
    """Whether it is one SSH public key on one line, with or without a comment."""
    words = text.split()
    if len(words) < 2 or words[0] not in _SSH_KEY_TYPES or not text.strip().isprintable():
        return False
    try:
        serialization.load_ssh_public_key(" ".join(words[:2]).encode())
    except (ValueError, UnsupportedAlgorithm):
        return False
    return True


def _ipv4(value: str) -> str:
    try:
        address = ipaddress.ip_address(value)
    except ValueError:
        address = None
    if isinstance(address, ipaddress.IPv6Address):
        raise wrong(
            "it is an IPv6 address, but an IPv4 address is needed: clusters with IPv6 only are not supported",
            "give the IPv4 address; platform.ipv6 gives machines IPv6 addresses in addition",
        )
    if address is None:
        raise wrong("it is not an IPv4 address", "give one address, without prefix length, e.g. 192.0.2.10")
    return value


def _ipv6(value: str) -> str:
    try:
        shortest = str(ipaddress.IPv6Address(value))
    except ValueError:
        raise wrong("it is not an IPv6 address", "give one address, without prefix length, e.g. 2001:db8::10") from None
    if value != shortest or "%" in value:
        raise wrong("it is not in its shortest form", f"write it as {shortest.partition('%')[0]}")
    return value


def some(value: tuple[Item, ...]) -> tuple[Item, ...]:
    """A validator for lists that may not be empty."""
    if not value:
        raise wrong("it is empty", "give at least one, or remove the setting")
    return value


def _one_word_each(value: tuple[str, ...]) -> tuple[str, ...]:
    for item in value:
        if not item or any(character.isspace() for character in item):
            raise wrong(f"'{item}' is not one argument", "write one argument per list item, without spaces")
    return value


def certificates(pem: str) -> list[x509.Certificate]:
    """The certificates in a PEM text. Raises ValueError if it has none, or one cannot be parsed."""
    return x509.load_pem_x509_certificates(pem.encode())


def _pem(value: str) -> str:
    try:
        certificates(value)
    except ValueError:
        raise wrong(
            "it contains no certificate",
            "give the PEM text of the authority's certificate(s), including the line BEGIN CERTIFICATE",
        ) from None
    return value


Pem = Annotated[str, AfterValidator(_pem)]
"""PEM text with certificates."""


def _without_key(value: str) -> str:
    if "PRIVATE KEY" in value:
        raise wrong("it contains a private key, which every machine would get", "leave only the certificates in it")
    return value


PublicPem = Annotated[Pem, AfterValidator(_without_key)]
"""PEM text with certificates, and without private keys because every machine gets it."""
IPv4 = Annotated[str, AfterValidator(_ipv4)]
"""An IPv4 address, without prefix length."""
IPv6 = Annotated[str, AfterValidator(_ipv6)]
"""An IPv6 address in its shortest form, without prefix length."""
Words = Annotated[tuple[str, ...], Field(strict=False), AfterValidator(_one_word_each)]
"""Words of a kernel command line: one word per item."""
