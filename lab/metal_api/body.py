"""Reads the fields of a request's body, and gathers everything that is wrong with them."""

from __future__ import annotations

import json
import math
from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any, cast

from starlette.requests import Request

from lab.metal_api.exceptions import BadRequest, Unprocessable
from lab.metal_api.records import Json


async def value_of(request: Request) -> Any:
    """The request's JSON; None for an empty body."""
    raw = await request.body()
    try:
        return parsed(raw) if raw else None
    except ValueError:
        raise BadRequest("Invalid JSON in the request body") from None


def parsed(text: str | bytes) -> Any:
    """JSON that can be answered again: no NaN, nothing infinite, no half of a surrogate pair. Raises ValueError."""
    try:
        value = json.loads(text, parse_constant=_finite, parse_float=_finite)
        json.dumps(value, ensure_ascii=False).encode()
    except RecursionError as error:
        raise ValueError(str(error)) from error
    return value


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


async def body_of(request: Request) -> Json:
    """The request's JSON object; an empty body is an empty object."""
    document = await value_of(request)
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise Unprocessable("The request body must be a JSON object")
    return cast("Json", document)


class Body:
    """A body whose fields are asked for one by one. A field that is not given, or null, is None.

    What is wrong is noted in `problems`; `check` refuses the request with all of them. Fields that nobody asks for are
    ignored, as the real API does.
    """

    def __init__(self, document: Json, problems: list[str] | None = None) -> None:
        self.document = document
        self.problems: list[str] = [] if problems is None else problems

    def check(self) -> None:
        """Raise Unprocessable if anything was wrong."""
        if self.problems:
            raise Unprocessable(*self.problems)

    def text(self, name: str, *, required: bool = False) -> str | None:
        """A string; one that is `required` must be there and not blank."""
        value = self.document.get(name)
        if value is not None and not isinstance(value, str):
            self._problem(name, "must be a string")
            return None
        if required and not (value or "").strip():
            self._problem(name, "can't be blank")
        return value

    def choice(self, name: str, options: Collection[str], *, required: bool = False) -> str | None:
        """One of some strings."""
        value = self.document.get(name)
        if value is None and not required:
            return None
        if not isinstance(value, str) or value not in options:
            self._problem(name, "is not included in the list")
            return None
        return value

    def flag(self, name: str) -> bool | None:
        """True or false."""
        value = self.document.get(name)
        if value is not None and not isinstance(value, bool):
            self._problem(name, "must be true or false")
            return None
        return value

    def number(self, name: str, *, least: float | None = None) -> float | None:
        """A number."""
        value = self.document.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            self._problem(name, "is not a number")
            return None
        if least is not None and value < least:
            self._problem(name, f"must be greater than or equal to {least:g}")
        return value

    def integer(self, name: str, *, least: int | None = None) -> int | None:
        """A whole number."""
        value = self.number(name, least=least)
        if value is not None and value != int(value):
            self._problem(name, "must be an integer")
            return None
        return None if value is None else int(value)

    def moment(self, name: str, *, assume_utc: bool = False) -> datetime | None:
        """A time, RFC 3339, as UTC has it. One without an offset is refused unless it is taken for UTC."""
        text = self.text(name)
        if not text:
            return None
        try:
            moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
            if assume_utc and moment.tzinfo is None:
                moment = moment.replace(tzinfo=UTC)
            if moment.tzinfo is not None:
                return moment.astimezone(UTC)
        except (ValueError, OverflowError):
            pass
        self._problem(name, "is not a valid time")
        return None

    def texts(self, name: str) -> list[str] | None:
        """A list of strings."""
        value = self.document.get(name)
        if value is None:
            return None
        if not isinstance(value, list) or not all(isinstance(entry, str) for entry in cast("list[Any]", value)):
            self._problem(name, "must be a list of strings")
            return None
        return list(cast("list[str]", value))

    def objects(self, name: str) -> list[Json] | None:
        """A list of objects."""
        value = self.document.get(name)
        if value is None:
            return None
        if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in cast("list[Any]", value)):
            self._problem(name, "must be a list of objects")
            return None
        return list(cast("list[Json]", value))

    def mapping(self, name: str) -> Json | None:
        """An object, or one written as a string (packngo writes customdata so), which may be empty."""
        value = self.document.get(name)
        if value is None:
            return None
        try:
            value = parsed(value or "{}") if isinstance(value, str) else value
        except ValueError:
            value = None
        if not isinstance(value, dict):
            self._problem(name, "must be a JSON object")
            return None
        return cast("Json", value)

    def _problem(self, name: str, reason: str) -> None:
        self.problems.append(f"{name.replace('_', ' ').capitalize()} {reason}")
