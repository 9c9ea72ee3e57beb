"""Converts the hosts of both files to `platform.servers`, and to the settings that all servers share."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from metal_ipi.stacks.becomes import NO_DISK
from metal_ipi.stacks.platforms.listed.settings import SECTIONS
from tools.importing import network
from tools.importing.cluster import Sizes
from tools.importing.documents import Tree
from tools.importing.fields import HINTS
from tools.importing.network import Network
from tools.importing.taking import Place, Taking

_ROLES = {"master": "control-plane", "arbiter": "arbiter", "worker": "worker"}
_NO_TEXTS = ("minSize", "rotational")
_SINGLE = {"control-plane": 1, "arbiter": 0, "worker": 0}
_VM = {
    "address": "bootstrapExternalStaticIP",
    "mac": "externalMACAddress",
    "bridge": "externalBridge",
    "uri": "libvirtURI",
}
"""Settings of the virtual bootstrap machine to the installer's fields."""
_BOOT_MODES = {"UEFI": "uefi", "UEFISecureBoot": "uefi", "legacy": "bios"}
_METHODS = {
    **dict.fromkeys(("redfish", "ilo5-redfish", "idrac-redfish"), "pxe"),
    **dict.fromkeys(("redfish-virtualmedia", "ilo5-virtualmedia", "idrac-virtualmedia"), "live-iso"),
    "redfish-uefihttp": "uefi-http",
}
"""URL schemes of BMC addresses with Redfish, and the boot method that is closest here. Source: metal3-io's
baremetal-operator, pkg/hardwareutils/bmc; `+http` or `+https` may follow."""
_ADDRESS = re.compile(r"((?P<kind>[a-z0-9-]+)(\+(?P<scheme>https?))?:(//)?)?(?P<host>[^/]+)(?P<path>/.*)?")
_SYSTEM = re.compile(r"/redfish/v1/Systems/([^/]+)/?")


@dataclass(kw_only=True)
class Host:
    """A host, which may be in both files."""

    places: list[Place]
    """Its entries in the files; the first one takes precedence."""
    macs: dict[str, str]
    """Interface name to MAC address."""
    network: Network | None = None
    name: str = ""
    """Its name in platform.servers."""

    def given(self, *names: str) -> list[Place]:
        """The fields of these names that have a value, in all its entries."""
        found = [each.below(name) for each in self.places for name in names]
        return [place for place in found if place.value not in (None, "")]

    def pick(self, taking: Taking, *names: str) -> Place | None:
        """The field that takes precedence. Differing values of the others are reported as not used."""
        found = self.given(*names)
        for other in found[1:]:
            if other.value == found[0].value:
                below = cast(Tree, other.value) if isinstance(other.value, dict) else {}
                taking.done(other, *map(other.below, below))
            else:
                taking.tell(other, f"{found[0]} has another value", "nothing, or correct platform.servers")
        return found[0] if found else None


def take(taking: Taking, install: Place, agent: Place | None, sizes: Sizes) -> list[Host]:
    """Converts the hosts that have a role in the cluster; returns an empty list if no file lists hosts."""
    baremetal = install.below("platform").below("baremetal")
    hosts = _hosts(taking, baremetal, agent)
    roles = _roles(taking, hosts, sizes)
    numbers = dict.fromkeys(_ROLES.values(), 0)
    listed: list[Host] = []
    for host, role in zip(hosts, roles, strict=True):
        if role:
            host.name = f"{role}-{numbers[role]}"
            numbers[role] += 1
            host.network = network.read(taking, host.pick(taking, "networkConfig"))
            listed.append(host)
    alike = _are_alike(listed)
    networks = install.below("networking").below("machineNetwork").items
    dual_stack = len({":" in each.below("cidr").text for each in networks}) > 1
    for number, host in enumerate(listed):
        _server(taking, f"platform.servers[{number}]", host)
        if dual_stack and host.network is not None and host.network.ipv6:
            taking.put(f"platform.servers[{number}].ipv6Address", host.network.ipv6, host.network.place)
        _network(taking, f"platform.servers[{number}]", host, alike=alike)
    if listed:
        _sizes(taking, sizes, numbers)
        _accounts(taking, listed)
        _common_bmc(taking, listed)
        _networks(taking, listed, alike=alike)
        _addresses(taking, listed, agent)
    _disks(taking, listed, install.below("bootstrapInPlace").below("installationDisk"))
    _bootstrap(taking, install, listed, numbers, sizes)
    return listed


