"""Failures between us and a BMC: described in one sentence, with the remedy, and whether they are transient."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from metal_ipi.provider import web
from metal_ipi.provider.platforms.redfish import quirks

_PASSING_STATUS = frozenset({429, 502, 503, 504})
_PEEK_TIMEOUT = 10
_LONGEST_WAIT = 60
_SAME_TIME = timedelta(minutes=5)
_NOT_REDFISH, _UPDATE = "its answer does not conform to Redfish", "update the BMC's firmware"
MALFORMED = (LookupError, TypeError, AttributeError, ValueError)
"""Errors in sushy or our code when an answer has another structure than Redfish's."""
_BUILT = datetime(2026, 1, 1, tzinfo=UTC)
"""This code is newer: a clock that shows an earlier time is wrong."""
_EXPIRED, _NOT_YET_VALID, _OTHER_NAME, _OTHER_ADDRESS = 10, 9, 62, 64
"""OpenSSL's X509_V_ERR_*."""


@dataclass(frozen=True, kw_only=True)
class Trouble:
    """One failure."""

    seen: str
    quoted: str = ""
    """The message from the BMC or from sushy; it may repeat what was sent."""
    remedy: str = ""
    passing: bool = False
    """Whether it is transient."""
    wait: float = 0
    """The pause that the BMC asked for, in seconds."""
    status: int | None = None
    """The HTTP status, if the BMC answered."""


@dataclass(frozen=True, kw_only=True)
class Peer:
    """What an untrusted server shows."""

    certificate: bytes
    """In DER."""
    date: datetime | None
    """Its clock, from the HTTP header."""


def diagnose(error: Exception, address: str, response: Any) -> Trouble:
    """Explain an error of sushy, requests or MALFORMED; `response` is the BMC's last one, if there is one.

    May connect to the BMC again.
    """
    import requests
    from sushy import exceptions

    if isinstance(error, exceptions.HTTPError):
        status: Any = error.status_code
        return _http(int(status), str(error.detail or error.body or ""), str(error), response)
    causes = list(web.causes(error))
    for cause in causes:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return _certificate(address, cause)
        if "Fingerprints did not match" in str(cause):
            return _other_certificate(address)
    if isinstance(error, json.JSONDecodeError):
        return Trouble(seen="it gave an incomplete answer, not JSON", passing=True)
    if isinstance(error, exceptions.ConnectionError | requests.RequestException | OSError):
        return _connection(causes)
    if isinstance(error, exceptions.SushyError):
        # sushy itself refuses what the BMC does not list, like the BMC would.
        listed = isinstance(error, exceptions.InvalidParameterValueError | exceptions.MissingAttributeError)
        seen = "it does not support that" if listed else _NOT_REDFISH
        return Trouble(seen=seen, quoted=str(error), remedy=_UPDATE, status=400 if listed else None)
    if response is not None and response.status_code >= 400:
        # sushy could not parse the refusal.
        return _http(response.status_code, response.text, response.text, response)
    return Trouble(seen=_NOT_REDFISH, quoted=f"{type(error).__name__}: {error}", remedy=_UPDATE)


def _http(status: int, words: str, whole: str, response: Any) -> Trouble:
    trouble = Trouble(seen=f"it answered HTTP {status}", quoted=words, status=status)
    if status == 401:
        return replace(trouble, remedy="the user name or the password is wrong: correct them in `bmcs`")
    if status == 403:
        return replace(trouble, remedy="the account may not do this: give it the role Operator or Administrator")
    passing = status in _PASSING_STATUS or quirks.passes(status, whole)
    wait = 0 if response is None else web.retry_after(response.headers)
    return replace(trouble, passing=passing, wait=min(wait, _LONGEST_WAIT))


def _connection(causes: list[BaseException]) -> Trouble:
    import requests

    texts = " ".join(str(cause) for cause in causes)
    if "wrong version number" in texts.lower():
        return Trouble(seen="it does not speak TLS there", remedy="correct `address`")
    for cause in causes:
        if isinstance(cause, requests.exceptions.InvalidSchema):
            return Trouble(seen="it redirects to an address without TLS", remedy="correct `address`")
        if isinstance(cause, socket.gaierror):
            return Trouble(seen=f"its name cannot be resolved ({cause.strerror})", remedy="correct `address`")
        if isinstance(cause, ssl.SSLError) and not isinstance(cause, ssl.SSLEOFError | ssl.SSLZeroReturnError):
            return Trouble(seen=f"a TLS connection cannot be made ({cause.reason or cause})")
    if any(isinstance(cause, ssl.SSLEOFError | ssl.SSLZeroReturnError) for cause in causes):
        return Trouble(seen="it closes connections before TLS is established", passing=True)
    if any(isinstance(cause, TimeoutError) or "timed out" in str(cause) for cause in causes):
        return Trouble(seen="it did not answer in time", passing=True)
    if any(isinstance(cause, ConnectionRefusedError) for cause in causes):
        return Trouble(seen="it refuses connections", passing=True)
    if any(isinstance(cause, OSError) and cause.errno is not None for cause in causes):
        inner = next(cause for cause in causes if isinstance(cause, OSError) and cause.errno is not None)
        return Trouble(seen=f"the connection failed ({inner.strerror})", passing=True)
    return Trouble(seen=f"the connection was lost ({type(causes[-1]).__name__})", passing=True)


