"""Two control plane machines with an arbiter: where it may be, and what it is to the rest."""

from __future__ import annotations

import json
from typing import Any

import pytest

from metal_ipi.stacks import resizing
from metal_ipi.stacks.problems import problems_of
from tests.conformance.facilities import ARBITER
from tests.mocks import plain
from tests.stacks.answers import problems, settings, tells
from tests.stacks.rack import SERVERS, rack_declared, rack_problems, rack_settings

_DNS = {"apiAddress": {"type": "dns-round-robin"}, "ingressAddress": {"type": "dns"}}
_ETCD = [f"rack-{name}.rack.example.com" for name in ("control-plane-0", "control-plane-1", "arbiter-0")]
_GATE = "installConfig.featureSet"
_TIME = {"ntpServers": ["192.0.2.123"]}


@pytest.mark.parametrize(
    ("changes", "path", "why"),
    [
        ({"platform__servers": [*ARBITER["platform__servers"], {**SERVERS[0], "name": "control-plane-2"}]},
         "arbiter.count", "there are 3"),
        (_DNS, "apiAddress.type", "only on OpenShift's platform baremetal"),
        ({"openshiftVersion": "4.18.0"}, "openshiftVersion", "from 4.20 on, and 4.19 as a technology preview"),
        ({"openshiftVersion": "4.19.0", "installConfig": {}}, _GATE, "the feature gate HighlyAvailableArbiter"),
        ({"installConfig": {"featureSet": "CustomNoUpgrade", "featureGates": ["HighlyAvailableArbiter=false"]}},
         _GATE, "the feature gate HighlyAvailableArbiter"),
        ({"platform__servers": [*ARBITER["platform__servers"], {**SERVERS[1], "name": "arbiter-1"}]},
         "arbiter.count", "it should be 0 or 1"),
    ],
)  # fmt: skip
def test_where_an_arbiter_cannot_be_it_is_refused(changes: dict[str, Any], path: str, why: str) -> None:
    assert tells(rack_problems(**{**ARBITER, **changes}), path, why)


@pytest.mark.parametrize(
    "changes",
    [
        {"openshiftVersion": "4.20.0", "installConfig": {}},
        {"openshiftVersion": "4.19.0"},
        {"openshiftVersion": "4.19.0", "installConfig": {
            "featureSet": "CustomNoUpgrade", "featureGates": ["HighlyAvailableArbiter=true"]}},
    ],
)  # fmt: skip
def test_releases_have_arbiters_with_their_feature_and_later_without(changes: dict[str, Any]) -> None:
    found = rack_settings(**{**ARBITER, **changes})
    assert (found.control_plane.count, found.arbiter.count, found.workers.count) == (2, 1, 1)


def test_an_arbiter_has_the_time_servers_of_all() -> None:
    asked = json.loads(plain(rack_declared(**ARBITER, machineConfig=_TIME).inputs("install-assets-create")["stdin"]))
    assert sorted(asked["manifests"]) == [f"99-{pool}-chrony.yaml" for pool in ("arbiter", "master", "worker")]
    found = rack_problems(machineConfig={**_TIME, "roles": ["arbiter"]})
    assert tells(found, "machineConfig.roles", "there is no arbiter", "take it out")


def test_machines_that_are_ordered_have_no_arbiter() -> None:
    found = problems(settings("da11", controlPlane={"count": 2}, arbiter={"count": 1}))
    assert tells(found, "apiAddress.type", "only on OpenShift's platform baremetal")


def test_an_arbiter_is_of_etcd_and_serves_no_api() -> None:
    consent = {"reprovision": {"consent": ["arbiter-0"]}, "arbiter": {"kernelArguments": ["quiet"]}}
    recorder = rack_declared(**ARBITER, **consent)
    installations = {args.name: recorder.inputs(args.name) for args in recorder.of("metal-ipi:index:Installation")}
    etcd = {name: each for name, each in installations.items() if "worker" not in name}
    assert [each["role"] for _, each in sorted(etcd.items())] == ["arbiter", "control-plane", "control-plane"]
    assert all(each["members"] == _ETCD for each in etcd.values())
    assert len({each["pool"] for each in etcd.values()}) == 1, "they take turns with each other"
    arbiter = etcd["rack-arbiter-0-installation"]
    assert arbiter["consent"] and arbiter["runs"]["kernelArguments"] == ["quiet"]
    assert plain(recorder.inputs("nodes-ready")["spec"])["etcdMembers"] == 3
    assert plain(recorder.inputs("bootstrap-complete")["spec"])["names"] == _ETCD
    serving = [node["name"] for node in plain(recorder.inputs("machine-config-access")["spec"])["nodes"]]
    assert serving == _ETCD[:2]
    for gate in ("machine-config-access", "bootstrap-machine-config-access"):
        assert "192.0.2.12" in plain(recorder.inputs(gate)["spec"])["networks"], "it is let in"


@pytest.mark.parametrize(
    ("before", "now", "why"),
    [(1, {}, "was installed with 1, and its topology stays"), (0, ARBITER, "was installed with none")],
)
def test_a_cluster_that_stands_keeps_its_arbiter_or_goes_on_without(before: int, now: Any, why: str) -> None:
    wanted = rack_settings(**now)
    begun = {"arbiter": {"replicas": before}} if before else {}
    found = [each for each in problems_of(resizing.refused(wanted, begun, set())) if "arbiter" in each.path]
    assert [why in each.why for each in found] == [True]
    same = {"arbiter": {"replicas": wanted.arbiter.count}}
    assert not [each for each in problems_of(resizing.refused(wanted, same, set())) if "arbiter" in each.path]
