"""Errors of the emulated API.

ApiError            status and messages, as answered
├── Unauthorized    401, `error`
├── NotFound        404
├── Unprocessable   422
├── BadRequest      400
├── RouterFailed    503
└── NotImplementedInLab 501
"""

from __future__ import annotations

import traceback


class ApiError(Exception):
    """Something the API answers with an error status; messages in the API's own words where they are known."""

    status = 500

    def __init__(self, *messages: str) -> None:
        super().__init__(", ".join(messages))
        self.messages = messages

    def body(self) -> dict[str, object]:
        """The JSON document of the answer."""
        return {"errors": list(self.messages)}


def error_texts(error: Exception) -> list[str]:
    """The error text for a record whose operation is carried out after the request was answered.

    An error in the lab itself is recorded there too, with its traceback in the lab's log, so that it does not fail
    another request.
    """
    if isinstance(error, ApiError):
        return list(error.messages)
    traceback.print_exception(error)
    return [f"Internal error: {type(error).__name__}: {error}"]


class Unauthorized(ApiError):
    """No token, or an unknown one."""

    status = 401

    def __init__(self) -> None:
        super().__init__("Invalid authentication token")

    def body(self) -> dict[str, object]:
        """The real API uses the singular key here."""
        return {"error": self.messages[0]}


class NotFound(ApiError):
    """No such thing, or no longer."""

    status = 404

    def __init__(self, message: str = "Not found") -> None:
        super().__init__(message)


class BadRequest(ApiError):
    """The body is not a JSON object."""

    status = 400


class Unprocessable(ApiError):
    """The body is understood and refused; one message per problem."""

    status = 422


class RouterFailed(ApiError):
    """The change was made, but the facility's router does not follow it: asking again is harmless."""

    status = 503


class NotImplementedInLab(ApiError):
    """The real API can do this; the lab does not pretend to."""

    status = 501

    def __init__(self, what: str) -> None:
        super().__init__(f"not implemented in the lab: {what}")