def peek(address: str) -> Peer | None:
    """Read the certificate and the clock of an untrusted server. No secret is sent."""
    parts = urlsplit(address)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    connection = http.client.HTTPSConnection(
        parts.hostname or "", parts.port or 443, timeout=_PEEK_TIMEOUT, context=context
    )
    try:
        connection.connect()
        certificate = connection.sock.getpeercert(binary_form=True)
        try:
            connection.request("GET", "/redfish/v1/")
            date = web.date_of(connection.getresponse().headers)
        except (OSError, http.client.HTTPException):
            date = None
        return Peer(certificate=certificate, date=date) if certificate else None
    except OSError:
        return None
    finally:
        connection.close()


def fingerprint(certificate: bytes) -> str:
    """`sha256:<hex>`, the form of the setting."""
    import hashlib

    return f"sha256:{hashlib.sha256(certificate).hexdigest()}"


def _other_certificate(address: str) -> Trouble:
    peer = peek(address)
    shown = f" but {fingerprint(peer.certificate)}" if peer else ""
    return Trouble(
        seen=f"it does not have the pinned TLS certificate{shown}",
        remedy="if its certificate was renewed, set the new `fingerprint`; if not, another machine may pose as this "
        "BMC",
    )


def _certificate(address: str, error: ssl.SSLCertVerificationError) -> Trouble:
    from cryptography import x509

    peer = peek(address)
    if peer is None:
        return Trouble(seen=f"its TLS certificate is not trusted ({error.verify_message})", passing=True)
    pin = f"`fingerprint: {fingerprint(peer.certificate)}`"
    certificate = x509.load_der_x509_certificate(peer.certificate)
    if error.verify_code in (_EXPIRED, _NOT_YET_VALID):
        return _validity(certificate.not_valid_before_utc, certificate.not_valid_after_utc, peer, pin)
    if error.verify_code in (_OTHER_NAME, _OTHER_ADDRESS):
        return Trouble(
            seen=f"its TLS certificate is for {_names(certificate)}, not for {urlsplit(address).hostname}",
            remedy=f"correct `address`, give the BMC a certificate for it, or trust only this one: {pin}",
        )
    return Trouble(
        seen=f"its TLS certificate is not trusted ({error.verify_message}): {fingerprint(peer.certificate)}",
        remedy="set `ca` to the authority that signed it, or, if this is your BMC's certificate, trust just this "
        f"one: {pin}",
    )


def _names(certificate: Any) -> str:
    from cryptography import x509

    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return str(certificate.subject.rfc4514_string() or "no name")
    return ", ".join(str(name.value) for name in extension.value) or "no name"


def _validity(start: datetime, end: datetime, peer: Peer, pin: str, ours: datetime | None = None) -> Trouble:
    """Find out which is wrong: our clock, the BMC's clock, or the certificate."""
    ours = ours or datetime.now(UTC)
    what = "is not valid yet" if ours < start else "has expired"
    seen = f"its TLS certificate {what}: it is valid from {_time(start)} to {_time(end)}, and it is {_time(ours)} here"
    if ours < _BUILT:
        return Trouble(seen=seen, remedy="the clock of this computer is wrong: set it")
    if peer.date is None:
        return Trouble(seen=seen, remedy=f"compare the clocks of this computer and of the BMC, or trust it: {pin}")
    seen += f" and {_time(peer.date)} on the BMC"
    if abs(peer.date - ours) <= _SAME_TIME:
        return Trouble(seen=seen, remedy=f"the clocks agree: give the BMC a new certificate, or trust this one: {pin}")
    if peer.date < _BUILT or (ours < start <= peer.date):
        # The BMC's clock is older than this code, or its own certificate begins in the future.
        return Trouble(
            seen=seen,
            remedy=f"the BMC's clock is wrong: set it (NTP), then give it a new certificate, or trust this one: {pin}",
        )
    return Trouble(
        seen=seen,
        remedy="the clocks differ: set the one that is wrong; if it is the BMC's, give it a new certificate as well, "
        f"or trust this one: {pin}",
    )


def _time(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")
