"""Userdata of machines that run from memory: small, because the state has it twice for each, and what it points to."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
import trustme

from tests.mocks import Recorder, plain
from tests.stacks.answers import declared, node_files

_LARGEST = 900
"""Bytes. Of the files' addresses and hashes, and of the host name, nearly all."""


def _given(recorder: Recorder, name: str) -> str:
    return recorder.inputs(f"{name}-device")["userData"]


def _sources(text: str) -> list[Mapping[str, Any]]:
    return json.loads(text)["ignition"]["config"]["merge"]


@pytest.mark.parametrize("private", [False, True])
def test_it_is_a_name_and_the_places_of_what_the_pool_shares_and_of_an_identity(private: bool) -> None:
    authority = trustme.CA().cert_pem.bytes().decode()
    recorder = declared("lab", **({"artifacts": {"type": "ssh", "caBundle": authority}} if private else {}))
    for pool, role, number in (("workers", "worker", 2), ("control-plane", "control-plane", 3)):
        ((file, shared),) = recorder.inputs(f"{pool}-ignition")["files"].items()
        scheme = "http" if private else "https"  # whom to trust for https is said in the file itself
        for node in (f"lab-{role}-{each}" for each in range(number)):
            text = _given(recorder, node)
            first, second = _sources(text)
            assert first["source"] == f"{scheme}://boot.test/x/{file}" and first["verification"]["hash"]
            assert second["source"].startswith(f"https://boot.test/x/{node}.") and second["verification"]["hash"]
            assert node_files(text) == {"/etc/hostname": f"{node}.lab.facility.test\n"}
            assert "security" not in json.loads(text)["ignition"] and len(text) < _LARGEST
        config = json.loads(shared)
        assert [source["source"].rpartition("/")[2] for source in _sources(shared)] == [
            "master" if role == "control-plane" else "worker"
        ]
        assert len(config["ignition"]["security"]["tls"]["certificateAuthorities"]) == 1 + private
        assert config["passwd"]["users"][0]["sshAuthorizedKeys"]
        assert "/etc/hostname" not in (node_files(shared) if role == "control-plane" else {})


def test_what_is_shared_is_named_by_its_content_and_earlier_ones_stay() -> None:
    """Machines that are there keep their userdata, and fetch by its hash at every boot."""
    first, second = (
        plain(declared("lab", ssh={"authorizedKeys": keys}).one("workers-ignition").inputs)
        for keys in ([], ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAqesxf+eAriIqhUPuwKKCiWRzC4Kkc/hQ1zZk6At3G6 ann"])
    )
    assert first["keeps"] is second["keeps"] is True
    assert set(first["files"]) & set(second["files"]) == set()


@pytest.mark.parametrize(("stack", "kind"), [("hybrid", "EquinixMetalMachine"), ("rack7", "RedfishServerMachine")])
def test_machines_of_earlier_states_are_known_by_the_component_that_they_stood_in(stack: str, kind: str) -> None:
    requests = declared(stack, preview=True).requests
    pool = {"hybrid": ("hybrid-worker-0-device", "hybrid-worker-0-bond"), "rack7": ("rack7-worker-0-server",)}[stack]
    for name in pool:
        (alias,) = requests[name].aliases
        former = f"metal-ipi:cluster:NodePool$metal-ipi:machines:{kind}::{stack}-worker-0"
        assert alias.spec.parentUrn.endswith(former), alias