def _hosts(taking: Taking, baremetal: Place, agent: Place | None) -> list[Host]:
    """The hosts of agent-config, if it lists any, as in the installer. install-config adds their BMCs."""
    known = [
        Host(places=[place], macs={"": _mac(place.below("bootMACAddress").text)})
        for place in baremetal.below("hosts").items
    ]
    found: list[Host] = []
    for place in agent.below("hosts").items if agent is not None else []:
        cards = place.below("interfaces").items
        macs = {card.below("name").text: _mac(card.below("macAddress").text) for card in cards}
        same = [host for host in known if host.macs[""] in macs.values()]
        found.append(Host(places=[place, *(each for host in same for each in host.places)], macs=macs))
    used = [place for host in found for place in host.places]
    for host in known if found else []:
        if host.places[0] not in used:
            taking.tell(host.places[0], "agent-config lists the hosts, and none with this bootMACAddress",
                        "add its card to hosts[].interfaces of agent-config, and import again")  # fmt: skip
    return found or known


def _mac(text: str) -> str:
    return text.lower().replace("-", ":")


def _roles(taking: Taking, hosts: Sequence[Host], sizes: Sizes) -> list[str]:
    """The role of each host. Hosts without one get the roles that still lack hosts: control plane first, then arbiter,
    then worker."""
    roles: list[str] = []
    given = [host.pick(taking, "role") for host in hosts]
    wanted = ["control-plane"] * sizes.control_plane + ["arbiter"] * sizes.arbiters
    for place in given:
        role = _ROLES.get(place.text, "") if place is not None else ""
        if role in wanted:
            wanted.remove(role)
    for host, place in zip(hosts, given, strict=True):
        if place is None:
            roles.append(wanted.pop(0) if wanted else "worker")
        elif place.text in _ROLES:
            taking.done(place)
            roles.append(_ROLES[place.text])
        else:
            for each in host.places:
                taking.tell(each, "no machine has such a role", "give it master, arbiter or worker")
            roles.append("")
    return roles


def _sizes(taking: Taking, sizes: Sizes, numbers: dict[str, int]) -> None:
    for role, section in SECTIONS.items():
        place, count = sizes.places.get(section), numbers[role]
        if place is not None and place.value == count:
            taking.done(place)
        elif place is not None:
            taking.tell(place, f"the files list {count} hosts of this role, and each of them is installed",
                        "remove surplus servers from platform.servers, or add missing ones")  # fmt: skip


def _server(taking: Taking, path: str, host: Host) -> None:
    """Converts the settings that belong to one server."""
    taking.put(f"{path}.name", host.name)
    address = host.pick(taking, "bmc.address", "BMC.address")
    if address is not None:
        _bmc(taking, f"{path}.bmc", address)


def _network(taking: Taking, path: str, host: Host, *, alike: bool) -> None:
    """Converts MAC address, address and network configuration of a server, unless common settings cover them."""
    found, cards = host.network, host.places[0].below("interfaces").items
    fields = [card.below(name) for card in cards for name in ("name", "macAddress")]
    boot = next(iter(host.given("bootMACAddress")), None)
    known = found.interface if found is not None else ""
    mac = _mac(boot.text) if boot else host.macs.get(known) or next(iter(host.macs.values()), "")
    as_it_is = found is not None and not alike
    if mac and not boot and as_it_is and len(host.macs) > 1:
        taking.choose(f"{path}.mac", mac, "neither file says which of its cards the server boots from")
    elif mac:
        used = [place for place in fields if _mac(place.text) == mac]
        taking.put(f"{path}.mac", mac, *([boot] if boot else []), *used)
    if found is not None and found.address:
        taking.put(f"{path}.address", found.address, found.place)
    if found is not None and as_it_is:
        _as_it_is(taking, path, found, cards, fields)
        return
    taking.done(*(card.below("name") for card in cards))
    for place in fields:
        if place.text and not taking.is_done(place):
            taking.tell(place, "a server is identified by the card that it boots from, and only that one is set",
                        f"set {path}.mac to it, if it is the card to boot from")  # fmt: skip


def _as_it_is(taking: Taking, path: str, found: Network, cards: Sequence[Place], fields: Sequence[Place]) -> None:
    """Keeps a networkConfig unchanged. Its interfaces are found by their MAC addresses, as in the installer
    (pkg/asset/agent/agentconfig/agenthosts.go)."""
    listed = [{"name": card.below("name").text, "macAddress": _mac(card.below("macAddress").text)} for card in cards]
    names = {card["name"] for card in listed}
    listed += [{"name": name, "macAddress": _mac(mac)} for name, mac in found.cards.items() if name not in names]
    if listed:
        taking.put(f"{path}.interfaces", listed, *fields)
    taking.put(f"{path}.networkConfig", found.tree, found.place)
    unknown = [name for name in found.named if name not in {card["name"] for card in listed}]
    if unknown:
        taking.tell(
            found.place,
            f"no MAC address says which cards these are: {', '.join(unknown)}",
            f"add them to {path}.interfaces, with name and macAddress (docs/host-networks.md)",
        )


