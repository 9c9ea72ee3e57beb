"""Addresses for services: what cannot go together, who announces, and what waits for what."""

from __future__ import annotations

import json
from typing import Any

import pytest

from metal_ipi.components.endpoints.bgp_routes import UNIT
from tests.mocks import is_secret, plain
from tests.stacks.answers import BGP_PASSWORD, METALLB, declared, problems, settings, tells

_OWN = {"name": "own", "addresses": ["198.51.100.240/28"]}
_ELASTIC = {"name": "elastic", "reserve": 4, "aggregationLength": 30}
_BGP = {"type": "metallb-bgp", "pools": [_OWN, _ELASTIC], "install": False}
_L2 = {"type": "metallb-l2", "pools": [_OWN], "install": False}
_KUBE_VIP = {"type": "kube-vip", "address": "198.51.100.241"}
_BALANCER = {"machineConfigServer": {"allowedNetworks": ["198.51.100.64/28"]}}
_DEVICE = "equinix-metal:index/device:Device"
_PEER = "kubernetes:metallb.io/v1beta2:BGPPeer"
_SESSION = "equinix-metal:index/bgpSession:BgpSession"


@pytest.mark.parametrize(
    ("changes", "path", "why", "remedy"),
    [
        (
            {"serviceAddresses": _BGP, "apiAddress": {"type": "kube-vip"}, "workers": {"count": 0}},
            "type",
            "one session from a machine, not two",
            "set workers.count to 1 or more, or apiAddress.type to",
        ),
        (
            {"serviceAddresses": _L2, "apiAddress": _KUBE_VIP},
            "pools[0].addresses[0]",
            "it holds 198.51.100.241, the API's address",
            "exclude it",
        ),
        (
            {"serviceAddresses": _BGP, "apiAddress": {**_KUBE_VIP, "type": "external"}, **_BALANCER},
            "pools[0].addresses[0]",
            "it holds 198.51.100.241, the API's address",
            "exclude it",
        ),
        (
            {"serviceAddresses": {"type": "metallb-l2", "pools": [_OWN]}, "install": {"distribution": "okd"}},
            "catalog",
            "OKD has no such catalogue",
            "set it to community-operators",
        ),
    ],
)
def test_what_cannot_go_together(changes: dict[str, Any], path: str, why: str, remedy: str) -> None:
    assert tells(problems(settings(**changes)), f"serviceAddresses.{path}", why, remedy)


def test_all_that_cannot_go_together_is_told_at_once_and_with_the_rest() -> None:
    found = problems(
        settings(
            serviceAddresses=_BGP,
            apiAddress=_KUBE_VIP,
            workers={"count": 0},
            install={"pullSecret": "rehearsal"},
        )
    )
    assert [problem.path.partition(":")[2] for problem in found] == [
        "install.pullSecret",
        "serviceAddresses.pools[0].addresses[0]",
        "serviceAddresses.type",
    ]


@pytest.mark.parametrize(
    ("changes", "made"),
    [
        (
            {"serviceAddresses": _L2, "apiAddress": {"type": "kube-vip"}, "workers": {"count": 0}},
            {"IPAddressPool", "L2Advertisement"},
        ),
        (
            {"serviceAddresses": {"type": "cloud-controller"}, "apiAddress": _KUBE_VIP, "workers": {"count": 0}},
            set[str](),
        ),
    ],
)
def test_what_can_go_together_makes_these_objects(changes: dict[str, Any], made: set[str]) -> None:
    recorder = declared(**changes)
    outputs = recorder.outputs
    assert {args.typ.rpartition(":")[2] for args in recorder.resources if args.typ in METALLB} == made
    assert len(outputs["nodes"]) == 3 and recorder.of(_SESSION), "the control plane announces the API's address"


def test_okd_takes_the_operator_from_the_catalogue_that_is_told() -> None:
    section = {"type": "metallb-l2", "pools": [_OWN], "catalog": "community-operators"}
    recorder = declared(serviceAddresses=section, install={"distribution": "okd"})
    (subscription,) = recorder.of("kubernetes:operators.coreos.com/v1alpha1:Subscription")
    assert plain(subscription.inputs)["spec"]["source"] == "community-operators"


