"""Settings of servers with a BMC: every rule of the section, and what they become for the providers."""

from __future__ import annotations

from typing import Any

import pytest
import trustme

from metal_ipi.stacks import connections
from metal_ipi.stacks.names import Nodes
from metal_ipi.stacks.platforms.redfish.settings import Redfish, Server
from metal_ipi.stacks.platforms.registry import facility
from metal_ipi.stacks.settings import Settings
from tests.stacks.answers import PUBLIC_KEY, tells
from tests.stacks.rack import SECRET as _SECRET
from tests.stacks.rack import SERVERS as _SERVERS
from tests.stacks.rack import rack_problems, rack_settings

_FINGERPRINT = "sha256:" + "0123456789abcdef" * 4
_VM = {"type": "local-vm", "address": "192.0.2.9", "mac": "52:54:00:00:00:09", "bridge": "br0"}
_STATIC = {"platform__networkBoot": "static", "platform__interface": "eno1"}


@pytest.fixture(scope="module")
def certificate() -> str:
    """An authority's certificate, PEM."""
    return trustme.CA().cert_pem.bytes().decode()


def _server(settings: Settings, name: str) -> Server:
    section = settings.platform
    assert isinstance(section, Redfish)
    (server,) = (each for each in section.servers if each.name == name)
    return server


def test_the_list_says_who_there_is() -> None:
    settings = rack_settings(controlPlane={"count": 3})  # which agrees, and may stand there
    assert (settings.control_plane.count, settings.workers.count) == (3, 2)
    names = ("control-plane-0", "control-plane-1", "control-plane-2", "worker-0", "worker-4")
    assert settings.machines == names
    assert [(node.name, node.hostname, node.fqdn) for node in Nodes.of(settings).all] == [
        (name, f"rack-{name}", f"rack-{name}.rack.example.com") for name in ("bootstrap", *names)
    ]
    server = _server(settings, "worker-4")
    assert (server.address, server.role, server.number) == ("192.0.2.14", "worker", 4)


def test_kernel_arguments_add_up() -> None:
    settings = rack_settings(
        boot__kernelArguments=["a"],
        controlPlane={"kernelArguments": ["c"]},
        workers={"kernelArguments": ["w"]},
        platform__servers__0__kernelArguments=["own"],
    )
    assert settings.kernel_arguments("worker-4") == ("a", "w", "own")
    assert settings.kernel_arguments("worker-0") == ("a", "w")
    assert settings.kernel_arguments("control-plane-0") == ("a", "c")


@pytest.mark.parametrize("uri", ["qemu:///system", "qemu+ssh://root@kvm.example.com:22/system?no_tty=1"])
def test_the_bootstrap_machine_may_be_a_virtual_one(uri: str) -> None:
    settings = rack_settings(platform__bootstrap={**_VM, "uri": uri})
    assert connections.provider_sections(settings)["libvirt"] == {"uri": uri}
    assert "libvirt" not in connections.provider_sections(rack_settings())


def test_a_virtual_machine_has_a_network_of_its_own_where_nobody_tells_it() -> None:
    vm = {**_VM, "bootImage": "/srv/ipxe.iso", "interface": "enp1s0"}
    settings = rack_settings(platform__bootstrap=vm, **_STATIC)
    nodes = (Nodes.of(settings).bootstrap, Nodes.of(settings).workers[0])
    found = {node.hostname: facility(settings).network(node) for node in nodes}
    assert {name: (each.address, each.interface) for name, each in found.items() if each} == {
        "rack-bootstrap": ("192.0.2.9", "enp1s0"),
        "rack-worker-0": ("192.0.2.13", "eno1"),
    }
    assert facility(settings).lent is None


def test_a_server_may_have_rules_of_its_own() -> None:
    settings = rack_settings(
        boot__install__wipeDisks=[{"rotational": True}],
        platform__servers__0__installDevice={"byId": "x"},
        platform__servers__0__wipeDisks=[],
    )
    assert settings.install_device("worker-4").rules == {"byId": "x"}
    assert settings.install_device("worker-0").rules == {"smallest": True}
    assert settings.wipe_disks("worker-4") == ()
    assert [rule.rules for rule in settings.wipe_disks("worker-0")] == [{"rotational": True}]


