"""HTTP downloads of the provider. It trusts the system's authorities and `artifacts.caBundle`."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from metal_ipi.provider.configuration import Settings
from metal_ipi.provider.errors import InvalidInputs

if TYPE_CHECKING:
    import httpx


def client(settings: Settings, *, timeout: float, also: str | None = None) -> httpx.AsyncClient:
    """A client that follows redirects. `also`: further authorities to trust (PEM)."""
    import httpx

    return httpx.AsyncClient(timeout=timeout, follow_redirects=True, verify=trust(settings, also=also))


def trust(settings: Settings, *, also: str | None = None) -> ssl.SSLContext:
    """A TLS context that trusts the system's authorities (its store, or SSL_CERT_FILE and SSL_CERT_DIR),
    `artifacts.caBundle`, and the authorities in `also` (PEM)."""
    context = ssl.create_default_context()
    bundle = settings.artifacts.ca_bundle if settings.artifacts is not None else None
    for name, given in (("artifacts.caBundle", bundle), ("registries.ca", also)):
        if given is not None:
            try:
                context.load_verify_locations(cadata=given)
            except ssl.SSLError as error:
                raise InvalidInputs(f"`{name}` contains no readable certificate: {error}") from None
    return context


def date_of(headers: Any) -> datetime | None:
    """The time of a server's clock when it answered; None if it does not tell."""
    try:
        date = parsedate_to_datetime(headers.get("Date", ""))
    except ValueError:
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)


def retry_after(headers: Any) -> float:
    """Seconds that a server asks us to wait; 0 if it does not say, or gives a date."""
    text = headers.get("retry-after", "")
    return float(text) if text.isdecimal() else 0.0


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yields an error and all its causes: sushy, openstacksdk, requests and urllib3 wrap each other's errors."""
    waiting, known = [error], {id(error)}
    while waiting:
        current = waiting.pop(0)
        yield current
        for inner in (current.__cause__, current.__context__, getattr(current, "reason", None), *current.args):
            if isinstance(inner, BaseException) and id(inner) not in known:
                known.add(id(inner))
                waiting.append(inner)
