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


def test_a_rehearsal_tells_what_will_be_known() -> None:
    lab = recorded("lab")
    assert [machine.name for machine in lab.of("worker")] == ["lab-worker-0", "lab-worker-1"]
    assert {machine.public for machine in lab.machines} == {"known after up"}
    assert lab.api == ("DNS round robin", "")
    assert lab.changes == {"create"}
    assert "preview: + all of it, from nothing" in all_text(topology.svg(lab))


def test_an_address_of_the_apis_own() -> None:
    vip = recorded("vip")
    assert vip.api == ("announced by kube-vip over BGP", "known after up")
    assert vip.pools == (Pool(name="elastic", addresses="4 addresses", how="MetalLB, BGP as /30", change="create"),)
    assert vip.networks[-1].name == "BGP" and vip.networks[-1].roles == ("control-plane", "worker", "bootstrap")


def test_a_rack_shows_its_bmcs() -> None:
    rack = recorded("rack7")
    (worker,) = rack.of("worker")
    assert (worker.public, worker.mac, worker.bmc) == ("192.0.2.100", "52:54:00:72:61:03", "192.0.2.68")
    (bootstrap,) = rack.of("bootstrap")
    assert (bootstrap.kind, bootstrap.bmc) == ("server worker-0, lent", "192.0.2.68")
    assert [network.name for network in rack.networks] == ["machines' network", "BMC network"]


def test_a_running_cluster() -> None:
    hybrid, elastic = recorded("hybrid"), recorded("elastic")
    assert not hybrid.planned and not hybrid.changes
    assert hybrid.place == "metro lb, facility lab1"
    assert hybrid.networks[2:] == (
        Network(name="VLAN 1100 storage", detail="10.64.0.0/28, Metal's gateway", roles=("control-plane", "worker")),
        Network(name="VLAN 1200 backup", detail="10.99.0.0/24", roles=("worker",)),
    )
    (bootstrap,) = hybrid.of("bootstrap")
    assert bootstrap.gone and "removed after the installation" in all_text(topology.svg(hybrid))
    assert elastic.networks[-1].detail == "AS 65000 to AS 65530 at 169.254.255.1, 169.254.255.2"
    assert elastic.pools[0].addresses == "192.0.2.128/30"
    assert {machine.notes for machine in elastic.of("worker")} == {("/29 of public addresses",)}


def test_a_preview_of_changes_marks_each_of_them_by_sign_and_word() -> None:
    hybrid = recorded("hybrid-change")
    assert [machine.change for machine in hybrid.of("worker")] == ["update", "update", "create", "create"]
    assert [(name.name.split(".")[0], name.change) for name in hybrid.names][2] == ("*", "update")
    assert {network.name: network.change for network in hybrid.networks}["VLAN 1300 backup"] == "replace"
    text = all_text(topology.svg(hybrid))
    assert all(sign in text for sign in ("+ new", "~ changed", "± replaced"))
    assert "preview: + 2 new, ~ 6 changed, ± 1 replaced" in text


def test_what_goes_away_is_drawn_as_it_was() -> None:
    (_, device) = machines(1)
    gone = model.from_events([event(device["urn"], _DEVICE, "delete", old=device)])
    assert [(machine.name, machine.public, machine.change) for machine in gone.machines] == [
        ("t-worker-0", "198.51.100.0", "delete")
    ]
    assert "- going away" in all_text(topology.svg(replace(gone, names=(Name(name="a", values=("b",)),))))


def test_a_replacement_is_one_machine_with_the_new_ones_values() -> None:
    (_, device) = machines(1)
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
    started = time.perf_counter()
    picture = topology.svg(model.from_state(state))
    assert time.perf_counter() - started < 1
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
        max_size=12,
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


@settings(max_examples=40, deadline=None)
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
