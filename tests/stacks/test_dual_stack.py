"""Clusters of both families: what is refused, and what machines, names and gates are given."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
import yaml

from metal_ipi.stacks.problems import Problem
from tests import golden
from tests.mocks import Recorder, config_text, plain
from tests.stacks.answers import checked, declared, problems, settings, stack_file

_NETWORKING: dict[str, Any] = stack_file("dualstack")["installConfig"]["networking"]
_PODS = _NETWORKING["clusterNetwork"]


def _changed(path: str, value: Any) -> dict[str, str]:
    """Set, or remove (None), what is at a path of the stack file."""
    tree: Any = {**stack_file("dualstack"), "rehearsal": True}
    *parents, last = path.split(".")
    section = tree
    for part in parents:
        section = section[int(part)] if part.isdigit() else section.setdefault(part, {})
    key: Any = int(last) if last.isdigit() else last
    if value is None:
        del section[key]
    else:
        section[key] = value
    return config_text(tree)


def _tells(found: Sequence[Problem], path: str, why: str, remedy: str) -> bool:
    """Whether this is among what is told."""
    return any(each.path.endswith(f":{path}") and why in each.why and remedy in each.remedy for each in found)


def _declared() -> Recorder:
    return declared("dualstack", values=settings("dualstack"), preview=True)


@pytest.mark.parametrize(
    ("path", "value", "at", "why", "remedy"),
    [
        # Both families for all (validateNetworkingIPVersion).
        ("platform.ipv6", None, "platform.ipv6", "the machines have none", "set platform.ipv6.network"),
        ("installConfig", None, "platform.ipv6.network", "the cluster has no IPv6", "or remove platform.ipv6"),
        (
            "installConfig.networking.serviceNetwork",
            ["172.30.0.0/16"],
            "installConfig.networking.serviceNetwork",
            "other networks have IPv6 addresses, and services have none",
            "add an IPv6 network",
        ),
        (
            "installConfig.networking.clusterNetwork",
            _PODS[1:],
            "installConfig.networking.clusterNetwork",
            "other networks have IPv4 addresses, and pods have none",
            "put an IPv4 network before it",
        ),
        (
            "installConfig.networking.serviceNetwork",
            ["fd02::/112", "172.30.0.0/16"],
            "installConfig.networking.serviceNetwork",
            "on platform none IPv4 networks come first",
            "IPv4 networks first",
        ),
        (
            "installConfig.networking",
            {"clusterNetwork": _PODS[1:], "serviceNetwork": ["fd02::/112"]},
            "installConfig.networking",
            "clusters with IPv6 only are not supported",
            "give an IPv4 network before each IPv6 network",
        ),
        (
            "installConfig.networking.serviceNetwork",
            ["172.30.0.0/16", "fd02::/112", "fd03::/112"],
            "installConfig.networking.serviceNetwork",
            "there are 3",
            "one of IPv4 and one of IPv6",
        ),
        # Sizes, and what is taken.
        (
            "installConfig.networking.clusterNetwork.1.hostPrefix",
            62,
            "installConfig.networking.clusterNetwork[1].hostPrefix",
            "a node's part of an IPv6 network is a /64",
            "set it to 64",
        ),
        (
            "installConfig.networking.clusterNetwork.0.hostPrefix",
            31,
            "installConfig.networking.clusterNetwork[0].hostPrefix",
            "would be too small",
            "up to 30",
        ),
        (
            "installConfig.networking.clusterNetwork.1.cidr",
            "fd01::/72",
            "installConfig.networking.clusterNetwork[1].hostPrefix",
            "would be larger than it",
            "a network of /64 or larger",
        ),
        (
            "installConfig.networking.clusterNetwork.1.cidr",
            "fd01::/63",
            "installConfig.networking.clusterNetwork",
            "it has room for 2 nodes, and there are 4",
            "give a larger network",
        ),
        (
            "installConfig.networking.serviceNetwork.1",
            "fd02::/96",
            "installConfig.networking.serviceNetwork[1]",
            "at most 20 bits for services",
            "give a /108 or less",
        ),
        (
            "installConfig.networking.serviceNetwork.1",
            "fd02::/127",
            "installConfig.networking.serviceNetwork[1]",
            "it is too small",
            "/126 or larger",
        ),
        (
            "installConfig.networking.serviceNetwork.1",
            "fd98::/112",
            "installConfig.networking",
            "overlaps the IPv6 network between the pods' routers",
            "do not overlap",
        ),
        (
            "platform.ipv6.network",
            "fd01::/64",
            "platform.ipv6.network",
            "the cluster uses it internally: the pods' network 2 is fd01::/48",
            "another network",
        ),
        # Forms.
        ("platform.ipv6.network", "192.0.2.0/24", "platform.ipv6.network", "not an IPv6 network", "e.g. 2001:db8::/64"),
        ("platform.ipv6.network", "2001:DB8:64::/64", "platform.ipv6.network", "shortest form", "2001:db8:64::/64"),
        ("platform.ipv6.gateway", "192.0.2.1", "platform.ipv6.gateway", "it is not an IPv6 address", "2001:db8::10"),
        (
            "platform.servers.3.ipv6Address",
            "2001:db8:64:0::64",
            "platform.servers[3].ipv6Address",
            "it is not in its shortest form",
            "write it as 2001:db8:64::64",
        ),
        ("platform.servers.3.ipv6Address", "ff02::1", "platform.servers[3].ipv6Address", "no machine", ""),
        (
            "installConfig.networking.ovnKubernetesConfig",
            {"ipv4": {"internalJoinSubnet": "fd98::/64"}},
            "installConfig.networking.ovnKubernetesConfig.ipv4.internalJoinSubnet",
            "it is not an IPv4 network",
            "give address and length",
        ),
        (
            "installConfig.networking.clusterNetwork.1.hostPrefix",
            65,
            "installConfig.networking.clusterNetwork[1].hostPrefix",
            "",
            "",
        ),
        (
            "apiAddress",
            {"type": "external", "address": "192.0.2.9", "ipv6Address": "fe80::9"},
            "apiAddress.ipv6Address",
            "it is a link-local address",
            "a single host",
        ),
        # The machines' addresses.
        ("platform.gateway", None, "platform.gateway", "networks of both families", "which is for IPv4"),
        (
            "platform.ipv6.gateway",
            None,
            "platform.ipv6.gateway",
            "machines get it only from this setting",
            "networkBoot to dhcp",
        ),
        (
            "platform.ipv6.gateway",
            "2001:db8:65::1",
            "platform.ipv6.gateway",
            "it is neither in 2001:db8:64::/64",
            "correct it",
        ),
        (
            "platform.servers.3.ipv6Address",
            None,
            "platform.servers[3].ipv6Address",
            "AAAA records",
            "the server's address in 2001:db8:64::/64",
        ),
        (
            "platform.servers.3.ipv6Address",
            "2001:db8:65::64",
            "platform.servers[3].ipv6Address",
            "no machine",
            "correct",
        ),
        ("platform.servers.3.ipv6Address", "2001:db8:64::", "platform.servers[3].ipv6Address", "no machine", "correct"),
        (
            "platform.servers.3.ipv6Address",
            "2001:db8:64::61",
            "platform.servers[3].ipv6Address",
            "platform.servers[0].ipv6Address is the same",
            "its own",
        ),
        (
            "platform.servers.3.ipv6Address",
            "2001:db8:64::1",
            "platform.servers[3].ipv6Address",
            "platform.ipv6.gateway is the same",
            "its own",
        ),
    ],
)
def test_what_cannot_be(path: str, value: Any, at: str, why: str, remedy: str) -> None:
    assert _tells(problems(_changed(path, value)), at, why, remedy)


def test_routers_tell_machines_that_have_dhcp() -> None:
    tree: Any = {**stack_file("dualstack"), "rehearsal": True}
    tree["platform"] |= {"networkBoot": "dhcp"}
    del tree["platform"]["interface"]
    assert _tells(problems(config_text(tree)), "platform.ipv6.gateway", "it has no effect", "remove it")
    del tree["platform"]["ipv6"]["gateway"]
    declared("dualstack", values=config_text(tree), preview=True)


def test_one_family_has_no_addresses_of_the_other() -> None:
    tree: Any = {**stack_file("dualstack"), "rehearsal": True}
    del tree["installConfig"], tree["platform"]["ipv6"]
    tree["apiAddress"] = {"type": "external", "address": "192.0.2.9", "ipv6Address": "2001:db8:64::9"}
    tree["machineConfigServer"] = {"allowedNetworks": ["192.0.2.9/32"]}
    tree["serviceAddresses"] = {
        "type": "metallb-l2",
        "install": False,
        "pools": [{"name": "a", "addresses": ["192.0.2.200-192.0.2.201", "2001:db8:64::200/120"]}],
    }
    found = problems(config_text(tree))
    for path in ("platform.servers[0].ipv6Address", "apiAddress.ipv6Address", "serviceAddresses.pools[0].addresses[1]"):
        assert _tells(found, path, "only IPv4", "")


def test_the_api_has_an_ipv6_address_of_its_own() -> None:
    tree: Any = {**stack_file("dualstack"), "rehearsal": True}
    tree["apiAddress"] = {"type": "external", "address": "192.0.2.9", "ipv6Address": "2001:db8:64::9"}
    tree["machineConfigServer"] = {"allowedNetworks": ["192.0.2.9/32"]}
    records = plain(declared("dualstack", values=config_text(tree), preview=True).inputs("dns-api-records")["records"])
    found = {(each["name"], each["type"]): each["values"] for each in records.values()}
    assert found["api.dualstack.facility.test", "AAAA"] == ["2001:db8:64::9"]
    pool = {"name": "a", "addresses": ["192.0.2.200-192.0.2.201", "2001:db8:64::/120"]}
    services = {"type": "metallb-l2", "install": False, "pools": [pool]}
    found = problems(config_text({**tree, "serviceAddresses": services}))
    assert _tells(found, "serviceAddresses.pools[0].addresses[1]", "the API's address (apiAddress.ipv6Address)", "")
    tree["platform"]["servers"][0]["ipv6Address"] = "2001:db8:64::9"
    path = "platform.servers[0].ipv6Address"
    assert _tells(problems(config_text(tree)), path, "apiAddress.ipv6Address is the same", "its own")


def test_equinix_metal_has_one_family() -> None:
    found = problems(settings(installConfig={"networking": _NETWORKING}))
    assert _tells(
        found, "installConfig.networking", "dual stack is not supported on Equinix Metal", "platform.type redfish"
    )


def _host_network(**ipv6: Any) -> dict[str, str]:
    tree: Any = {**stack_file("dualstack"), "rehearsal": True}
    del tree["platform"]["interface"], tree["platform"]["ipv6"]["gateway"]
    tree["platform"]["networkBoot"] = "dhcp"
    server = tree["platform"]["servers"][0]
    server["interfaces"] = [{"name": "eno1", "macAddress": server["mac"]}]
    card: dict[str, Any] = {"name": "eno1", "type": "ethernet", "ipv4": {"enabled": True, "dhcp": False}, "ipv6": ipv6}
    card["ipv4"]["address"] = [{"ip": server["address"], "prefix-length": 24}]
    ways = [{"destination": "0.0.0.0/0", "next-hop-address": "192.0.2.1", "next-hop-interface": "eno1"}]
    server["networkConfig"] = {
        "interfaces": [card],
        "routes": {"config": ways},
        "dns-resolver": {"config": {"server": ["192.0.2.53"]}},
    }
    return config_text(tree)


def test_hosts_networks_have_the_address_and_a_way_out() -> None:
    absent, narrow = problems(_host_network(enabled=False)), {"ip": "2001:db8:64::61", "prefix-length": 80}
    assert _tells(absent, "platform.servers[0].ipv6Address", "no interface of networkConfig has it", "autoconf")
    assert _tells(absent, "platform.servers[0].networkConfig.routes", "no IPv6 default route", "::/0")
    found = problems(_host_network(enabled=True, address=[narrow]))
    assert _tells(found, "platform.servers[0].networkConfig.interfaces", "2001:db8:64::/64", "correct prefix-length")
    declared("dualstack", values=_host_network(enabled=True, autoconf=True, dhcp=True), preview=True)


def test_the_installer_is_told_of_both_families() -> None:
    stdin = json.loads(plain(_declared().one("install-assets-create").inputs["stdin"]))
    networking = yaml.safe_load(stdin["installConfig"])["networking"]
    assert networking == {
        "networkType": "OVNKubernetes",
        "machineNetwork": [{"cidr": "192.0.2.0/24"}, {"cidr": "2001:db8:64::/64"}],
        "clusterNetwork": [{"cidr": "10.128.0.0/14", "hostPrefix": 23}, {"cidr": "fd01::/48", "hostPrefix": 64}],
        "serviceNetwork": ["172.30.0.0/16", "fd02::/112"],
    }


def test_gates_and_checks_know_both_addresses() -> None:
    recorder = _declared()
    node = "dualstack-worker-0.dualstack.facility.test"
    spec = plain(recorder.inputs("nodes-ready")["spec"])
    assert spec["addresses"][node] == ["192.0.2.100", "192.0.2.100", "2001:db8:64::64"]
    (reached,) = plain(recorder.inputs("worker-checks-reachable")["spec"])["nodes"]
    assert (reached["address"], reached["ipv6"]) == ("192.0.2.100", "2001:db8:64::64")
    assert "2001:db8:64::64" in plain(recorder.inputs("machine-config-access")["spec"])["networks"]
    assert checked(recorder, "dualstack-worker-0")["EXPECTED_IPV6"] == "20010db8006400000000000000000064"


def test_preview() -> None:
    recorder = _declared()
    lines = sorted(recorder.urn(args.name) for args in recorder.resources)
    golden.check("preview-dualstack.txt", "".join(f"{line}\n" for line in lines))
