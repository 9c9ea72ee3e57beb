"""A world for each test, whose answers are compared with the official description where that is here."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis

from tests.lab.metal_api.contract import DESCRIPTION, described
from tests.lab.metal_api.harness import API, World, world


@pytest.fixture
async def lab(tmp_path: Path) -> AsyncGenerator[World, None]:
    async with world(tmp_path) as made:
        if DESCRIPTION.is_file():
            made.client.event_hooks["response"].append(_judge)
        yield made


@cache
def _schema() -> Any:
    return schemathesis.openapi.from_dict(described())


async def _judge(response: httpx.Response) -> None:
    path = response.request.url.path.removeprefix(API)
    operation = _schema().find_operation_by_path(response.request.method, path)
    if operation is None or response.status_code in (401, 403, 404, 501, 503):
        return  # not described, or refused as a whole
    await response.aread()
    operation.validate_response(response)