_WRONG: list[tuple[dict[str, Any], str, str, str]] = [
    # changes, where the problem is, why, remedy
    ({"platform__servers__0__bmc": {"address": "http://10.0.0.1"}}, "servers[0].bmc.address", "an https URL", "give"),
    ({"platform__servers__0__bmc": {"address": "https://a/redfish/v1"}}, "servers[0].bmc.address", "not an https",
     "no path"),
    ({"platform__servers__0__bmc": {}}, "servers[0].bmc.address", "it is required", "pulumi config set"),
    ({"platform__servers__0__mac": "52:54:00:00:00:AA"}, "servers[0].mac", "a MAC address in lower case", "write it"),
    ({"platform__servers__0__mac": "01:54:00:00:00:0a"}, "servers[0].mac", "a group address", "inventory"),
    ({"platform__servers__0__address": "192.0.2.0/24"}, "servers[0].address", "not an IPv4 address", "without prefix"),
    ({"platform__servers__0__installation": -1}, "servers[0].installation", "greater than or equal to 0",
     "raise this number"),
    ({"platform__servers__0__consent": "yes"}, "servers[0].consent", "it should be 'wipe'", "wipe: it may be"),
    ({"platform__servers__0__kernelArguments": ["a b"]}, "servers[0].kernelArguments", "not one argument", "per list"),
    ({"platform__servers__0__installDevice": {}}, "servers[0].installDevice", "it has no rule", "at least one rule"),
    ({"platform__bmc__ca": "no pem"}, "bmc.ca", "it contains no certificate", "BEGIN CERTIFICATE"),
    ({"platform__bmc__fingerprint": "AA:BB"}, "bmc.fingerprint", "it is not 'sha256:' and 64", "openssl s_client"),
    ({"platform__bmc__bootMethod": "tftp"}, "bmc.bootMethod", "it should be 'pxe'", "pxe: the firmware boots"),
    ({"platform__bmc__bootMode": "legacy"}, "bmc.bootMode", "it should be 'bios' or 'uefi'", "it is not changed"),
    ({"platform__bmc__bootImage": "nfs://x"}, "bmc.bootImage", "it is not an http(s) URL", "fetches it"),
    ({"platform__servers__0__address": "2001:db8::11"}, "servers[0].address", "clusters with IPv6 only are not",
     "platform.ipv6"),
    ({"platform__gateway": "x"}, "gateway", "it is not an IPv4 address", "give one address"),
    ({"platform__prefix": 32}, "prefix", "less than or equal to 31", "the prefix length"),
    ({"platform__nameservers": ["ns1"]}, "nameservers[0]", "it is not an IPv4 address", "give one address"),
    ({"platform__networkBoot": "bootp"}, "networkBoot", "it should be 'dhcp' or 'static'", "kernel arguments"),
    ({"platform__bootstrap": {"type": "vm"}}, "bootstrap.type", "the existing types", "'lend', 'local-vm', 'none'"),
    ({"platform__bootstrap": {**_VM, "bridge": "a bridge"}}, "bootstrap.bridge", "a name of an interface", "ip link"),
    ({"platform__bootstrap": {**_VM, "memory": 512}}, "bootstrap.memory", "greater than or equal to 1024", "MiB"),
    ({"platform__bootstrap": {**_VM, "bootImage": "x.iso"}}, "bootstrap.bootImage", "an absolute path", "libvirt runs"),
    ({"platform__bootstrap": {**_VM, "uri": "xen:///system"}}, "bootstrap.uri", "not a connection URI", "qemu:///system"),
    ({"platform__servers__0__bmc": {"address": "https://a", "ipmi": 1}}, "servers[0].bmc.ipmi", "no such setting", ""),
]  # fmt: skip
_CONFLICTS: list[tuple[dict[str, Any], str, str, str]] = [
    ({"platform__servers": [_SERVERS[0], *_SERVERS[2:]]}, "controlPlane.count", "etcd with two members", "use 3 or 1"),
    ({"platform__servers": _SERVERS[2:3], "platform__bootstrap": {"type": "none"}, "controlPlane": {"count": 1},
      "workers": {"count": 1}}, "workers.count", "lists 0 of this role", "remove it"),
    ({"platform__servers": _SERVERS[2:3] + _SERVERS[4:], "platform__bootstrap": {"type": "none"}},
     "platform.bootstrap.type", "only a single node bootstraps itself", "set type to lend, and server to a worker"),
    ({"boot__install": None}, "boot.install", "no rule says to which", "set boot.install.device"),
    ({"controlPlane": {"count": 1}, "workers": {"count": 0}}, "controlPlane.count workers.count",
     "platform.servers lists", "remove it"),
    ({"workers": {"count": 1}}, "workers.count", "platform.servers lists 2 of this role", "remove it"),
    ({"platform__servers__0__name": "worker-0"}, "platform.servers[4].name", "servers[0].name is the same", "its own"),
    ({"platform__servers__1__mac": _SERVERS[0]["mac"]}, "platform.servers[1].mac", "servers[0].mac is the same",
     "each"),
    ({"platform__servers__1__address": "192.0.2.14"}, "platform.servers[1].address", "servers[0].address",
     "each its own"),
    ({"platform__servers__1__address": "192.0.2.1"}, "platform.gateway", "servers[1].address is the same",
     "each its own"),
    ({"platform__servers__1__bmc": {"address": "https://10.0.0.14/"}}, "platform.servers[1].bmc.address",
     "servers[0].bmc.address is the same", "give each its own"),
    ({"platform__servers__0__privateAddress": "10.9.0.1", "platform__servers__1__privateAddress": "10.9.0.1"},
     "platform.servers[1].privateAddress", "servers[0].privateAddress is the same", "give each its own"),
    ({"platform__servers__1__address": "192.0.3.9"}, "platform.servers[1].address", "192.0.2.0/24", "correct it"),
    ({"platform__servers__1__address": "192.0.2.255"}, "platform.servers[1].address", "no machine of the network",
     "it"),
    ({"platform__interface": "eno1"}, "platform.interface", "it has no effect", "remove it"),
    ({"platform__networkBoot": "static", "platform__gateway": None, "platform__nameservers": None},
     "platform.gateway platform.interface platform.nameservers", "machines get it only from this setting",
     "or networkBoot to dhcp"),
    ({"platform__servers__2__bmc": {"address": "https://10.0.0.9", "bootMethod": "virtual-media"}},
     "platform.servers[2].bmc.bootImage", "none is set", "set platform.bmc.bootImage"),
    (
        {
            "platform__bmc__bootMode": "bios",
            "platform__servers__2__bmc": {"address": "https://10.0.0.9", "bootMethod": "uefi-http"},
        },
        "platform.servers[2].bmc.bootMethod",
        "only UEFI firmware boots over HTTP",
        "set bootMode to uefi",
    ),
    ({"platform__bootstrap": {"type": "none"}}, "platform.bootstrap.type",
     "platform.servers lists worker-4, control-plane-2, control-plane-0",
     "list one control plane machine and nothing else"),
    (
        {
            "platform__bootstrap": {"type": "none"},
            "platform__servers": _SERVERS[1:2],
            "apiAddress": {"type": "kube-vip", "mode": "arp", "address": "192.0.2.9"},
        },
        "apiAddress.type",
        "is at the node's own address",
        "set it to dns-round-robin",
    ),
    ({"platform__bootstrap": {**_VM, "address": "192.0.3.9", "mac": _SERVERS[0]["mac"]}},
     "platform.bootstrap.address platform.bootstrap.mac", "", ""),
    ({"platform__bootstrap": _VM, **_STATIC}, "platform.bootstrap.bootImage platform.bootstrap.interface",
     "with networkBoot static", "set it to"),
    ({"platform__bootstrap": {**_VM, "interface": "enp1s0"}}, "platform.bootstrap.interface",
     "with networkBoot dhcp it has no effect", "remove it"),
    ({"platform__bootstrap": _VM, "boot__architecture": "aarch64"}, "platform.bootstrap.type",
     "the virtual machine is an x86_64 one", "set it to lend"),
    ({"platform__bootstrap": {"type": "lend", "server": "control-plane-0"}}, "platform.bootstrap.server",
     "it is not a worker of platform.servers", "name one of: worker-0, worker-4"),
    ({"platform__servers": _SERVERS[1:4]}, "platform.bootstrap.type", "no worker whose server could be lent", "list a"),
    ({"apiAddress": {"type": "kube-vip"}}, "apiAddress.mode", "neither BGP peers", "set it to arp"),
    ({"apiAddress": {"type": "kube-vip", "mode": "arp", "address": "192.0.2.255"}}, "apiAddress.address",
     "the network or the broadcast address of 192.0.2.0/24", "a single host"),
    ({"apiAddress": {"type": "kube-vip", "mode": "arp", "address": _SERVERS[3]["address"]}}, "apiAddress.address",
     "platform.servers[3].address is the same", "give each its own"),
    ({"serviceAddresses": {"type": "cloud-controller"}}, "serviceAddresses.type", "no cloud controller", "metallb-l2"),
    ({"serviceAddresses": {"type": "metallb-bgp", "pools": [{"name": "p", "reserve": 4}]}}, "serviceAddresses.type",
     "nor addresses to reserve", "pools of addresses of your own"),
    ({"reprovision": {"consent": ["control-plane-7"]}}, "reprovision.consent[0]", "no such control plane",
     "name one of"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "path", "why", "remedy"), _WRONG, ids=[f"{row[1]}-{i}" for i, row in enumerate(_WRONG)]
)
def test_a_wrong_value_is_one_problem(changes: dict[str, Any], path: str, why: str, remedy: str) -> None:
    assert tells(rack_problems(**changes), f"platform.{path}", why, remedy)