@pytest.mark.parametrize(
    ("shape", "announcing"),
    [
        ({"workers": {"count": 2}}, {"da11-worker-0", "da11-worker-1"}),
        ({"workers": {"count": 0}}, {f"da11-control-plane-{number}" for number in range(3)}),
        ({"workers": {"count": 0}, "controlPlane": {"count": 1}}, {"da11-control-plane-0"}),
    ],
)
def test_who_runs_the_services_announces_their_addresses(shape: dict[str, Any], announcing: set[str]) -> None:
    recorder = declared(serviceAddresses=_BGP, **shape)
    outputs = recorder.outputs
    assert {session.name.removesuffix("-bgp") for session in recorder.of(_SESSION)} == announcing
    assert "bgp" not in recorder.one("da11-bootstrap").inputs
    peers = [plain(peer.inputs) for peer in recorder.of(_PEER)]
    selected = [peer["spec"]["nodeSelectors"][0]["matchLabels"]["kubernetes.io/hostname"] for peer in peers]
    assert sorted(selected) == sorted(2 * [f"{node}.da11.metal.example.com" for node in announcing])
    machines = {device.name.removesuffix("-device"): device for device in recorder.of(_DEVICE)}
    assert {name for name, machine in machines.items() if UNIT in plain(machine.inputs["userData"])} == announcing
    private = {node["name"]: node["private_ipv4"] for node in outputs["nodes"]}
    assert {(name, peer["spec"]["sourceAddress"]) for name, peer in zip(selected, peers, strict=True)} == {
        (name, private[name]) for name in selected
    }


def test_beside_kube_vip_each_role_announces_what_is_its_own() -> None:
    recorder = declared(serviceAddresses=_BGP, apiAddress={"type": "kube-vip"}, workers={"count": 1})
    sessions = {session.name for session in recorder.of(_SESSION)}
    assert sessions == {"da11-worker-0-bgp", *(f"da11-control-plane-{number}-bgp" for number in range(3))}
    assert {peer.name.rpartition(".da11.")[0] for peer in recorder.of(_PEER)} == {"service-addresses-da11-worker-0"}


def test_pools_have_what_is_reserved_for_them() -> None:
    recorder = declared(serviceAddresses=_BGP)
    outputs = recorder.outputs
    block = recorder.one("service-addresses-elastic").inputs
    assert (block["type"], block["quantity"], block["facility"]) == ("public_ipv4", 4, "da11")
    assert block["tags"] == [
        "metal-ipi",
        "metal-ipi:stack=da11",
        "metal-ipi:cluster=da11.metal.example.com",
        "metal-ipi:name=service-addresses-elastic",
        "metal-ipi:run=keys-id",
    ]
    assert outputs["serviceAddresses"] == {"pools": {"own": ["198.51.100.240/28"], "elastic": ["192.0.2.128/30"]}}


def test_nothing_is_asked_of_the_cluster_before_it_is_complete_or_once_it_goes() -> None:
    for section in (_BGP, {**_L2, "install": True}):
        recorder = declared(serviceAddresses=section)
        objects = [args.name for args in recorder.resources if args.typ in METALLB]
        assert objects
        assert all({"install-complete", "nodes-ready", "worker-checks-0"} <= recorder.after(name) for name in objects)
        assert {recorder.requests[name].deletedWith.rpartition("::")[2] for name in objects} == {"keys"}


def test_a_cluster_without_service_addresses_waits_for_none() -> None:
    for kind in ("none", "cloud-controller"):
        recorder = declared(serviceAddresses={"type": kind})
        assert "serviceAddresses" not in recorder.outputs
        assert not [args for args in recorder.resources if "kubernetes" in args.typ or args.typ == _SESSION]


def test_the_password_and_the_kubeconfig_stay_secret() -> None:
    recorder = declared(serviceAddresses=_BGP)
    outputs = recorder.outputs
    assert is_secret(recorder.one("service-addresses-provider").inputs["kubeconfig"])
    assert is_secret(recorder.one("service-addresses-bgp-password").inputs["stringData"])
    written = [args.inputs for args in recorder.resources if args.name != "service-addresses-bgp-password"]
    assert BGP_PASSWORD not in json.dumps([written, outputs["serviceAddresses"]])
