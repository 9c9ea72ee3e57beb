"""Networks of hosts: what is refused, what nmstatectl is asked, and what machines are given."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from metal_ipi.components.boot.host_network import HostNetworkError, Keyfiles
from metal_ipi.stacks import host_networks
from metal_ipi.stacks.problems import SettingsError
from metal_ipi.stacks.sections import nmstate
from metal_ipi.stacks.settings import parse
from tests import golden
from tests.mocks import Recorder, config_text
from tests.stacks.answers import ANSWERS, checked, declared, node_files, settings, stack_file

_INSTALLATION = "metal-ipi:index:Installation"
_KEYFILES = Keyfiles(
    live={"eno1.nmconnection": "live\n"}, installed={"eno1.nmconnection": "name=@52:54:00:72:61:00@\n"}
)
Change = Callable[[dict[str, Any]], Any]
"""What is done to the platform's section."""


def _changed(change: Change) -> dict[str, Any]:
    tree = stack_file("bonded")
    change(tree["platform"])
    return tree


def _problems(change: Change) -> list[tuple[str, str, str]]:
    with pytest.raises(SettingsError) as caught:
        parse(config_text({**_changed(change), "rehearsal": True}), "s1")
    found = caught.value.problems
    return [(each.path.removeprefix("metal-ipi:platform."), each.why, each.remedy) for each in found]


def _set(path: str, value: Any) -> Change:
    """Set, or remove (None), what is at a path below the first server."""

    def change(platform: dict[str, Any]) -> None:
        *parents, last = path.split("/")
        section: Any = platform["servers"][0]
        for part in parents:
            section = section[int(part)] if part.isdigit() else section[part]
        key: Any = int(last) if last.isdigit() else last
        if value is None:
            del section[key]
        elif isinstance(section, list) and key == len(section):
            section.append(value)
        else:
            section[key] = value

    return change


_LINKS = "networkConfig/interfaces"
_BOND = f"{_LINKS}/2"
_VLAN = f"{_LINKS}/3"
_ROUTE = "networkConfig/routes/config/0"
_FIRST = "servers[0]"
_NETWORKS = f"{_FIRST}.networkConfig.interfaces"
_CARDS = ["eno1", "eno2"]
_MACVLAN = {"name": "mv0", "type": "mac-vlan", "state": "down", "mac-vlan": {"base-iface": "eno2", "mode": "vepa"}}


