"""Reads what clients send: JSON, and the fields of a body, which a model below `Input` declares."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from typing import Annotated, Any, Self, cast

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError
from starlette.requests import Request

from lab.metal_api.exceptions import BadRequest, Unprocessable
from lab.metal_api.records import Json
from lab.metal_api.state import timestamp

_REASONS = {
    "missing": "can't be blank",
    "string_type": "must be a string",
    "bool_type": "must be true or false",
    "int_type": "must be an integer",
    "float_type": "is not a number",
    "list_type": "must be a list",
    "dict_type": "must be a JSON object",
    "model_type": "must be a JSON object",
    "literal_error": "is not included in the list",
    "extra_forbidden": "is not known",
}
"""pydantic's types of errors in the API's words."""
_MESSAGE = "message"


class Input(BaseModel):
    """A body. A field that is null was not given; fields that are not declared are ignored, as the real API does."""

    model_config = ConfigDict(strict=True, frozen=True)

    @classmethod
    def of(cls, document: Json) -> Self:
        """Raises Unprocessable with everything that is wrong."""
        try:
            return cls.model_validate({name: value for name, value in document.items() if value is not None})
        except ValidationError as error:
            raise Unprocessable(*dict.fromkeys(map(_message, error.errors()))) from None

    def given(self, *names: str) -> Json:
        """The given values of some fields."""
        return {name: getattr(self, name) for name in names if name in self.model_fields_set}


class ControlInput(Input):
    """A body of one of the lab's own routes, which refuse what they do not know."""

    model_config = ConfigDict(extra="forbid")


def problem(message: str) -> PydanticCustomError:
    """What a validator raises for a message that is whole by itself."""
    return PydanticCustomError(_MESSAGE, "{message}", {"message": message})


def _message(error: ErrorDetails) -> str:
    if error["type"] == _MESSAGE:
        return error["msg"]
    name = ".".join(str(part) for part in error["loc"]).replace("_", " ").capitalize()
    return f"{name} {_REASONS.get(error['type'], error['msg'])}"


def _not_blank(text: str) -> str:
    if not text.strip():
        raise PydanticCustomError("missing", "blank")
    return text


def _mapping(value: object) -> object:
    """packngo writes customdata as a string, which may be empty."""
    try:
        return parsed(value or "{}") if isinstance(value, str) else value
    except ValueError:
        return value


def _moment(text: str) -> str:
    try:
        moment = datetime.fromisoformat(text)
        return timestamp(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
    except (ValueError, OverflowError):
        raise problem(f"{text} is not a valid time") from None


NotBlank = Annotated[str, AfterValidator(_not_blank)]
Mapping = Annotated[Json, BeforeValidator(_mapping)]
Moment = Annotated[str, AfterValidator(_moment)]
"""A time in RFC 3339, as the API writes it; one without an offset is taken for UTC."""


async def body_of(request: Request) -> Json:
    """The request's JSON object; an empty body is an empty object."""
    raw = await request.body()
    try:
        document = parsed(raw) if raw else {}
    except ValueError:
        raise BadRequest("Invalid JSON in the request body") from None
    if not isinstance(document, dict):
        raise Unprocessable("The request body must be a JSON object")
    return cast("Json", document)


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
