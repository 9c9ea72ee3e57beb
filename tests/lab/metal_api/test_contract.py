"""Every implemented operation against the official description: requests made from it, answers judged by it."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import Case
from schemathesis.checks import CHECKS, load_all_checks
from schemathesis.schemas import BaseSchema

from lab.metal_api.operations import OPERATIONS as IMPLEMENTED
from lab.metal_api.ordering import UNSUPPORTED
from tests.lab.metal_api.contract import ABSENT, DESCRIPTION, Stage, described, example, staged
from tests.lab.metal_api.description import operations
from tests.lab.metal_api.harness import IDENTITY

pytestmark = [pytest.mark.servers, pytest.mark.skipif(not DESCRIPTION.is_file(), reason=ABSENT)]
BASE_URL = "https://api.equinix.com/metal/v1"
EXAMPLES = 10
"""Requests that are made up for each operation."""
NOT_LOOKED_AT = {
    ("POST", "/projects/{id}/ips"): {"cidr", "network", "vrf_id"},  # of a variant that the lab answers 501 to
    ("POST", "/ports/{id}/unassign"): {"vnid"},  # packngo sends a number
}
OPERATIONS = sorted(
    (method, path)
    for path, methods in IMPLEMENTED.items()
    for method in methods
    if DESCRIPTION.is_file() and method.lower() in described()["paths"].get(path, {})
)
NOT_HERE = {*UNSUPPORTED, "end_at", "facility", "ip_reservation_id"}
"""Fields that the lab answers 501 to where it does not take them."""
load_all_checks()
_CHECKS: Any = [
    CHECKS.get_one(name)
    for name in ("status_code_conformance", "content_type_conformance", "response_schema_conformance")
]


@cache
def _schema() -> BaseSchema:
    return schemathesis.openapi.from_dict(described())


def _sent(stage: Stage, case: Case[Any]) -> httpx.Response:
    """Ask, and judge the answer. What the lab says it cannot do is not an answer of Metal's, and not judged."""
    request = case.as_transport_kwargs(base_url=BASE_URL)
    answer = stage.ask(
        request["method"],
        request["url"],
        params=request.get("params"),
        json=request.get("json"),
        content=request.get("data"),
        headers={**request["headers"], "X-Auth-Token": IDENTITY.token},
    )
    if answer.status_code == 501:
        assert answer.json()["errors"][0].startswith("not implemented in the lab: ")
    else:
        assert answer.status_code < 500, answer.text
        case.validate_response(answer, checks=_CHECKS)
    return answer


@pytest.mark.parametrize(("method", "path"), OPERATIONS, ids=lambda value: value)
def test_contract(tmp_path: Path, method: str, path: str) -> None:
    operation = _schema()[path][method.lower()]
    known = example(method, path)
    with staged(tmp_path) as stage:
        at = {name: stage.ids[what] for name, what in known.at.items()}
        body = stage.filled(known.body)
        options: dict[str, Any] = {} if body is None else {"body": body, "media_type": "application/json"}
        good = operation.Case(path_parameters=at, **options)
        answer = _sent(stage, good)
        assert answer.is_success, f"the example is refused: {answer.text}"

        there, anywhere = operation.as_strategy(path_parameters=at), operation.as_strategy()

        rules = settings(
            max_examples=EXAMPLES,
            derandomize=True,
            database=None,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
        )

        @rules
        @given(case=st.one_of(there, there, anywhere) if at else anywhere, completed=st.booleans())
        def as_described(case: Case[Any], completed: bool) -> None:
            if completed and isinstance(body, dict) and isinstance(case.body, dict):
                case.body = {**case.body, **body}
            _sent(stage, case)

        as_described()


def _fields(schema: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The fields of a body, each with its schema; those of all variants where there are some."""
    if "$ref" in schema:
        return _fields(described()["components"]["schemas"][schema["$ref"].rpartition("/")[2]])
    found: dict[str, dict[str, Any]] = dict(schema.get("properties", {}))
    for part in [*schema.get("allOf", ()), *schema.get("oneOf", ())]:
        found |= _fields(part)
    return found


_WRONG: dict[str, Any] = {"string": 7, "boolean": "true", "integer": "1", "number": "1", "array": 7, "object": 7}
WITH_FIELDS = [(method, path) for method, path in OPERATIONS if isinstance(example(method, path).body, dict)]


@pytest.mark.parametrize(("method", "path"), WITH_FIELDS, ids=lambda value: value)
def test_a_field_of_a_wrong_type_is_refused(tmp_path: Path, method: str, path: str) -> None:
    body = described()["paths"][path][method.lower()]["requestBody"]["content"]["application/json"]["schema"]
    known, accepted = example(method, path), list[str]()
    with staged(tmp_path) as stage:
        at = {name: stage.ids[what] for name, what in known.at.items()}
        for name, schema in _fields(body).items():
            if name in NOT_LOOKED_AT.get((method, path), ()):
                continue
            wrong = {**stage.filled(known.body), name: _WRONG[schema.get("type", "object")]}
            answer = stage.ask(method, BASE_URL + path.format(**at), json=wrong)
            assert answer.status_code != 501 or name in NOT_HERE, f"{name}: {answer.text}"
            accepted += [] if answer.status_code in (422, 501) else [f"{name}: {answer.status_code}"]
    assert accepted == []


def test_what_is_not_implemented_says_so(tmp_path: Path) -> None:
    absent = [(method, path) for path, method in operations(described()) if (method, path) not in OPERATIONS]
    assert absent
    with staged(tmp_path) as stage:
        for method, path in absent:
            asked = re.sub(r"\{\w+\}", IDENTITY.organization_id, f"/metal/v1{path}")
            answer = stage.ask(method, asked)
            assert (answer.status_code, answer.json()) == (
                501,
                {"errors": [f"not implemented in the lab: {method} {asked}"]},
            )