@pytest.mark.parametrize(
    ("change", "path", "why"),
    [
        (_set("networkConfig", None), f"{_FIRST}.networkConfig", "networkConfig is not set"),
        (_set("interfaces/0", None), f"{_FIRST}.interfaces", "the card that the server boots from, 52:54:00:72:61:00"),
        (_set("interfaces/1", None), f"{_FIRST}.networkConfig.interfaces[1].name", "have no entry"),
        (_set("interfaces/0/name", "eno2"), f"{_FIRST}.interfaces", "two cards have this name"),
        (_set("interfaces/0/macAddress", "5254.0072.6100"), f"{_FIRST}.interfaces[0].macAddress", "not a MAC address"),
        (_set("interfaces/0/name", "a/b"), f"{_FIRST}.interfaces[0].name", "not a name of an interface"),
        (
            _set("interfaces/1/macAddress", "52:54:00:72:61:01"),
            f"{_FIRST}.interfaces[1].macAddress",
            "platform.servers[1].mac is the same",
        ),
        (
            _set("interfaces/1/macAddress", "52:54:00:72:62:01"),
            "servers[1].interfaces[1].macAddress",
            "platform.servers[0].interfaces[1].macAddress is the same",
        ),
        (
            _set("interfaces/1/macAddress", "52:54:00:72:61:00"),
            f"{_FIRST}.interfaces[1].macAddress",
            "platform.servers[0].interfaces[0].macAddress is the same",
        ),
        (
            _set(f"{_LINKS}/0/mac-address", "52:54:00:00:00:09"),
            f"{_FIRST}.networkConfig.interfaces[0].mac-address",
            "eno1 is the card with 52:54:00:72:61:00",
        ),
        (_set(f"{_LINKS}/1/name", "eno1"), f"{_FIRST}.networkConfig.interfaces[1].name", "has this name"),
        (_set(f"{_LINKS}/0/type", "dummy"), f"{_FIRST}.interfaces", "a dummy, not a card"),
        (_set(f"{_BOND}/link-aggregation/port", ["eno1", "eno3"]), f"{_FIRST}.networkConfig.interfaces[2]", "neither"),
        (_set(f"{_BOND}/link-aggregation", {"mode": 1, "ports": ["eno1", "eno3"]}), f"{_NETWORKS}[2]", "neither"),
        (_set(f"{_BOND}/link-aggregation", {"mode": 1, "ports-config": [{"name": "e"}]}), f"{_NETWORKS}[2]", "neither"),
        (_set(f"{_BOND}/link-aggregation", {"mode": 1}), f"{_NETWORKS}[2].link-aggregation", "a bond needs ports"),
        (_set(f"{_LINKS}/4", _MACVLAN), f"{_NETWORKS}[4].type", "only ethernet, bond, vlan, linux-bridge are known"),
        (_set(f"{_LINKS}/0/type", "infiniband"), f"{_NETWORKS}[0].type", "only ethernet, bond, vlan"),
        (
            _set(f"{_LINKS}/0/identifier", "pci-address"),
            f"{_NETWORKS}[0].identifier",
            "cards are identified by the MAC addresses",
        ),
        (_set(f"{_BOND}/identifier", "mac-address"), f"{_NETWORKS}[2].identifier", "all other interfaces by name"),
        (_set(f"{_LINKS}/0/mtu", 1400), f"{_FIRST}.networkConfig.interfaces[2]", "its port eno1 has an mtu of 1400"),
        (
            _set(f"{_LINKS}/0/ipv4", {"enabled": True, "dhcp": True}),
            f"{_FIRST}.networkConfig.interfaces[2]",
            "a port of bond0 cannot have addresses",
        ),
        (
            _set(f"{_VLAN}/mtu", 9000),
            f"{_FIRST}.networkConfig.interfaces[3].mtu",
            "bond0, its base interface, has an mtu of 1500",
        ),
        (
            _set(f"{_VLAN}/vlan/base-iface", "bond1"),
            f"{_FIRST}.networkConfig.interfaces[3].vlan.base-iface",
            "has no such interface",
        ),
        (_set(f"{_VLAN}/vlan/id", 5000), f"{_FIRST}.networkConfig.interfaces[3].vlan.id", "less than or equal to 4094"),
        (_set(f"{_VLAN}/vlan/id", "x"), f"{_FIRST}.networkConfig.interfaces[3].vlan.id", "valid integer"),
        (_set(f"{_VLAN}/name", "a-name-too-long.100"), f"{_FIRST}.networkConfig.interfaces[3].name", "not NMState"),
        (
            _set(f"{_VLAN}/ipv4/address", [{"ip": "10.100.0.398", "prefix-length": 24}]),
            f"{_FIRST}.networkConfig.interfaces[3].ipv4.address[0].ip",
            "not a valid IPv4",
        ),
        (
            _set(f"{_VLAN}/ipv4/address", [{"ip": "10.100.0.97", "prefix-length": 33}]),
            f"{_FIRST}.networkConfig.interfaces[3].ipv4.address[0].prefix-length",
            "it is more than the bits of 10.100.0.97",
        ),
        (
            _set(f"{_VLAN}/ipv4/address", [{"ip": "10.100.0.98", "prefix-length": 24}]),
            "servers[1].networkConfig.interfaces[3]",
            "platform.servers[0].networkConfig.interfaces[3] (bond0.100) is the same",
        ),
        (
            _set(f"{_VLAN}/ipv4/address", [{"ip": "192.0.2.1", "prefix-length": 24}]),
            f"{_FIRST}.networkConfig.interfaces[3]",
            "platform.gateway is the same",
        ),
        (
            _set(f"{_VLAN}/ipv4/address", [{"ip": "10.128.0.5", "prefix-length": 24}]),
            f"{_FIRST}.networkConfig.interfaces[3]",
            "the cluster uses it internally",
        ),
        (
            _set(f"{_BOND}/ipv4/address", [{"ip": "192.0.2.111", "prefix-length": 24}]),
            f"{_FIRST}.address",
            "no interface of networkConfig has it: 192.0.2.111, 10.100.0.97",
        ),
        (
            _set(f"{_BOND}/ipv4/address", [{"ip": "192.0.2.97", "prefix-length": 25}]),
            f"{_FIRST}.networkConfig.interfaces",
            "the machines' network is 192.0.2.0/24",
        ),
        (_set("privateAddress", "10.100.0.200"), f"{_FIRST}.privateAddress", "no interface of networkConfig has it"),
        (_set("networkConfig/routes", {"config": []}), f"{_FIRST}.networkConfig.routes", "no default route"),
        (
            _set(f"{_ROUTE}/next-hop-interface", "bond0.100"),
            f"{_FIRST}.networkConfig.routes.config[0].next-hop-address",
            "it cannot be reached: bond0.100 is in no network that contains it (10.100.0.0/24)",
        ),
        (
            _set(f"{_ROUTE}/next-hop-interface", "bond7"),
            f"{_FIRST}.networkConfig.routes.config[0].next-hop-interface",
            "no such interface that is up",
        ),
        (
            _set(f"{_ROUTE}/next-hop-address", "192.0.2.2"),
            f"{_FIRST}.networkConfig.routes.config[0].next-hop-address",
            "the machines' gateway is 192.0.2.1",
        ),
        (_set("networkConfig/dns-resolver", None), f"{_FIRST}.networkConfig.dns-resolver", "no resolver"),
        (
            _set(f"{_LINKS}/0/802.1x", {"eap-methods": ["tls"]}),
            f"{_FIRST}.networkConfig.interfaces[0].802.1x",
            "anybody who reaches the boot server could read them",
        ),
        (_set("kernelArguments", ["ip=dhcp"]), f"{_FIRST}.kernelArguments[0]", "servers have a networkConfig"),
        (_set("networkConfig", "bond0"), f"{_FIRST}.networkConfig", "it should be a valid dictionary"),
    ],
)
def test_what_is_wrong_is_told_in_preview(change: Change, path: str, why: str) -> None:
    found = _problems(change)
    assert [(path, why) for where, what, remedy in found if where == path and why in what and remedy], found


