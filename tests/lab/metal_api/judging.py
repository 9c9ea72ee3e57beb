"""Every answer that a test gets is compared with the official description, where that is here."""

from __future__ import annotations

from functools import cache
from typing import Any

import httpx
import schemathesis

from tests.lab.metal_api.contract import DESCRIPTION, described
from tests.lab.metal_api.harness import World

_BASE = "/metal/v1"


@cache
def _schema() -> Any:
    return schemathesis.openapi.from_dict(described())


async def _judge(response: httpx.Response) -> None:
    request = response.request
    if not request.url.path.startswith(_BASE):
        return
    operation = _schema().find_operation_by_path(request.method, request.url.path.removeprefix(_BASE))
    assert operation is not None, f"{request.method} {request.url.path} is not described"
    await response.aread()
    operation.validate_response(response)


def judged(lab: World) -> World:
    """A world that fails the test as soon as it answers otherwise than described."""
    if DESCRIPTION.is_file():
        lab.client.event_hooks["response"].append(_judge)
    return lab
