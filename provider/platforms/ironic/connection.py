"""Ironic's API, through openstacksdk (https://docs.openstack.org/openstacksdk): TLS is always verified, and transient
errors are retried.

openstacksdk is synchronous, so its calls run in threads.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable
from typing import Any, TypeVar

from metal_ipi.provider import web
from metal_ipi.provider.backoff import Backoff
from metal_ipi.provider.errors import RemoteError
from metal_ipi.provider.ironic_settings import IronicSettings
from metal_ipi.provider.trust import adapter

T = TypeVar("T")
_READ_TIMEOUT = 60
_LONGEST_QUOTE = 400
_PASSING = frozenset({409, 429, 500, 502, 503, 504})
"""409: a conductor has locked the node. 500: a conductor that dies while it answers."""
_REMEDIES = {
    401: "the user name or the password is wrong: correct `username` and `password` in `ironic`",
    403: "the account may not do this: give it the role admin",
}


class Refused(RemoteError):
    """Ironic refuses the request; `status` is the HTTP status."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class Connection:
    """The connection to one Ironic."""

    def __init__(self, settings: IronicSettings, *, timeout: float) -> None:
        """`timeout` is how long a call may be repeated, in seconds."""
        self._settings, self._timeout = settings, timeout
        self._client: Any = None
        self._lock = asyncio.Lock()

    @property
    def where(self) -> str:
        """Its name in messages."""
        return f"Ironic at {self._settings.endpoint}"

    async def call(self, asked: str, operation: Callable[[Any], T], *, again: bool = True) -> T:
        """Run an operation with openstacksdk's proxy; returns its result. `asked` completes «asked …» in an error.

        Transient errors are retried until the timeout, unless `again` is False.
        """
        backoff = Backoff(timeout=self._timeout if again else 0)
        while True:
            try:
                async with self._lock:
                    return await asyncio.to_thread(self._do, asked, operation)
            except RemoteError as error:
                if not error.passing or backoff.over:
                    raise
            await backoff.pause()

    async def find(self, asked: str, operation: Callable[[Any], T]) -> T | None:
        """Like `call`; None if Ironic answers 404."""
        try:
            return await self.call(asked, operation)
        except Refused as refused:
            if refused.status == 404:
                return None
            raise

    async def close(self) -> None:
        """Close the connection."""
        async with self._lock:
            client, self._client = self._client, None
            if client is not None:
                await asyncio.to_thread(client.close)

    # --- in a thread -----------------------------------------------------------------------------------------------

    def _do(self, asked: str, operation: Callable[[Any], T]) -> T:
        import requests
        from keystoneauth1 import exceptions as below
        from openstack import exceptions

        try:
            if self._client is None:
                self._client = self._open()
            return operation(self._client.baremetal)
        except exceptions.NotSupported as error:  # ironic/common/release_mappings.py
            words = f"{self.where}, asked {asked}: {self._quote(error)}; it must be 24.0 or newer (API version 1.89)"
            raise RemoteError(words) from None
        except exceptions.HttpException as error:
            raise self._refusal(asked, error) from None
        except (exceptions.SDKException, below.ClientException, requests.RequestException, OSError) as error:
            raise self._unreachable(asked, error) from None

    def _open(self) -> Any:
        import requests
        from keystoneauth1 import session
        from keystoneauth1.http_basic import HTTPBasicAuth
        from openstack.connection import Connection as Client

        # Our errors contain what they log; on standard error secrets in it would not be masked.
        for name in ("openstack", "keystoneauth"):
            logging.getLogger(name).propagate = False
        settings, http = self._settings, requests.Session()
        http.trust_env = False
        http.adapters.clear()
        http.mount("https://", adapter(ca=settings.ca))
        # First asked without openstacksdk, which reports every error here as a missing API version.
        http.get(settings.endpoint, timeout=_READ_TIMEOUT).raise_for_status()
        login = HTTPBasicAuth(endpoint=settings.endpoint, username=settings.username, password=settings.password)
        made = session.Session(auth=login, session=http, timeout=_READ_TIMEOUT, connect_retries=0)
        return Client(session=made, baremetal_endpoint_override=settings.endpoint)

    def _refusal(self, asked: str, error: Any) -> RemoteError:
        status = int(error.status_code or 0)
        words = self._quote(error.details or error.message or error)
        message = f"{self.where}, asked {asked}: it answered HTTP {status}: {words}"
        remedy = _REMEDIES.get(status)
        if status in _PASSING:
            return RemoteError(f"{message}; run the same command again", passing=True)
        return Refused(f"{message}; {remedy}" if remedy else message, status)

    def _unreachable(self, asked: str, error: Exception) -> RemoteError:
        message = f"{self.where}, asked {asked}: "
        for cause in web.causes(error):
            if isinstance(cause, ssl.SSLCertVerificationError):
                seen = f"its TLS certificate is not trusted ({cause.verify_message}); set `ca` in `ironic`"
                return RemoteError(message + seen + " to the authority that signed it")
        return RemoteError(
            f"{message}{self._quote(error)}; see whether it runs, and whether `endpoint` in `ironic` is right",
            passing=True,
        )

    def _quote(self, words: object) -> str:
        """A message on one line, shortened, and without the password."""
        text = " ".join(str(words).split()).replace(self._settings.password, "[secret]")
        return text if len(text) <= _LONGEST_QUOTE else f"{text[:_LONGEST_QUOTE]} ..."
