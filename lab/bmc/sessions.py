"""Redfish logins (DSP0266, session management): a token instead of a password with every request."""

from __future__ import annotations

import hmac
import secrets

from werkzeug.wrappers import Request

ROOT = "/redfish/v1/SessionService"
COLLECTION = f"{ROOT}/Sessions"


class Sessions:
    """The sessions until the BMC restarts."""

    def __init__(self, username: str, password: str) -> None:
        self._username = username
        self._password = password
        self.tokens: dict[str, str] = {}
        """Token by session id."""

    def log_in(self, username: object, password: object) -> tuple[str, str] | None:
        """Session id and token, None for wrong credentials."""
        if not self._right(str(username), str(password)):
            return None
        session, token = secrets.token_hex(4), secrets.token_hex(16)
        self.tokens[session] = token
        return session, token

    def admits(self, request: Request) -> bool:
        """Whether a request has a token of a session, or name and password."""
        token = request.headers.get("X-Auth-Token")
        if token is not None:
            return any(hmac.compare_digest(token, known) for known in self.tokens.values())
        login = request.authorization
        return login is not None and login.type == "basic" and self._right(login.username or "", login.password or "")

    def _right(self, username: str, password: str) -> bool:
        name = hmac.compare_digest(username.encode(), self._username.encode())
        return hmac.compare_digest(password.encode(), self._password.encode()) and name
