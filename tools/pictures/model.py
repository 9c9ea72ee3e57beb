"""Builds the topology of a cluster from its resources: machines, networks, names and addresses. Pure functions."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from pulumi.automation import EngineEvent

from tools.pictures.resources import UNKNOWN, Change, Resource, Tree, listed, mapping, of_events, of_state
from tools.pictures.shapes import ARBITER, ROLES, Machine, Name, Network, Pool, Role, Topology, order
from tools.state import DEVICE, EPHEMERAL, INSTALLATION, PREFLIGHT, REMOVAL, SERVERS, SPOT_REQUEST, STACK_TYPE, urn_name

METAL, RACK = "metal-ipi:machines:EquinixMetal", "metal-ipi:machines:Redfish"
_PLATFORMS = {
    METAL: "Equinix Metal",
    RACK: "servers with BMCs (Redfish)",
    "metal-ipi:machines:Ironic": "servers through Ironic",
}
"""Component type to the platform's name for people."""
_NAMES = "metal-ipi:index:DnsRecords"
_SPOT_MACHINE = "metal-ipi:index:SpotMachine"
_GATE = "metal-ipi:index:Gate"
_ANNOUNCED = "address-announced"
_VLAN = "equinix-metal:index/vlan:Vlan"
_GATEWAY = "equinix-metal:index/gateway:Gateway"
_BOND = "equinix-metal:index/port:Port"
_SESSION = "equinix-metal:index/bgpSession:BgpSession"
_BLOCK = "equinix-metal:index/reservedIpBlock:ReservedIpBlock"
_METALLB = "kubernetes:metallb.io/"
_ADDRESSES = ("A", "AAAA", "CNAME")
_KEPT_BY_HAND = "kept by hand"
_ARBITERS = "arbiter"
"""Name of the arbiters' component."""
_WORKERS = "workers"
"""Name of the workers' component."""
_RESERVED_FOR = "service-addresses-{pool}"
"""Name of the address reservation for a pool of service addresses. In a preview only this name connects the two: the
addresses are unknown, and events have no dependencies."""
_MARK = re.compile(r"metal-ipi:[^: ]*:[^: ]*:(\S+) run=")
"""Beginning of a VLAN's description: stack, cluster and its name (`components.machines.tags.label`)."""


def from_state(resources: Iterable[Tree]) -> Topology:
    """The topology of the resources of an exported state (`Deployment.resources`)."""
    return _topology(_Parts(of_state(resources)), planned=False)


def from_events(events: Iterable[EngineEvent]) -> Topology:
    """The topology of a preview (or another operation) from the engine's events, with the planned changes."""
    return planned(of_events(events))


def planned(resources: Iterable[Resource]) -> Topology:
    """The topology of resources that were read from events."""
    return _topology(_Parts(resources), planned=True)


def _topology(parts: _Parts, *, planned: bool) -> Topology:
    cluster, machines, names = parts.cluster(), parts.machines(), parts.names()
    zones = sorted({each.text("zone") for each in parts.of(_NAMES)} - {""}, key=lambda zone: ("arpa" in zone, zone))
    return Topology(
        name=str(cluster.get("name", "")),
        domain=str(cluster.get("domain", "")),
        version=str(cluster.get("version", "")),
        platform=next((name for type_, name in _PLATFORMS.items() if parts.of(type_)), ""),
        place=parts.place(),
        zone=", ".join(zones) or (_KEPT_BY_HAND if names else ""),
        api=parts.api(machines, names),
        machines=machines,
        networks=parts.networks(machines),
        names=tuple(each for name in parts.shared_names for each in names if each.name == name),
        nodes=sum(each.name not in parts.shared_names for each in names if each.change != "delete"),
        pools=parts.pools(),
        planned=planned,
    )


