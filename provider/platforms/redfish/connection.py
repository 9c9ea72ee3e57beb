"""A session with one BMC, by sushy: TLS is always verified, a lost session is renewed, transient errors are retried.

sushy is synchronous, so its calls run in threads. Its own retries are switched off, because it also repeats requests
that must not be sent twice; the callers decide what is repeated.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, TypeVar

from metal_ipi.provider.backoff import Backoff
from metal_ipi.provider.bmc_settings import BmcSettings
from metal_ipi.provider.errors import RemoteError
from metal_ipi.provider.platforms.redfish.trouble import MALFORMED, Trouble, diagnose
from metal_ipi.provider.trust import adapter

T = TypeVar("T")
CONNECT_TIMEOUT = 10
READ_TIMEOUT = 60
"""Seconds; BMCs are slow."""
_LONGEST_QUOTE = 300
_FORGETFUL = "it opens sessions and loses them at once: end sessions that are not needed, or restart the BMC"


class Refused(RemoteError):
    """The BMC refuses the request; `status` is the HTTP status."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class _Failed(Exception):
    def __init__(self, trouble: Trouble) -> None:
        super().__init__(trouble.seen)
        self.trouble = trouble


class Connection:
    """One server's BMC, and the System on it that is the server."""

    def __init__(self, server: str, settings: BmcSettings, *, claimed: str | None = None, timeout: float = 180) -> None:
        """`claimed` is the identity that the System must have; `timeout` is how long a call may be repeated, in
        seconds."""
        self.server = server
        self.settings = settings
        self._claimed = claimed
        self._timeout = timeout
        self._client: Any = None
        self._auth: Any = None
        """sushy's authentication object of the last login attempt."""
        self._path: str | None = None
        self._last: Any = None
        self._lock = asyncio.Lock()
        # A thread of its own: slow BMCs would occupy the threads of a shared pool.
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix=f"bmc-{server}")

    @property
    def where(self) -> str:
        """The server's name in messages."""
        return f"server {self.server} (BMC {self.settings.address})"

    async def call(self, asked: str, operation: Callable[[Any], T], *, once: bool = False) -> T:
        """Run an operation with the System; returns its result. `asked` completes «asked …» in an error.

        Transient errors are retried until the timeout. With `once` there is no retry, and the error has `passing` set.
        """
        backoff = Backoff(timeout=0 if once else self._timeout)
        while True:
            try:
                async with self._lock:
                    return await self._in_thread(self._do, operation)
            except _Failed as failed:
                trouble = failed.trouble
                if not trouble.passing or backoff.over:
                    raise self._error(asked, trouble, backoff.elapsed) from None
            await backoff.pause(trouble.wait)

    async def close(self) -> None:
        """Close the session."""
        async with self._lock:
            client, self._client = self._client, None
            if client is not None:
                await self._in_thread(_log_out, client)
        self._thread.shutdown(wait=False)

    async def _in_thread(self, work: Callable[[Any], T], given: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, given)

    def _error(self, asked: str, trouble: Trouble, elapsed: float) -> RemoteError:
        words = f"{self.where}, asked {asked}: {trouble.seen}"
        if trouble.quoted:
            words += f": {self.quote(trouble.quoted)}"
        if trouble.passing and elapsed >= 1:
            words += f", repeatedly for {elapsed:.0f} s"
        remedy = trouble.remedy or ("check the BMC; then run the same command again" if trouble.passing else "")
        message = f"{words}; {remedy}" if remedy else words
        if trouble.status is not None and not trouble.passing and trouble.status not in (401, 403):
            return Refused(message, trouble.status)
        return RemoteError(message, passing=trouble.passing)

    def quote(self, words: object) -> str:
        """The BMC's message on one line, shortened, and without the credentials."""
        text = " ".join(str(words).split())
        for secret in (self.settings.password, self.settings.username):
            if len(secret) >= 4:
                text = text.replace(secret, "[secret]")
        return text if len(text) <= _LONGEST_QUOTE else f"{text[:_LONGEST_QUOTE]} ..."

    # --- in a thread ------------------------------------------------------------------------------------------------

    def _do(self, operation: Callable[[Any], T]) -> T:
        import requests
        from sushy import exceptions

        self._last = None
        try:
            if self._client is None:
                self._client = self._log_in()
            return operation(self._system())
        except (exceptions.SushyError, requests.RequestException, OSError, *MALFORMED) as error:
            trouble = diagnose(error, self.settings.address, self._last)
            if trouble.status == 401 and self._auth is not None and self._auth.get_session_key() is not None:
                # It accepted user name and password for a session, and does not know the session any more.
                trouble = replace(trouble, passing=True, remedy=_FORGETFUL)
            raise _Failed(trouble) from None

    def _log_in(self) -> Any:
        import sushy
        from sushy import exceptions
        from sushy.auth import SessionAuth, SessionOrBasicAuth
        from sushy.connector import Connector

        # Our errors contain what sushy logs; on standard error secrets in it would not be masked.
        logging.getLogger("sushy").propagate = False

        class OneTry(Connector):
            def _op(self, *words: Any, **options: Any) -> Any:
                options["server_side_retries_left"] = 0
                return super()._op(*words, **options)

        class Auth(SessionOrBasicAuth):
            """sushy's own class falls back to basic authentication also if the BMC is only busy, and then reports a
            wrong password."""

            def _do_authenticate(self) -> None:
                try:
                    SessionAuth._do_authenticate(self)
                except (exceptions.HTTPError, exceptions.MissingAttributeError) as error:
                    busy = getattr(error, "status_code", 0) in (429, 502, 503, 504)
                    if busy or self._session_auth_previously_successful:
                        raise
                    self._fallback_to_basic_authentication()

        def remember(response: Any) -> None:
            self._last = response

        connector = OneTry(
            self.settings.address,
            response_callback=remember,
            server_side_retries=1,
            default_request_timeout=READ_TIMEOUT,
            connect_timeout=CONNECT_TIMEOUT,
        )
        session = connector._session  # pyright: ignore[reportPrivateUsage] - sushy has no other way to it
        # No proxies, CA bundles or passwords of ~/.netrc from the environment; and nothing without TLS.
        session.trust_env = False
        session.adapters.clear()
        session.mount("https://", adapter(ca=self.settings.ca, fingerprint=self.settings.fingerprint))
        self._auth = Auth(self.settings.username, self.settings.password)
        return sushy.Sushy(self.settings.address, auth=self._auth, connector=connector)

    def _system(self) -> Any:
        from sushy import exceptions

        if self._path is None:
            self._path = self._find(self._client.get_system_collection().members_identities)
        try:
            system = self._client.get_system(self._path)
        except exceptions.ResourceNotFoundError:
            raise RemoteError(
                f"{self.where}: there is no System {self._path}; correct `systemId` in `bmcs`, or remove it"
            ) from None
        self._compare(system)
        return system

    def _find(self, paths: tuple[str, ...]) -> str:
        names = ", ".join(path.rstrip("/").rpartition("/")[2] for path in paths)
        wanted = self.settings.system_id
        if wanted is not None:
            for path in paths:
                if wanted.rstrip("/") in (path.rstrip("/"), path.rstrip("/").rpartition("/")[2]):
                    return path
            raise RemoteError(
                f"{self.where}: there is no System {wanted}; correct `systemId` in `bmcs`: it has {names}"
            )
        if len(paths) == 1:
            return paths[0]
        if not paths:
            raise RemoteError(f"{self.where} has no System: check that the BMC belongs to a server")
        raise RemoteError(f"{self.where} has {len(paths)} Systems: set `systemId` in `bmcs` to one of {names}")

    def _compare(self, system: Any) -> None:
        known = identities(system)
        if self._claimed is None or self._claimed in known:
            return
        raise RemoteError(
            f"{self.where} is another machine now: it reports {known[0] if known else 'nothing'} "
            f"({system.manufacturer} {system.model}, serial {system.serial_number}), and the one that was claimed is "
            f"{self._claimed}; correct `address` in `bmcs`, or put the machine back. If it was replaced on purpose, "
            "remove the old one from the state (`pulumi state delete`) and run up again"
        )


def word(member: Any) -> str | None:
    """Redfish's word for a constant of sushy; None if the BMC does not report it."""
    return None if member is None else str(member.value)


def identities(system: Any) -> list[str]:
    """The identifiers of a System: its UUID, and its serial number, because some BMCs do not always report the UUID."""
    return [str(word).lower() for word in (system.uuid, system.serial_number) if word]


def _log_out(client: Any) -> None:
    import requests
    from sushy import exceptions

    auth = client._auth
    # If the BMC does not answer, its session expires on its own; the work is done.
    with contextlib.suppress(exceptions.SushyError, requests.RequestException, *MALFORMED):
        auth.close()
    client._auth = None
    client._conn.close()