def test_a_bond_whose_port_is_taken_twice() -> None:
    def change(platform: dict[str, Any]) -> None:
        links = platform["servers"][0]["networkConfig"]["interfaces"]
        links.append({**copy.deepcopy(links[2]), "name": "bond1", "ipv4": {"enabled": False}})
        links.append({**copy.deepcopy(links[3]), "name": "again", "ipv4": {"enabled": False}})

    found = {why for _, why, _ in _problems(change)}
    assert found == {"bond0.100 is the same VLAN of bond0", "it is a port of bond0 as well"}


def test_no_tang_server_opens_the_disk_that_its_network_is_on() -> None:
    tang = [{"url": "http://tang.example.com", "thumbprint": "x" * 27}]
    tree = {**stack_file("bonded"), "machineConfig": {"diskEncryption": {"tang": tang}}, "rehearsal": True}
    with pytest.raises(SettingsError, match="servers have a networkConfig: the network is set up from the disk"):
        parse(config_text(tree), "s1")


def test_everything_is_told_at_once() -> None:
    def change(platform: dict[str, Any]) -> None:
        for path, value in ((f"{_VLAN}/mtu", 9000), ("networkConfig/dns-resolver", None), ("interfaces/1", None)):
            _set(path, value)(platform)
        platform["servers"][2]["networkConfig"]["interfaces"][3]["vlan"]["id"] = 0

    assert len(_problems(change)) == 4


def test_dhcp_brings_what_is_not_said() -> None:
    """A bond that gets all by DHCP, as `dhcp: true` of agent-config.yaml."""

    def change(platform: dict[str, Any]) -> None:
        for server in platform["servers"]:
            server["networkConfig"]["interfaces"][2]["ipv4"] = {"enabled": True, "dhcp": True}
            del server["networkConfig"]["routes"], server["networkConfig"]["dns-resolver"]

    assert parse(config_text({**_changed(change), "rehearsal": True}), "s1").platform


# --- nmstatectl ----------------------------------------------------------------------------------------------------