class _Parts:
    """The resources, by their meaning for the cluster."""

    def __init__(self, resources: Iterable[Resource]) -> None:
        self._by_type: defaultdict[str, list[Resource]] = defaultdict(list)
        self._by_urn: dict[str, Resource] = {}
        for each in resources:
            self._by_type[each.type].append(each)
            self._by_urn[each.urn] = each
        self._outputs: Tree = next((each.outputs for each in self.of(STACK_TYPE)), {})
        self._bmcs = next((mapping(each.outputs, "servers") for each in self.of(RACK)), {})
        self._beside: defaultdict[str, list[Resource]] = defaultdict(list)
        for each in self.of(_BOND, _SESSION):  # named `<host name>-bond`, `<host name>-bgp`
            self._beside[urn_name(each.urn).rpartition("-")[0]].append(each)
        for each in self.of(INSTALLATION):
            self._beside[str(each.inputs.get("hostname"))].append(each)

    def of(self, *types: str) -> list[Resource]:
        """The resources of these types."""
        return [each for type_ in types for each in self._by_type.get(type_, ())]

    def cluster(self) -> Tree:
        """Name, domain and version. A failed `up` has no outputs, so they may come from the inputs of Preflight."""
        if found := mapping(self._outputs, "cluster"):
            return found
        planned: Tree = next((each.inputs for each in self.of(PREFLIGHT)), {})
        domain = str(planned.get("domain", ""))
        return {"name": domain.partition(".")[0], "domain": domain, "version": planned.get("version", "")}

    def place(self) -> str:
        """The ordered metro or facilities, and the facilities in which machines were deployed."""
        ordered = self.of(DEVICE, SPOT_REQUEST, EPHEMERAL)
        metros = {str(each.inputs["metro"]) for each in ordered if each.inputs.get("metro")}
        wanted = {str(one) for each in ordered for one in listed(each.inputs, "facilities")}
        came = {str(each.outputs.get("deployedFacility") or "") for each in ordered} - {"", UNKNOWN}
        parts = [("metro", metros), ("facility", came or wanted)]
        return ", ".join(f"{word} {' or '.join(sorted(found))}" for word, found in parts if found)

    # --- machines --------------------------------------------------------------------------------------------------

    def machines(self) -> tuple[Machine, ...]:
        """All machines, also those that were removed or will be."""
        made = (*map(self._device, self.of(DEVICE)), *self._spot(), *map(self._server, self.of(*SERVERS)))
        return (*made, *map(self._bootstrap, self.of(EPHEMERAL)))

    def _machine(self, resource: Resource, name: str, kind: str, *notes: str, at: Resource | None = None) -> Machine:
        """A permanent machine. `at`: the resource with its addresses, if that is another one."""
        found = at or resource
        touched = resource.change == "same" and _together(self._beside[name]) != "same"
        return Machine(
            name=name,
            role=self._role(resource),
            kind=kind,
            public=found.text("accessPublicIpv4", "publicIpv4"),
            private=found.text("accessPrivateIpv4", "privateIpv4"),
            notes=notes,
            change="update" if touched else resource.change,
        )

    def _role(self, resource: Resource) -> Role:
        """A machine's role from its parent component. Spot machines, and machines in older states, have a component of
        their own in between."""
        component = self._by_urn.get(resource.parent)
        pools = {urn_name(each) for each in (resource.parent, component.parent if component else "")}
        return "worker" if _WORKERS in pools else "control-plane"

    def _device(self, device: Resource) -> Machine:
        lengths = [
            each.get("cidr") for each in listed(device.inputs, "ipAddresses") if each.get("type") == "public_ipv4"
        ]
        notes = ["reserved server"] if device.inputs.get("hardwareReservationId") else []
        notes += [f"/{length} of public addresses" for length in lengths if length and length != 31]
        return self._machine(device, device.text("hostname"), device.text("plan"), *notes)

    def _spot(self) -> Iterable[Machine]:
        machines = {each.parent: each for each in self.of(_SPOT_MACHINE)}
        for request in self.of(SPOT_REQUEST):
            machine = machines.get(request.parent)
            name = machine.text("hostname") if machine else urn_name(request.parent)
            plan = str(mapping(request.inputs, "instanceParameters").get("plan", ""))
            price = f"spot, at most {request.text('maxBidPrice')} USD/h"
            yield self._machine(request, name, plan, price, at=machine)

    def _server(self, server: Resource) -> Machine:
        notes = [ARBITER] if urn_name(server.parent) == _ARBITERS else []
        found = self._machine(server, server.text("hostname"), f"server {server.text('server')}", *notes)
        return replace(found, mac=server.text("mac"), bmc=self._bmc(server))

    def _bmc(self, server: Resource) -> str:
        return str(self._bmcs.get(server.text("server"), "")).removeprefix("https://")

    def _bootstrap(self, machine: Resource) -> Machine:
        """The bootstrap machine, which is removed within the same `up`."""
        gone = any(each.change == "same" for each in self.of(REMOVAL))
        platform = machine.text("platform")
        lent = f"server {machine.text('server')}, lent"
        kind = {"redfish": lent, "ironic": lent, "local-vm": "virtual machine of libvirt"}
        found = Machine(
            name=machine.text("hostname"),
            role="bootstrap",
            kind=kind.get(platform) or machine.text("plan"),
            gone=gone,
            change=machine.change,
        )
        if gone:
            return found
        public, private = machine.text("publicIpv4"), machine.text("privateIpv4")
        if platform == "equinix-metal":
            return replace(found, public=public, private=private)
        mac, bmc = str(machine.inputs.get("mac", "")), self._bmc(machine) if platform == "redfish" else ""
        # Its addresses are known before it exists.
        given = str(machine.inputs.get("publicIpv4", public))
        return replace(found, public=given, private=str(machine.inputs.get("privateIpv4", given)), mac=mac, bmc=bmc)

    # --- networks --------------------------------------------------------------------------------------------------

    def networks(self, machines: Iterable[Machine]) -> tuple[Network, ...]:
        """The networks that the machines share, from the outside to the inside."""
        there = [each for each in machines if not each.gone]
        everyone = _roles(there)
        if not self.of(METAL):
            one = all(each.private in ("", each.public) for each in there)
            names = ("machines' network",) if one else ("public network", "private network")
            bmcs = Network(name="BMC network", detail="Redfish", roles=_roles(each for each in there if each.bmc))
            found = [*(Network(name=name, roles=everyone) for name in names), *([bmcs] if bmcs.roles else [])]
        else:
            whole = partial(Network, roles=everyone)
            found = [whole(name="public network"), whole(name="private network"), *self._vlans()]
        sessions = {name for name, beside in self._beside.items() if any(each.type == _SESSION for each in beside)}
        sessions |= {each.text("hostname") for each in self.of(EPHEMERAL) if each.inputs.get("bgp")}
        bgp = _roles(each for each in there if each.name in sessions)
        if bgp:
            found.append(Network(name="BGP", detail=self._peers(), roles=bgp, change=_together(self.of(_SESSION))))
        return tuple(found)

    def _vlans(self) -> Iterable[Network]:
        networks = next((mapping(each.outputs, "networks") for each in self.of(METAL)), {})
        names = {str(mapping(networks, name).get("vlan")): name for name in networks}
        for vlan in sorted(self.of(_VLAN), key=lambda each: order(each.text("vxlan"))):
            # The platform's outputs do not contain a VLAN that will be deleted, or one of an old state: its description
            # has the name.
            mark = _MARK.match(str(vlan.inputs.get("description")))
            name = names.get(vlan.urn) or (mark[1] if mark else vlan.name)
            network = mapping(networks, name)
            gateway = self._gateway(vlan, network)
            subnet = str(network.get("subnet") or "")
            details = [] if subnet in ("", UNKNOWN) else [subnet]
            if gateway is not None:
                size = "" if details else f" of {gateway.text('privateIpv4SubnetSize')} addresses"
                details.append(f"Metal's gateway{size}")
            roles: tuple[Role, ...] = tuple(role for role in ROLES if role in listed(network, "roles"))
            number = vlan.text("vxlan")
            yield Network(name=f"VLAN {number} {name}", detail=", ".join(details), roles=roles, change=vlan.change)

    def _gateway(self, vlan: Resource, network: Tree) -> Resource | None:
        """The gateway that the platform's outputs name, or the one with the VLAN's id."""
        by_id = (each for each in self.of(_GATEWAY) if vlan.id and each.inputs.get("vlanId") == vlan.id)
        return self._by_urn.get(str(network.get("gateway"))) or next(by_id, None)

    def _peers(self) -> str:
        """Both ends of the BGP sessions, as configured for MetalLB."""
        found: defaultdict[str, dict[str, None]] = defaultdict(dict)
        for each in self._metallb("BGPPeer"):
            spec = mapping(each.inputs, "spec")
            if "peerASN" in spec:
                found[f"AS {spec.get('myASN')} to AS {spec['peerASN']}"][str(spec.get("peerAddress"))] = None
        return "; ".join(f"{ends} at {', '.join(addresses)}" for ends, addresses in found.items())

    # --- names and addresses ---------------------------------------------------------------------------------------

    def names(self) -> tuple[Name, ...]:
        """The permanent DNS names with their values, including those of nodes."""
        found: dict[str, Name] = {}
        for each in self.of(_NAMES):
            if each.inputs.get("ephemeral") is True:
                continue
            after, before = mapping(each.inputs, "records"), mapping(each.before, "records")
            gone = each.change == "delete"
            for key in {**after, **before}:
                record = mapping(after, key) or mapping(before, key)
                if record.get("type") in _ADDRESSES:
                    change: Change = "delete" if gone or key not in after else _compared(each, key, before, after)
                    name = str(record["name"])
                    values = (*(found[name].values if name in found else ()), *map(str, listed(record, "values")))
                    found[name] = Name(name=name, values=values, change=change)
        return tuple(found.values()) or self._needed()

    def _needed(self) -> tuple[Name, ...]:
        """The records that the user must set, from lines like `api.lab.example.com. A 192.0.2.1`."""
        values: defaultdict[str, list[str]] = defaultdict(list)
        for line in listed(mapping(self._outputs, "dns"), "needed"):
            name, _, rest = str(line).partition(". ")
            type_, _, value = rest.partition(" ")
            if type_ in _ADDRESSES:
                values[name].append(value)
        return tuple(Name(name=name, values=tuple(each)) for name, each in values.items())

    @property
    def shared_names(self) -> tuple[str, ...]:
        """The names that do not belong to a single node."""
        domain = str(self.cluster().get("domain", ""))
        return tuple(f"{host}.{domain}" for host in ("api", "api-int", "*.apps"))

    def api(self, machines: Iterable[Machine], names: Iterable[Name]) -> tuple[str, str]:
        """How the API is reached, and its own address; an empty address if it has none."""
        address = str(mapping(self._outputs, "api").get("address") or "")
        for gate in self.of(_GATE):
            if gate.inputs.get("kind") == _ANNOUNCED:
                spec = mapping(gate.inputs, "spec")
                how = "over BGP" if spec.get("mode") == "bgp" else "with ARP"
                return f"announced by kube-vip {how}", address or str(spec.get("address", ""))
        serving = {each.public for each in machines if each.role == "control-plane"} | {UNKNOWN}
        api = self.shared_names[0]
        elsewhere = [value for each in names if each.name == api for value in each.values if value not in serving]
        if address or elsewhere:
            return "the facility's load balancer", address or elsewhere[0]
        return "DNS round robin", ""

    def pools(self) -> tuple[Pool, ...]:
        """The address pools for services of type LoadBalancer."""
        over_bgp = {
            str(name): f"/{length}" if (length := mapping(each.inputs, "spec").get("aggregationLength")) else ""
            for each in self._metallb("BGPAdvertisement")
            for name in listed(mapping(each.inputs, "spec"), "ipAddressPools")
        }
        blocks = {each.name: each for each in self.of(_BLOCK)}
        found: list[Pool] = []
        for each in self._metallb("IPAddressPool"):
            name = str(mapping(each.inputs, "metadata").get("name", ""))
            addresses = ", ".join(map(str, listed(mapping(each.inputs, "spec"), "addresses")))
            if not addresses:
                block = blocks.get(_RESERVED_FOR.format(pool=name))
                addresses = f"{block.text('quantity')} addresses" if block else UNKNOWN
            length = over_bgp.get(name)
            how = "MetalLB, layer 2" if length is None else f"MetalLB, BGP{f' as {length}' if length else ''}"
            found.append(Pool(name=name, addresses=addresses, how=how, change=each.change))
        return tuple(found)

    def _metallb(self, kind: str) -> list[Resource]:
        types = [type_ for type_ in self._by_type if type_.startswith(_METALLB) and type_.endswith(f":{kind}")]
        return sorted(self.of(*types), key=lambda each: each.name)


def _compared(resource: Resource, key: str, before: Tree, after: Tree) -> Change:
    """The change of one record: all records of a zone are one resource."""
    if resource.change in ("create", "replace", "same"):
        return resource.change
    return "create" if key not in before else "same" if before[key] == after[key] else "update"


def _together(resources: Iterable[Resource]) -> Change:
    """The common change of several resources."""
    changes: set[Change] = {each.change for each in resources}
    return changes.pop() if len(changes) == 1 else "update" if changes else "same"


def _roles(machines: Iterable[Machine]) -> tuple[Role, ...]:
    found = {machine.role for machine in machines}
    return tuple(role for role in ROLES if role in found)
