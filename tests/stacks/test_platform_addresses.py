"""Addresses of API and ingress: those that OpenShift's platform baremetal keeps, and a load balancer's."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.mocks import plain
from tests.stacks.answers import declared, problems, settings, tells
from tests.stacks.rack import SERVERS, rack_declared, rack_problems

_API, _INGRESS = ({"type": "platform", "address": address} for address in ("192.0.2.8", "192.0.2.9"))
_BOTH: dict[str, Any] = {"apiAddress": _API, "ingressAddress": _INGRESS}
_POOLS = {"type": "metallb-l2", "pools": [{"name": "own", "addresses": ["192.0.2.0/28"]}]}


@pytest.mark.parametrize(
    ("changes", "path", "why", "remedy"),
    [
        ({"apiAddress": _API}, "ingressAddress.type", "keeps both addresses or none", "another free address"),
        ({"ingressAddress": _INGRESS}, "apiAddress.type", "keeps both addresses or none", "set it to platform"),
        ({**_BOTH, "ingressAddress": _API}, "ingressAddress.address", "apiAddress.address is the same", "its own"),
        ({**_BOTH, "apiAddress": {**_API, "address": "192.0.2.11"}}, "apiAddress.address", "address is the same", ""),
        ({**_BOTH, "apiAddress": {**_API, "address": "10.0.0.9"}}, "apiAddress.address", "none of the machines'", ""),
        ({**_BOTH, "apiAddress": {**_API, "address": "192.0.2.255"}}, "apiAddress.address", "broadcast address", ""),
        ({**_BOTH, "platform__gateway": None}, "platform.prefix", "which is not known", "set platform.gateway"),
        (
            {**_BOTH, "installConfig__capabilities": {"baselineCapabilitySet": "None",
                                                      "additionalEnabledCapabilities": ["MachineAPI"]}},
            "installConfig.capabilities",
            "needs the capability baremetal",
            "additionalEnabledCapabilities",
        ),
        ({"ingressAddress": {"type": "external", "address": "192.0.2.3"}, "serviceAddresses": _POOLS},
         "serviceAddresses.pools[0].addresses[0]", "it holds 192.0.2.3, the routers' address", "leave it out"),
        (
            {**_BOTH, "platform__bootstrap": {"type": "none"}, "platform__servers": [SERVERS[2]]},
            "apiAddress.type",
            "of platform none (bootstrapInPlace)",
            "ingressAddress.type to dns",
        ),
    ],
)  # fmt: skip
def test_what_the_platform_could_not_keep_is_refused(changes: Any, path: str, why: str, remedy: str) -> None:
    assert tells(rack_problems(**changes), path, why, remedy)


def test_ordered_machines_have_no_network_in_common() -> None:
    assert tells(problems(settings("da11", **_BOTH)), "apiAddress.type", "a network of its own", "kube-vip")


def test_the_cluster_is_of_platform_baremetal_and_its_names_are_of_these_addresses() -> None:
    recorder = rack_declared(**_BOTH)
    (gate,) = (args for args in recorder.of("metal-ipi:index:Gate") if args.name == "ingress-answers")
    spec = plain(gate.inputs["spec"])
    assert (gate.inputs["kind"], spec["address"], spec["domain"]) == (
        "ingress-answers",
        "192.0.2.9",
        "apps.rack.example.com",
    )
    assert {"bootstrap-removal-removed", "bootstrap-complete"} <= set(recorder.after("ingress-answers"))
    assert json.loads(plain(recorder.inputs("install-assets-create")["stdin"]))["installConfig"].count("VIPs") == 2


def test_nothing_on_the_bootstrap_machine_installs_servers_besides_this_program() -> None:
    of_platform, other = (
        str(plain(rack_declared(**changes).inputs("bootstrap-ignition")["files"])) for changes in (_BOTH, {})
    )
    assert "ironic.service" in of_platform and "metal3-baremetal-operator.service" in of_platform
    assert "ironic.service" not in other and "approve-csr.service" in other


def test_a_load_balancer_takes_what_users_ask() -> None:
    recorder = declared(ingressAddress={"type": "external", "address": "192.0.2.77"})
    records = plain(recorder.one("dns-ingress-records").inputs["records"])
    assert [each["values"] for each in records.values() if each["name"].startswith("*.apps.")] == [["192.0.2.77"]]
    assert recorder.inputs("ingress-answers")["spec"]["address"] == "192.0.2.77"
    assert not [args for args in declared().of("metal-ipi:index:Gate") if args.name == "ingress-answers"]