@pytest.mark.parametrize(
    ("changes", "paths", "why", "remedy"), _CONFLICTS, ids=[f"{row[1]}-{i}" for i, row in enumerate(_CONFLICTS)]
)
def test_what_cannot_go_together_is_told(changes: dict[str, Any], paths: str, why: str, remedy: str) -> None:
    problems = rack_problems(**changes)
    assert [problem.path for problem in problems] == [f"metal-ipi:{path}" for path in paths.split()]
    assert all(why in problem.why and remedy in problem.remedy for problem in problems)


def test_all_conflicts_are_told_at_once() -> None:
    problems = rack_problems(
        boot__install=None,
        apiAddress={"type": "kube-vip"},
        platform__servers__1__mac=_SERVERS[0]["mac"],
        platform__servers__1__address="192.0.3.9",
        platform__bootstrap={"type": "none"},
    )
    assert len(problems) == 5


def test_two_systems_may_share_a_bmc() -> None:
    shared = {"address": "https://10.0.0.14"}
    settings = rack_settings(
        platform__servers__0__bmc={**shared, "systemId": "1"}, platform__servers__1__bmc={**shared, "systemId": "2"}
    )
    servers = (_server(settings, entry["name"]) for entry in _SERVERS[:2])
    assert [(each.bmc.address, each.bmc.system_id) for each in servers if each] == [
        (shared["address"], "1"),
        (shared["address"], "2"),
    ]


