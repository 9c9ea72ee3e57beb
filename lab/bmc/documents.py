"""Builds a BMC's answers: JSON documents, collections, errors (DSP0266)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from werkzeug.wrappers import Response

Json = dict[str, Any]


def to_json(document: Json) -> Response:
    """A document."""
    return Response(json.dumps(document), content_type="application/json", headers={"OData-Version": "4.0"})


def listing(kind: str, paths: Iterable[str]) -> Json:
    """A collection of the resources at these paths, without its own path."""
    members = [{"@odata.id": path} for path in paths]
    about = {"@odata.type": f"#{kind}Collection.{kind}Collection", "Name": f"{kind} Collection"}
    return {**about, "Members": members, "Members@odata.count": len(members)}


def collection(kind: str, path: str, names: list[str], **more: Any) -> Response:
    """A collection at a path: its members' names are the last parts of theirs."""
    return to_json({"@odata.id": path, **listing(kind, [f"{path}/{name}" for name in names]), **more})


def message(code: str, text: str) -> Json:
    """One of the messages that errors and tasks have."""
    return {"@odata.type": "#Message.v1_0_0.Message", "MessageId": code, "Message": text}


def error(status: int, code: str, text: str, headers: dict[str, str] | None = None) -> Response:
    """A refusal."""
    answer = to_json({"error": {"code": code, "message": text, "@Message.ExtendedInfo": [message(code, text)]}})
    answer.status_code = status
    answer.headers.update(headers or {})
    return answer