def _bmc(taking: Taking, path: str, place: Place) -> None:
    """Converts a BMC's address by its scheme; without a scheme it is IPMI."""
    found = _ADDRESS.fullmatch(place.text)
    kind = (found["kind"] if found else "") or "ipmi"
    if found is None or kind not in _METHODS:
        remedy = f"set {path}.address to the https URL of its Redfish service"
        if found is not None and kind == "ipmi":
            host = found["host"].rpartition("@")[2]
            remedy = (
                f"set platform.type: ironic, for this server driver: ipmi and bmc.address: ipmi://{host}, and driver:"
                f" redfish for others (docs/provisioning.md); or {remedy}"
            )
        taking.tell(place, f"it uses {kind}, and platform.type redfish supports Redfish only", remedy)
        return
    taking.put(f"{path}.address", f"https://{found['host']}", place)
    system = _SYSTEM.fullmatch(found["path"] or "")
    if system is not None:
        taking.put(f"{path}.systemId", system[1], place)
    elif (found["path"] or "").strip("/") not in ("", "redfish/v1"):
        taking.tell(
            place, f"{found['path']} is not a path of a System", f"set {path}.systemId, if the BMC serves several"
        )
    if found["scheme"] == "http":
        taking.tell(place, "credentials are never sent in clear: https is set instead", "turn on https in the BMC")


def _accounts(taking: Taking, hosts: Sequence[Host]) -> None:
    """Converts BMC accounts: one common account if all are equal."""
    accounts = [
        [host.pick(taking, f"bmc.{name}", f"BMC.{name}") for name in ("username", "password")] for host in hosts
    ]
    texts = [[place.text if place is not None else "" for place in pair] for pair in accounts]
    alike = all(pair == texts[0] and all(pair) for pair in texts)
    for number, (user, password) in enumerate(accounts):
        path = "platform.bmc" if alike else f"platform.servers[{number}].bmc"
        if user is not None:
            taking.put(f"{path}.username", user.text, user)
        if password is not None and not (alike and number):
            taking.secret(f"{path}.password", password)
        elif password is not None:
            taking.done(password)


def _common_bmc(taking: Taking, hosts: Sequence[Host]) -> None:
    """Converts the boot mode and the boot method of servers."""
    modes: list[tuple[str, Place] | None] = []
    methods: list[tuple[str, Place] | None] = []
    for host in hosts:
        mode, address = host.pick(taking, "bootMode"), next(iter(host.given("bmc.address", "BMC.address")), None)
        modes.append((_BOOT_MODES[mode.text], mode) if mode is not None and mode.text in _BOOT_MODES else None)
        if mode is not None and mode.text == "UEFISecureBoot":
            taking.tell(
                mode,
                "Secure Boot stays as it is in the firmware; uefi is set",
                "switch it on in the firmware, and set platform.bmc.bootMethod: live-iso (docs/redfish.md)",
            )
        found = _ADDRESS.fullmatch(address.text) if address is not None else None
        method = _METHODS.get(found["kind"] or "") if found is not None else None
        methods.append((method, address) if method is not None and address is not None else None)
    for name, values in (("bootMode", modes), ("bootMethod", methods)):
        alike = len({each and each[0] for each in values}) == 1
        for number, each in enumerate(values):
            if each is not None and each[0] != "pxe":  # pxe is the default
                taking.put(f"platform.{'' if alike else f'servers[{number}].'}bmc.{name}", each[0], each[1])


def _are_alike(hosts: Sequence[Host]) -> bool:
    """Whether all hosts have static networks that differ only in their addresses."""
    found = {
        (each.network.gateway, each.network.prefix, each.network.nameservers, each.network.interface)
        for each in hosts
        if each.network is not None and each.network.is_static
    }
    return len(found) == 1 and all(each.network is not None and each.network.is_static for each in hosts)


