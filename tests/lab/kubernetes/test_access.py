"""Requests of the lab's own."""

from __future__ import annotations

import httpx
import pytest

from lab.errors import LabError
from lab.kubernetes.access import send


def _api(*answers: int) -> httpx.Client:
    """Which answers with these codes, one after the other."""
    left = list(answers)

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(
            left.pop(0), json={"message": "storage is (re)initializing"}, headers={"Retry-After": "0"}
        )

    return httpx.Client(base_url="http://api", transport=httpx.MockTransport(answer))


def test_a_question_is_repeated_until_the_api_server_keeps_the_kind_in_memory() -> None:
    with _api(429, 429, 200) as client:
        assert send(client, "GET", "/apis/x")


def test_a_change_that_is_refused_so_is_not_repeated() -> None:
    """As an eviction that a budget forbids."""
    with _api(429, 200) as client, pytest.raises(LabError, match="POST /evict: 429 storage is"):
        send(client, "POST", "/evict")
