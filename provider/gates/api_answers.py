"""api-answers: an HTTPS URL answers 200 with a certificate of the cluster's CA."""

from __future__ import annotations

from provider.gates import Check, Observation, Spec
from provider.gates.https import Answer, Api
from provider.resource import Context


def open_check(context: Context, spec: Spec, old: Spec | None) -> Check | None:
    """Waits again when another URL or CA is given; other nodes or log directories are no reason."""
    same = old is not None and all(spec.get(key) == old.get(key) for key in ("url", "caPem"))
    return None if same else ApiAnswers(spec)


class ApiAnswers:
    """See `Check`."""

    def __init__(self, spec: Spec) -> None:
        self._url = str(spec["url"])
        self._api = Api(spec)

    async def look(self, elapsed: float) -> Observation:
        return evaluate(self._url, await self._api.get())


def evaluate(url: str, answer: Answer) -> Observation:
    """Any 2xx will do."""
    if answer.problem:
        return Observation(passed=False, text=f"{url}: {answer.problem}")
    return Observation(passed=True, text=f"{url}: HTTP {answer.status}")
