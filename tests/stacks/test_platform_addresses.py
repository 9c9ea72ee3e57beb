"""Addresses of API and ingress: of OpenShift's platform baremetal, of a load balancer, and of kube-vip (ingress)."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from metal_ipi.stacks import resizing
from metal_ipi.stacks.assets import config
from metal_ipi.stacks.platforms.registry import facility
from metal_ipi.stacks.problems import problems_of
from metal_ipi.stacks.settings import parse
from tests.mocks import config_text, plain
from tests.stacks.answers import PUBLIC_KEY, declared, node_files, problems, settings, tells
from tests.stacks.rack import SERVERS, rack, rack_declared, rack_problems

_API, _INGRESS = ({"type": "platform", "address": address} for address in ("192.0.2.8", "192.0.2.9"))
_BOTH: dict[str, Any] = {"apiAddress": _API, "ingressAddress": _INGRESS}
_POOLS = {"type": "metallb-l2", "pools": [{"name": "own", "addresses": ["192.0.2.0/28"]}]}


@pytest.mark.parametrize(
    ("changes", "path", "why", "remedy"),
    [
        ({"apiAddress": _API}, "ingressAddress.type", "manages either both addresses or none", "another free address"),
        ({"ingressAddress": _INGRESS}, "apiAddress.type", "either both addresses or none", "set it to platform"),
        ({**_BOTH, "ingressAddress": _API}, "ingressAddress.address", "apiAddress.address is the same", "its own"),
        ({**_BOTH, "apiAddress": {**_API, "address": "192.0.2.11"}}, "apiAddress.address", "address is the same", ""),
        ({**_BOTH, "apiAddress": {**_API, "address": "10.0.0.9"}}, "apiAddress.address", "none of the machines'", ""),
        ({**_BOTH, "apiAddress": {**_API, "address": "192.0.2.255"}}, "apiAddress.address", "broadcast address", ""),
        ({**_BOTH, "platform__gateway": None}, "platform.prefix", "which is not set", "set platform.gateway"),
        (
            {**_BOTH, "installConfig__capabilities": {"baselineCapabilitySet": "None",
                                                      "additionalEnabledCapabilities": ["MachineAPI"]}},
            "installConfig.capabilities",
            "needs the capability baremetal",
            "additionalEnabledCapabilities",
        ),
        ({"ingressAddress": {"type": "external", "address": "192.0.2.3"}, "serviceAddresses": _POOLS},
         "serviceAddresses.pools[0].addresses[0]", "it holds 192.0.2.3, the routers' address", "exclude it"),
        (
            {**_BOTH, "platform__bootstrap": {"type": "none"}, "platform__servers": [SERVERS[2]]},
            "apiAddress.type",
            "uses platform none (bootstrapInPlace)",
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


_BGP: dict[str, Any] = {"ingressAddress": {"type": "kube-vip"}}
_ARP: dict[str, Any] = {"ingressAddress": {"type": "kube-vip", "mode": "arp", "address": "192.0.2.9"}}
_COMPACT: dict[str, Any] = {
    "platform__servers": SERVERS[1:4],
    "platform__bootstrap": {"type": "local-vm", "address": "192.0.2.7", "mac": "52:54:00:00:00:09", "bridge": "br0"},
}


def test_the_workers_announce_the_address_of_ingress_as_a_route() -> None:
    recorder = declared(workers={"count": 1}, apiAddress={"type": "kube-vip"}, **_BGP)
    vips = {
        args.name.removeprefix("da11-"): [name for name in ("kube-vip", "ingress-vip") if f"{name}.service" in data]
        for args in recorder.of("equinix-metal:index/device:Device")
        for data in [str(plain(args.inputs.get("userData")))]
    }
    assert vips["worker-0-device"] == ["ingress-vip"] and vips["control-plane-0-device"] == ["kube-vip"]
    reserved = {args.name for args in recorder.of("equinix-metal:index/reservedIpBlock:ReservedIpBlock")}
    assert {name.rpartition("-")[0] for name in reserved} == {"api", "ingress"}
    assert any("worker-0" in args.name for args in recorder.of("equinix-metal:index/bgpSession:BgpSession"))


def test_a_control_plane_without_workers_answers_for_both_addresses() -> None:
    api = {"type": "kube-vip", "mode": "arp", "address": "192.0.2.8"}
    recorder = rack_declared(apiAddress=api, **_ARP, **_COMPACT)
    made = recorder.inputs("control-plane-installers")["files"]["rack-control-plane-0.ign"]
    disk = node_files(node_files(made)["/etc/metal-ipi/disk.ign"])
    assert "ADDRESS=192.0.2.8\n" in disk["/etc/metal-ipi/kube-vip.env"]
    assert "ADDRESS=192.0.2.9\n" in disk["/etc/metal-ipi/ingress-vip.env"]


@pytest.mark.parametrize(
    ("rack", "changes", "path", "why"),
    [
        (True, _ARP, "ingressAddress.mode", "have no credentials for the lease"),
        (True, {**_BGP, **_COMPACT}, "ingressAddress.mode", "has neither BGP peers"),
        (True, {**_ARP, **_COMPACT, "apiAddress": _ARP["ingressAddress"]}, "ingressAddress.address", "is the same"),
        (True, {**_ARP, "platform__bootstrap": {"type": "none"}, "platform__servers": [SERVERS[2]]},
         "ingressAddress.type", "nothing could take over another address"),
        (False, {**_BGP, "workers": {"count": 0}, "apiAddress": {"type": "kube-vip"}}, "ingressAddress.mode",
         "apiAddress.mode is bgp, and there are no workers"),
        (False, {**_BGP, "serviceAddresses": {"type": "metallb-bgp", "pools": [{"name": "own", "reserve": 4}]}},
         "ingressAddress.mode", "serviceAddresses.type is metallb-bgp"),
        (False, {"apiAddress": {"type": "kube-vip", "address": "192.0.2.9"}, "workers": {"count": 1},
                 "ingressAddress": {"type": "kube-vip", "address": "192.0.2.9"}},
         "ingressAddress.address", "kube-vip and kube-vip would both use it"),
        (True, {**_ARP, **_COMPACT, "apiAddress": {"type": "external", "address": "192.0.2.9"},
                "machineConfigServer": {"allowedNetworks": ["192.0.2.9/32"]}},
         "ingressAddress.address", "external and kube-vip would both use it"),
    ],
)  # fmt: skip
def test_what_kube_vip_cannot_do_for_ingress_is_refused(rack: bool, changes: Any, path: str, why: str) -> None:
    assert tells(rack_problems(**changes) if rack else problems(settings("da11", **changes)), path, why)


def _begun(**changes: Any) -> dict[str, Any]:
    """The install-config.yaml of a rack."""
    found = parse(config_text(rack(**changes)), "s")
    return yaml.safe_load(config(found, facility(found), PUBLIC_KEY))


@pytest.mark.parametrize(
    ("before", "after", "path", "why"),
    [
        ({}, _BOTH, "apiAddress.type", "installed with no address that its platform keeps"),
        (_BOTH, {}, "ingressAddress.type", "installed with 192.0.2.9, which cannot change"),
        (_BOTH, {**_BOTH, "apiAddress": {**_API, "address": "192.0.2.7"}}, "apiAddress.address", "with 192.0.2.8"),
    ],
)
def test_a_cluster_that_stands_keeps_its_platform_and_addresses(before: Any, after: Any, path: str, why: str) -> None:
    wanted = parse(config_text(rack(**after)), "s")
    found = problems_of(resizing.refused(wanted, _begun(**before), set()))
    assert any(each.path == f"metal-ipi:{path}" and why in each.why for each in found)
    assert not problems_of(resizing.refused(wanted, _begun(**after), set()))


_EXTERNAL = {"installConfig": {"platform": {"external": {"platformName": "acme"}}}}


@pytest.mark.parametrize(
    ("changes", "path", "why"),
    [
        (_BOTH, "installConfig.platform.external", "uses the installer's platform baremetal"),
        ({"platform__bootstrap": {"type": "none"}, "platform__servers": [SERVERS[2]]},
         "installConfig.platform.external", "a single node that bootstraps itself"),
        *(({"install__manifests": ["stacks"], "installConfig": {
            "platform": {"external": {"cloudControllerManager": "External"}},
            "capabilities": {"baselineCapabilitySet": capabilities,
                             "additionalEnabledCapabilities": ["CloudCredential"]}}},
           "installConfig.capabilities", "needs the capability CloudControllerManager")
          for capabilities in ("None", "v4.15")),
        ({"installConfig": {**_EXTERNAL["installConfig"], "capabilities": {"baselineCapabilitySet": "v4.14"}}},
         "installConfig.capabilities", "needs the capability CloudCredential"),
    ],
)  # fmt: skip
def test_what_platform_external_cannot_be_with_is_refused(changes: Any, path: str, why: str) -> None:
    assert tells(rack_problems(**{**_EXTERNAL, **changes}), path, why)


def test_platform_external_stays() -> None:
    assert _begun(**_EXTERNAL)["platform"] == {"external": {"platformName": "acme", "cloudControllerManager": ""}}
    for before, after in ((_EXTERNAL, {}), ({}, _EXTERNAL)):
        wanted = parse(config_text(rack(**after)), "s")
        (found,) = problems_of(resizing.refused(wanted, _begun(**before), set()))
        assert found.path == "metal-ipi:installConfig.platform" and "that stays" in found.why
        assert not problems_of(resizing.refused(wanted, _begun(**after), set()))


def test_a_control_plane_that_took_pods_from_the_beginning_speaks_to_peers_once() -> None:
    wanted = parse(settings("da11", apiAddress={"type": "kube-vip"}, **_BGP), "s")
    compact = {"compute": [{"name": "worker", "replicas": 0}], "platform": {"none": {}}}
    (found,) = problems_of(resizing.refused(wanted, compact, set()))
    assert found.path.endswith("ingressAddress.mode") and "installed without workers" in found.why
    with_workers = {**compact, "compute": [{"name": "worker", "replicas": 2}]}
    assert not problems_of(resizing.refused(wanted, with_workers, set()))
