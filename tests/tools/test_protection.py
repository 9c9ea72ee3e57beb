"""What a state says of protection: what must stay, and whether there is a cluster that it is for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tools import session
from tools.engine import Engine
from tools.errors import StackError
from tools.layout import Layout
from tools.screen import Screen
from tools.session import Session
from tools.state import Deployment

_KEYS = {"urn": "urn:pulumi:da11::metal-ipi::metal-ipi:index:ClusterKeys::keys", "type": "x", "protect": True}
_OTHER = {"urn": "urn:pulumi:da11::metal-ipi::x::other", "type": "x"}


def _state(*resources: dict[str, Any]) -> Deployment:
    return Deployment(document={"version": 3, "deployment": {"manifest": {}, "resources": list(resources)}})


def test_what_must_stay_is_named() -> None:
    assert _state(_KEYS, _OTHER).protected() == ["keys"]
    assert _state(_OTHER).protected() == _state().protected() == []


def test_nothing_but_the_protection_goes() -> None:
    bare = {key: value for key, value in _KEYS.items() if key != "protect"}
    assert _state(_KEYS, _OTHER).without_protection() == _state(bare, _OTHER).document
    assert _state(_KEYS).protected() == ["keys"], "the state itself stays as it is"


class _Down(Session):
    """A `down` after a run that was killed: the engine's own lock is still there."""

    def __init__(self, layout: Layout, state: Deployment) -> None:
        super().__init__(layout, Engine(path=Path("none"), version="0"), lambda: None, Screen())
        self.state, self.locked, self.done = state, True, list[str]()
        self.command: Any = object()

    def cancel(self) -> None:
        self.locked = False
        self.done.append("unlock")

    def prepare(self) -> Any:
        return self

    def imported(self, document: dict[str, Any]) -> None:
        assert not self.locked, "the stack is currently locked by 1 lock(s)"
        self.done.append("import")
        self.state = Deployment(document=document)

    def _know_the_cluster(self, operation: str, state: Deployment) -> None:
        return

    def _sweep(self, state: Deployment, *, destroying: bool) -> None:
        self.done.append("sweep")

    def _down(self, stack: Any) -> None:
        self.done.append(f"destroy, protected: {self.state.protected()}")


def _goes_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: Deployment, config: dict[str, Any] | None = None
) -> _Down:
    (tmp_path / "stacks").mkdir()
    (tmp_path / "stacks" / "Pulumi.da11.yaml").write_text(f"config: {json.dumps(config or {})}\n")
    layout = Layout(root=tmp_path, stack="da11")
    layout.running.parent.mkdir(parents=True)
    layout.running.write_text(json.dumps({"operation": "up", "started": "2026-01-01T00:00:00+00:00"}))
    it = _Down(layout, state)
    monkeypatch.setattr(session, "export", lambda layout, command: it.state)
    monkeypatch.setattr(session, "import_", lambda layout, command, document: it.imported(document))
    monkeypatch.setattr(session, "locks", lambda layout: ["lock"] if it.locked else [])
    return it


def test_what_a_killed_run_left_protected_may_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    it = _goes_down(tmp_path, monkeypatch, _state(_KEYS, _OTHER), {"metal-ipi:protect": False})
    it.run("down")
    assert it.done == ["unlock", "sweep", "import", "destroy, protected: []"]


def test_a_protected_cluster_is_refused_before_anything_is_touched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where no gate has passed: a cluster may be there that no run saw."""
    it = _goes_down(tmp_path, monkeypatch, _state(_KEYS))
    with pytest.raises(StackError, match="is protected, and nothing was deleted"):
        it.run("down")
    assert it.done == [] and it.locked