@pytest.fixture
def nmstatectl(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """It is there, and makes the same keyfiles of everything."""
    asked: list[str] = []

    def keyfiles(network: Any, program: str) -> Keyfiles:
        asked.append(network.path)
        return _KEYFILES

    monkeypatch.setattr(host_networks.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(host_networks, "keyfiles", keyfiles)
    return asked


def _declared(change: Change = lambda _: None, *, preview: bool = False) -> Recorder:
    return declared("bonded", values=settings("bonded", **_changed(change)), preview=preview)


def test_its_words_are_told_for_all_hosts_before_anything_is_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(network: Any, program: str) -> Keyfiles:
        raise HostNetworkError(f"InvalidArgument: no such thing at {network.path}")

    monkeypatch.setattr(host_networks.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(host_networks, "keyfiles", refuse)
    with pytest.raises(HostNetworkError) as caught:
        _declared(preview=True)
    said = str(caught.value)
    assert all(f"platform.servers[{index}].networkConfig\n      InvalidArgument" in said for index in range(4))
    assert "  4. " in said and "  5. " not in said, "a server that is lent is told once"


def test_without_it_a_preview_says_so_and_an_up_does_not_begin(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(host_networks.shutil, "which", lambda _: None)
    told: list[str] = []
    monkeypatch.setattr(host_networks.pulumi.log, "warn", lambda text, *_: told.append(text))
    unknown = {**ANSWERS, "metal-ipi:index:Artifacts": lambda _: {}}
    assert declared("bonded", unknown, values=settings("bonded"), preview=True).of(_INSTALLATION)
    assert "they were not checked by it" in told[0] and "cargo install nmstatectl" in told[0]
    with pytest.raises(HostNetworkError, match="which is not on PATH, and nothing was changed"):
        _declared()


@pytest.mark.usefixtures("nmstatectl")
def test_live_systems_and_installed_ones_are_given_their_profiles() -> None:
    recorder = _declared()
    installation = recorder.inputs("bonded-worker-0-installation")
    assert installation["runs"]["network"].startswith("bond0 (active-backup of eno1, eno2) 192.0.2.100/24; bond0.100")
    assert " ip=" not in installation["script"] and "network=" not in str(installation["runs"]["kernelArguments"])
    for name, file in (("workers-initrds", "bonded-worker-0.img"), ("bootstrap-initrd", "bootstrap.img")):
        archive = recorder.inputs(name)["files"][file]
        assert "etc/coreos-firstboot-network/eno1.nmconnection" in archive and "live\n" in archive
    files = node_files(recorder.inputs("workers-installers")["files"]["bonded-worker-0.ign"])
    assert files["/etc/metal-ipi/network-by-mac/eno1.nmconnection"] == "name=@52:54:00:72:61:00@\n"
    assert (
        '"copy-network": true' not in files
        and "copy-network: true\n" in files["/etc/coreos/installer.d/10-metal-ipi.yaml"]
    )
    disk = json.loads(files["/etc/metal-ipi/disk.ign"])
    assert "NetworkManager" not in json.dumps(disk), "install.sh adds the profiles, which knows the names of cards"


@pytest.mark.usefixtures("nmstatectl")
def test_a_preview_of_the_stack() -> None:
    """Every resource, and of installations what a person sees of the network."""
    recorder = declared("bonded", values=settings("bonded"), preview=True)
    told = {args.name: str(args.inputs["runs"]["network"]) for args in recorder.of(_INSTALLATION)}
    lines = sorted(f"{recorder.urn(args.name)} {told.get(args.name, '')}".rstrip() for args in recorder.resources)
    golden.check("preview-bonded.txt", "".join(f"{line}\n" for line in lines))


@pytest.mark.usefixtures("nmstatectl")
@pytest.mark.parametrize(
    "ports", [{"port": _CARDS}, {"ports": _CARDS}, {"ports-config": [{"name": n} for n in _CARDS]}]
)
def test_nodes_are_checked_for_bonds_and_vlans(ports: dict[str, Any]) -> None:
    asked = checked(_declared(_set(f"{_BOND}/link-aggregation", {"mode": 1, **ports})), "bonded-control-plane-0")
    links = "bond0=active-backup/52:54:00:72:61:00,52:54:00:72:62:00 bond0.100=100/bond0"
    assert asked["EXPECTED_LINKS"] == links


def test_of_a_bond_whose_ports_are_not_known_nothing_is_checked() -> None:
    bond = {"name": "bond0", "type": "bond", "link-aggregation": {"mode": "active-backup"}}
    state, problems = nmstate.read({"interfaces": [bond]}, "")
    assert state is not None and problems == [] and state.links({"eno1": "52:54:00:72:61:00"}) == ()


@pytest.mark.usefixtures("nmstatectl")
def test_a_changed_network_installs_its_machine_anew_and_no_other() -> None:
    def generations(recorder: Recorder) -> dict[str, str]:
        return {args.name: str(args.inputs["generation"]) for args in recorder.of(_INSTALLATION)}

    before = generations(_declared())
    after = generations(_declared(_set(f"{_VLAN}/vlan/id", 101)))
    assert [name for name in before if before[name] != after[name]] == ["bonded-control-plane-0-installation"]


def test_servers_without_networks_of_their_own_need_no_nmstatectl(nmstatectl: list[str]) -> None:
    declared("rack7", values=settings("rack7"))
    assert nmstatectl == []
