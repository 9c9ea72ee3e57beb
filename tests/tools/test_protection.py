"""What a state says of protection: what must stay, and whether there is a cluster that it is for."""

from __future__ import annotations

from typing import Any

from tools.state import GATE, Deployment

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


def test_a_cluster_is_what_has_passed_its_gate() -> None:
    gate = {"urn": "urn:pulumi:da11::metal-ipi::x::g", "type": GATE, "outputs": {"kind": "bootstrap-complete"}}
    assert _state(_KEYS, gate).is_formed()
    assert not _state(_KEYS, {**gate, "outputs": {"kind": "api-answers"}}, {**gate, "outputs": None}).is_formed()
    assert not _state(_KEYS, {**gate, "type": "metal-ipi:index:Removal"}).is_formed()
