"""How the provider is asked for what is in a project, and what becomes of its answers."""

from __future__ import annotations

import json
import sys

import pytest

from tests.tools.listed import NOW, thing
from tools import metal
from tools.errors import RecoveryFailed
from tools.metal import Found, MetalApi


def answered(monkeypatch: pytest.MonkeyPatch, *printed: object, status: int = 0) -> None:
    """Have the provider's command print JSON documents, once it was told the token."""
    lines = [json.dumps(each) for each in printed]
    code = f"import sys; assert 'secret' in sys.stdin.read(); print(*{lines!r}, sep='\\n'); sys.exit({status})"
    monkeypatch.setattr(metal, "_COMMAND", (sys.executable, "-IS", "-c", code))


def test_a_listing(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = {"kind": "machine", "id": "w", "name": "w", "project": "p", "marks": {"stack": "t", "cluster": "c.test"}}
    things = [{**machine, "created": when} for when in ("2026-06-01T12:00:00Z", None, "some day")]
    answered(monkeypatch, {"resources": things, "projects": [], "others": {"p": 3}})
    expected = tuple(thing("w", created=when) for when in (NOW, None, None))
    assert MetalApi("secret").find({"p"}) == Found(resources=expected, others={"p": 3})


def test_what_could_not_be_deleted_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    over = [{"id": id, "kind": "machine", "why": why} for id, why in (("a", ""), ("b", "busy"))]
    answered(monkeypatch, *over, status=1)
    with pytest.raises(RecoveryFailed, match=r"1 of 2 resources could not be deleted\n  why: machine b \(b\): busy\n"):
        MetalApi("secret").delete([thing("a"), thing("b")], told.append)
    assert told == ["machine a (a): deleted", "machine b (b): NOT deleted"]


@pytest.mark.parametrize("ending", ["sys.exit(1)", "sys.exit(2)", "os.kill(os.getpid(), 9)"])
def test_an_answer_that_is_none_is_an_error_with_its_cause(monkeypatch: pytest.MonkeyPatch, ending: str) -> None:
    code = f"import os, sys; print('no such thing', file=sys.stderr, flush=True); {ending}"
    monkeypatch.setattr(metal, "_COMMAND", (sys.executable, "-IS", "-c", code))
    with pytest.raises(RecoveryFailed, match="cannot find out what remains in the project\n  why: no such thing"):
        MetalApi("secret").find(["p"])


def test_the_provider_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The real command; the rest of it is run with the lab's Metal API, in test_interrupted_runs.py."""
    monkeypatch.setenv("METAL_API_URL", "no URL")
    with pytest.raises(RecoveryFailed, match=r"why: .*endpoint"):
        MetalApi("secret").find(["p"])
