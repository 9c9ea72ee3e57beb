"""Pictures of recorded clusters: as somebody saw them last, and in order whatever names there are."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import golden
from tests.tools.picture_resources import SECRET, UNKNOWN, event, machines, recorded, resource
from tests.tools.svg_geometry import all_text, boxes, muddled
from tools.pictures import model, topology
from tools.pictures.drawing import fit, measure
from tools.pictures.shapes import Machine, Name, Network, Pool, Topology

_DEVICE = "equinix-metal:index/device:Device"
_RECORDINGS = ("lab", "vip", "rack7", "hybrid", "hybrid-change", "elastic")


@pytest.mark.parametrize("name", _RECORDINGS)
def test_recorded_clusters_look_as_they_did(name: str) -> None:
    picture = topology.svg(recorded(name))
    assert muddled(picture) == []
    golden.check(f"topology-{name}.svg", picture)


def test_what_goes_away_is_drawn_as_it_was() -> None:
    (device,) = machines(1)
    gone = model.from_events([event(device["urn"], _DEVICE, "delete", old=device)])
    assert [(machine.name, machine.public, machine.change) for machine in gone.machines] == [
        ("t-worker-0", "198.51.100.0", "delete")
    ]
    assert "- going away" in all_text(topology.svg(replace(gone, names=(Name(name="a", values=("b",)),))))


def test_a_replacement_is_one_machine_with_the_new_ones_values() -> None:
    (device,) = machines(1)
    new = {**device, "inputs": {**device["inputs"], "plan": "m3.large.x86", "accessPublicIpv4": UNKNOWN}}
    steps: list[tuple[str, dict[str, Any]]] = [
        ("create-replacement", {"new": new}),
        ("replace", {"old": device, "new": new}),
        ("delete-replaced", {"old": device}),
    ]
    found = model.from_events(event(device["urn"], _DEVICE, op, **states) for op, states in steps)
    assert [(m.kind, m.public, m.change) for m in found.machines] == [("m3.large.x86", "known after up", "replace")]


def test_an_api_that_others_balance_and_names_that_others_keep() -> None:
    outputs = {
        "cluster": {"name": "t", "domain": "t.example.com", "version": "4.21.3"},
        "api": {"url": "https://api.t.example.com:6443", "address": "192.0.2.9"},
        "dns": {"needed": ["api.t.example.com. A 192.0.2.9", "w.t.example.com. A 192.0.2.10"]},
    }
    found = model.from_state([resource("pulumi:pulumi:Stack", "t", outputs=outputs), *machines(1)])
    assert found.api == ("the facility's load balancer", "192.0.2.9")
    assert found.names == (Name(name="api.t.example.com", values=("192.0.2.9",)),)
    assert (found.nodes, found.zone) == (1, "kept by hand")


def test_no_secret_is_drawn() -> None:
    values: dict[str, Any] = {
        "hostname": SECRET,
        "plan": SECRET,
        "accessPublicIpv4": SECRET,
        "ipxeScriptUrl": "https://x/hunter2hunter2",
    }
    state = [*machines(1), resource(_DEVICE, "x-device", rootPassword="hunter2hunter2", **values)]
    picture = topology.svg(model.from_state(state))
    assert "hunter2" not in picture and "[secret]" in picture


def test_a_thousand_machines_are_few_boxes_and_quick() -> None:
    state = [*machines(3, role="control-plane"), *machines(1000)]
    started = time.process_time()
    picture = topology.svg(model.from_state(state))
    assert time.process_time() - started < 1
    assert "995 more" in all_text(picture) and len(boxes(picture)) < 30
    assert muddled(picture) == []


def test_changed_machines_are_never_among_those_that_are_collapsed() -> None:
    cluster = model.from_state(machines(100))
    changed = [
        replace(machine, change="update") if machine.name.endswith("-77") else machine for machine in cluster.machines
    ]
    text = all_text(topology.svg(replace(cluster, machines=tuple(changed), planned=True)))
    assert "t-worker-77 " in text.replace("\n", " ") and "~ changed" in text


def test_nothing_at_all_is_a_picture_too() -> None:
    assert muddled(topology.svg(model.from_state([]))) == []


_TEXT = st.one_of(
    st.text(max_size=120),
    st.from_regex(r"[a-z0-9-]{1,120}", fullmatch=True),
    st.sampled_from(
        ["</text><script>alert(1)</script>", "&amp;\"'<!--", "]]>", "\x00\x1b[31m\u202e\ud800", "W" * 80, UNKNOWN]
    ),
)
_CHANGES = st.sampled_from(["create", "update", "replace", "delete", "same"])
_ROLES = st.sampled_from(["control-plane", "worker", "bootstrap"])
_TUPLES = st.lists(_TEXT, max_size=4).map(tuple)
_CLUSTERS = st.builds(
    Topology,
    name=_TEXT, domain=_TEXT, version=_TEXT, platform=_TEXT, place=_TEXT, zone=_TEXT, api=st.tuples(_TEXT, _TEXT),
    machines=st.lists(
        st.builds(
            Machine, name=_TEXT, role=_ROLES, kind=_TEXT, public=_TEXT, private=_TEXT, mac=_TEXT, bmc=_TEXT,
            notes=_TUPLES, gone=st.booleans(), change=_CHANGES,
        ),
        max_size=8,
    ).map(tuple),
    networks=st.lists(
        st.builds(Network, name=_TEXT, detail=_TEXT, roles=st.lists(_ROLES, unique=True).map(tuple), change=_CHANGES),
        max_size=4,
    ).map(tuple),
    names=st.lists(st.builds(Name, name=_TEXT, values=_TUPLES, change=_CHANGES), max_size=3).map(tuple),
    nodes=st.integers(0, 10**6),
    pools=st.lists(st.builds(Pool, name=_TEXT, addresses=_TEXT, how=_TEXT, change=_CHANGES), max_size=3).map(tuple),
    planned=st.booleans(),
)  # fmt: skip


@settings(max_examples=20, deadline=None)
@given(_CLUSTERS)
def test_any_names_stay_text_in_their_places(cluster: Topology) -> None:
    picture = topology.svg(cluster)
    assert muddled(picture) == []
    assert "<script" not in picture and "\u202e" not in picture


@given(st.text(), st.floats(0, 300), st.booleans())
def test_a_text_is_cut_to_its_room(text: str, room: float, keep_end: bool) -> None:
    shown = fit(text, room, 12, keep_end=keep_end)
    assert shown in (text, "…", "") or measure(shown, 12) <= room
    assert measure(shown, 12) <= max(room, measure("…", 12))


def test_the_pool_of_a_machine_tells_its_role() -> None:
    found = model.from_state([*machines(1, prefix="worker"), *machines(1, role="control-plane", prefix="worker")])
    assert [machine.name for machine in found.of("control-plane")] == ["worker-control-plane-0"]
    assert [machine.name for machine in found.of("worker")] == ["worker-worker-0"]