def test_ca_and_fingerprint_exclude_each_other(certificate: str) -> None:
    (problem,) = rack_problems(platform__bmc__ca=certificate, platform__bmc__fingerprint=_FINGERPRINT)
    assert (problem.path, problem.why) == ("metal-ipi:platform.bmc", "ca and fingerprint are both set")


@pytest.mark.parametrize("key", ["username", "password"])
def test_only_a_rehearsal_does_without_credentials(key: str) -> None:
    (problem,) = rack_problems(**{f"platform__bmc__{key}": None})
    assert (problem.path, problem.value) == (f"metal-ipi:platform.bmc.{key}", "(not set)")
    assert ("--secret" in problem.remedy) == (key == "password")
    assert rack_settings(**{f"platform__bmc__{key}": None}, rehearsal=True).rehearsal
    own = {f"platform__servers__{place}__bmc__{key}": "own" for place in range(len(_SERVERS))}
    settings = rack_settings(**{f"platform__bmc__{key}": None}, **own)
    servers = [_server(settings, entry["name"]) for entry in _SERVERS]
    found = [getattr(each.bmc, key) for each in servers]
    assert [each.get_secret_value() if key == "password" else each for each in found] == ["own"] * len(_SERVERS)


@pytest.mark.parametrize(
    "changes",
    [
        {"platform__bmc__password": [_SECRET]},
        {"platform__bmc__passwords": _SECRET},
        {"platform__servers__0__bmc__password": {"value": _SECRET}},
        {"platform__servers__0__bmc__adress": "x"},
        {"platform__servers__0__password": _SECRET},
        {"platform__servers__0__bmc": _SECRET},
        {"platform__servers": [_SECRET]},
        {"platform__servers": {"password": _SECRET}},
        {"platform__type": "redfsh"},
        {"platform__servers__1__mac": _SERVERS[0]["mac"]},
    ],
    ids=str,
)
def test_no_message_shows_a_password(changes: dict[str, Any]) -> None:
    assert rack_problems(**changes), "and none of them shows it"
    assert _SECRET not in repr(rack_settings())