def _networks(taking: Taking, hosts: Sequence[Host], *, alike: bool) -> None:
    """Converts the network settings that the hosts share."""
    networks = [host.network for host in hosts if host.network is not None]
    places = [each.place for each in networks]
    for setting in ("gateway", "prefix"):
        values = {value for each in networks if (value := getattr(each, setting))}
        if len(values) == 1:
            taking.put(f"platform.{setting}", values.pop(), *places)
    if alike:
        taking.put("platform.nameservers", list(networks[0].nameservers), *places)
        taking.put("platform.networkBoot", "static")
        taking.choose(
            "platform.interface",
            networks[0].interface,
            "this is the card's name in networkConfig; it must be the name that `ip link` shows on the machines",
        )


def _addresses(taking: Taking, hosts: Sequence[Host], agent: Place | None) -> None:
    """Reports the rendezvous host, which bootstraps the others in the agent-based installer."""
    place = agent.below("rendezvousIP") if agent is not None else None
    if place is None or not place.text:
        return
    if len(hosts) == 1 and not (hosts[0].network and hosts[0].network.address):
        taking.put("platform.servers[0].address", place.text, place)
    else:
        taking.tell(place, "the bootstrap machine is not a control plane machine: platform.bootstrap sets it")


def _disks(taking: Taking, hosts: Sequence[Host], disk: Place) -> None:
    """Converts the rules for installation disks: one common rule if all are equal."""
    rules: list[Tree] = []
    sources: list[list[Place]] = []
    for host in hosts:
        hints = host.pick(taking, "rootDeviceHints")
        found = {} if hints is None else {ours: hints.below(name) for name, ours in HINTS.items()}
        given = {ours: place for ours, place in found.items() if place.text}
        rules.append({ours: place.value if ours in _NO_TEXTS else place.text for ours, place in given.items()})
        sources.append(list(given.values()))
    alike = bool(rules) and all(rule == rules[0] for rule in rules)
    for number, (rule, places) in enumerate(zip(rules, sources, strict=True)):
        taking.done(*places)
        if rule and (not alike or not number):
            taking.put("boot.install.device" if alike else f"platform.servers[{number}].installDevice", rule, *places)
    if disk.text and disk.text != NO_DISK and not (alike and rules[0]):
        taking.put("boot.install.device.deviceName", disk.text, disk)
    elif not alike or not rules[0]:
        without = ", ".join(host.name for host, rule in zip(hosts, rules, strict=True) if not rule)
        taking.choose(
            "boot.install.device",
            {"smallest": True},
            f"there are no hints for the disk that is erased and installed to{f' of {without}' if without else ''}"
            if not hosts or without
            else "each server has a rule of its own; this one is for servers that are added",
        )


def _bootstrap(taking: Taking, install: Place, hosts: Sequence[Host], numbers: Mapping[str, int], sizes: Sizes) -> None:
    """Chooses how to bootstrap: a virtual machine if both of its addresses are known, as in the installer; else a
    worker's server; for a single node, none."""
    baremetal = install.below("platform").below("baremetal")
    _bootstrap_network(taking, baremetal)
    vm = {ours: baremetal.below(name) for ours, name in _VM.items()}
    counts = {"control-plane": sizes.control_plane, "arbiter": sizes.arbiters, "worker": sizes.workers}
    if (numbers if hosts else counts) == _SINGLE:
        taking.put("platform.bootstrap.type", "none")
    elif hosts and (not numbers["worker"] or (vm["address"].text and vm["mac"].text)):
        taking.put("platform.bootstrap.type", "local-vm")
        for ours, place in vm.items():
            if place.text:
                taking.put(f"platform.bootstrap.{ours}", place.text, place)
        if not vm["bridge"].text:
            taking.choose("platform.bootstrap.bridge", "baremetal", "it is the installer's default")
    elif hosts:
        lent = {"type": "lend", "server": "worker-0"}
        taking.choose(
            "platform.bootstrap", lent, "this worker's server bootstraps the cluster first, and then joins as a worker"
        )
    for place in vm.values():
        if place.text and not taking.is_done(place):
            why = "no virtual machine bootstraps the cluster here"
            taking.tell(place, why, "nothing to do; or set platform.bootstrap to one of type local-vm")


def _bootstrap_network(taking: Taking, baremetal: Place) -> None:
    """The gateway and resolvers of the bootstrap machine, used for all machines if no networkConfig names others."""
    for setting, name in (("gateway", "Gateway"), ("nameservers", "DNS")):
        place = baremetal.below(f"bootstrapExternalStatic{name}")
        found = taking.settings.get("platform", {}).get(setting)
        if place.text and found in (None, place.text, [place.text]):
            taking.put(f"platform.{setting}", place.text if setting == "gateway" else [place.text], place)
        elif place.text:
            taking.tell(place, f"the hosts' own networkConfig has another one, and platform.{setting} applies to all")