@pytest.mark.parametrize("key", ["address", "bootImage", "bootUrl"])
def test_a_url_with_a_password_is_refused_and_not_shown(key: str) -> None:
    (problem,) = rack_problems(**{f"platform__servers__0__bmc__{key}": f"https://ipi:{_SECRET}@10.0.0.9/x@y.iso"})
    assert problem.path == f"metal-ipi:platform.servers[0].bmc.{key}"
    assert problem.value == "https://[secret]@10.0.0.9/x@y.iso"
    plain = rack_settings(platform__servers__0__bmc__bootUrl="http://10.0.0.9/x@y.efi")
    assert _server(plain, "worker-4").bmc.boot_url == "http://10.0.0.9/x@y.efi"


def test_the_provider_gets_each_servers_bmc(certificate: str) -> None:
    own = {
        "address": "https://10.0.0.14",
        "username": "own",
        "password": "other",
        "fingerprint": _FINGERPRINT,
        "systemId": "1",
        "bootMethod": "virtual-media",
        "bootImage": "http://boot.example.com/ipxe.iso",
        "bootMode": "uefi",
    }
    settings = rack_settings(
        platform__bmc__ca=certificate, platform__bmc__bootMethod="uefi-http", platform__servers__0__bmc=own
    )
    sections = connections.provider_sections(settings)
    assert set(sections) == {"bmcs", "artifacts"}
    assert list(sections["bmcs"]) == [server["name"] for server in _SERVERS]
    assert sections["bmcs"]["worker-4"] == own
    assert sections["bmcs"]["worker-0"] == {
        "address": "https://10.0.0.13",
        "username": "ipi",
        "password": _SECRET,
        "ca": certificate,
        "bootMethod": "uefi-http",
    }


def test_a_rehearsal_stands_in_for_credentials() -> None:
    settings = rack_settings(platform__bmc=None, rehearsal=True)
    bmc = connections.provider_sections(settings)["bmcs"]["worker-0"]
    assert (bmc["username"], bmc["password"], bmc["bootMethod"]) == ("rehearsal", "rehearsal", "pxe")


def test_a_matchbox_of_the_site() -> None:
    upload = {"host": "h", "user": "u", "hostKey": PUBLIC_KEY, "privateKey": "k", "baseUrl": "https://h"}
    artifacts = {"type": "ssh", "directory": "/srv", **upload}
    assert "matchbox" not in connections.provider_sections(rack_settings(artifacts=artifacts))["artifacts"]
    settings = rack_settings(artifacts={**artifacts, "matchbox": "/var/lib/matchbox"})
    assert connections.provider_sections(settings)["artifacts"]["matchbox"] == "/var/lib/matchbox"
    (problem,) = rack_problems(artifacts={**artifacts, "matchbox": "data"})
    assert (problem.path, problem.why) == ("metal-ipi:artifacts.matchbox", "it is not absolute")


@pytest.mark.parametrize(
    ("changes", "path", "what"),
    [
        (
            {
                "platform__gateway": "10.130.0.1",
                "platform__prefix": 16,
                "platform__servers": [
                    {**server, "address": f"10.130.0.{10 + index}"} for index, server in enumerate(_SERVERS)
                ],
            },
            "platform.prefix",
            "the pods' network is 10.128.0.0/14",
        ),
        (
            {"platform__gateway": None, "platform__prefix": None, "platform__servers__0__address": "172.30.255.9"},
            "platform.servers[0].address",
            "the services' network is 172.30.0.0/16",
        ),
        (
            {"platform__servers__2__privateAddress": "100.88.1.1"},
            "platform.servers[2].privateAddress",
            "is 100.88.0.0/16",
        ),
    ],
)
def test_machines_have_no_address_that_the_cluster_uses_inside(changes: dict[str, Any], path: str, what: str) -> None:
    """The installer says so too, but later: pkg/types/validation/installconfig.go."""
    assert tells(rack_problems(**changes), path, what, "use addresses of another network for the machines")


def test_the_installer_is_told_the_machines_network_where_it_is_known() -> None:
    assert facility(rack_settings()).machine_networks == ("192.0.2.0/24",)
    assert facility(rack_settings(platform__prefix=None)).machine_networks == ()
