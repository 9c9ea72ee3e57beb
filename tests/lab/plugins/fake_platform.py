"""The rest of the Metal API that the stand-in speaks to, as small as `fake_metal`: what it was not told is 501."""

from __future__ import annotations

import uuid
from typing import Any

from tests.lab.plugins.fake_metal import BASE, PROJECT, FakeMetal, Json

LISTS = {
    "virtual-networks": "virtual_networks",
    "metal-gateways": "metal_gateways",
    "spot-market-requests": "spot_market_requests",
}
ADDRESSES = {"address_family": 4, "cidr": 28, "public": False, "network": "203.0.113.16"}
RESERVED: Json = {
    "id": "r",
    "short_id": "r0",
    "plan": {"slug": "c3.small.x86"},
    "facility": {"code": "lab1"},
    "project": {"id": PROJECT},
    "device": {"href": f"{BASE}/devices/d"},
    "spare": False,
    "switch_uuid": "s",
}


class FakePlatform(FakeMetal):
    """Records of all further kinds by their ids; ports belong to the devices."""

    def __init__(self) -> None:
        super().__init__()
        self.records: dict[str, dict[str, Json]] = {kind: {} for kind in LISTS}
        self.taken: dict[str, list[Json]] = {}
        self.batches: dict[str, Json] = {}
        self.batch_polls = 1
        self.batch_end: Json = {"state": "completed"}
        self.provisionable_after = 0

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        """What is new here, else what `FakeMetal` knows."""
        with self.lock:
            parts = path.removeprefix(BASE).strip("/").split("/")
            match method, parts:
                case "GET", ["hardware-reservations", "r"]:
                    self.provisionable_after -= 1
                    return 200, {**RESERVED, "provisionable": self.provisionable_after < 0}
                case _, ["ports", identifier, *rest]:
                    return self._port(method, identifier, rest, body)
                case "POST" | "GET", [_, *_, kind] if kind in LISTS:
                    return self._listed(method, kind, body)
                case _, [*_, kind, identifier] if identifier in self.records.get(kind, {}):
                    return self._one(method, kind, identifier, body)
                case _, [*_, kind, _] if kind in LISTS:
                    return 404, {"errors": ["Not found"]}
                case _:
                    return super().answer(method, path, body)

    def record(self, kind: str, values: Json) -> Json:
        """A new one of a kind."""
        identifier = str(uuid.uuid4())
        dates = {"created_at": self.now, "updated_at": self.now}
        self.records[kind][identifier] = {"id": identifier, **dates, **values}
        return self.records[kind][identifier]

    def _listed(self, method: str, kind: str, body: Any) -> tuple[int, Any]:
        if method == "GET":
            return 200, {LISTS[kind]: list(self.records[kind].values())}
        return 201, self.record(kind, self._made(kind, body))

    def _made(self, kind: str, body: Any) -> Json:
        project = {"id": PROJECT, "href": f"{BASE}/projects/{PROJECT}"}
        match kind:
            case "virtual-networks":
                place = {"metro_code": _lower(body.get("metro")), "facility_code": body.get("facility")}
                return {
                    "vxlan": body.get("vxlan", 1000),
                    "description": body["description"],
                    **place,
                    "assigned_to": project,
                }
            case "metal-gateways":
                reserved = body.get("ip_reservation_id")
                block = {"id": reserved or "made", **ADDRESSES, "public": bool(reserved)}
                network = {"id": body["virtual_network_id"]}
                return {"state": "ready", "project": project, "ip_reservation": block, "virtual_network": network}
            case _:
                wanted = {name: body[name] for name in ("devices_min", "devices_max", "max_bid_price")}
                device = self.add_device(hostname=body["instance_parameters"]["hostname"], state="active")
                place = {
                    "metro": {"code": _lower(body.get("metro", "lb"))},
                    "facilities": [{"id": "f", "code": "lab1"}],
                }
                return {**wanted, **place, "project": project, "devices": [device], "plan": {"slug": "c3.small.x86"}}

    def _one(self, method: str, kind: str, identifier: str, body: Any) -> tuple[int, Any]:
        found = self.records[kind][identifier]
        match method:
            case "GET":
                return 200, found
            case "PUT" | "PATCH":
                found.update(body)
                return 200, found
            case "DELETE":
                for device in found.get("devices", []):
                    self.devices.pop(device["id"], None)
                del self.records[kind][identifier]
                return 204, None
            case _:
                self.unexpected.append(f"{method} {kind}")
                return 501, {"errors": ["not told"]}

    def add_ports(self) -> tuple[Json, Json]:
        """The bond and the second port of a new device."""

        def port(name: str, kind: str, **values: Any) -> Json:
            data = {"bonded": True, "mac": "52:54:00:00:00:01"}
            return {"id": str(uuid.uuid4()), "name": name, "type": kind, "data": data, "virtual_networks": [], **values}

        bond = port("bond0", "NetworkBondPort", network_type="layer3", disbond_operation_supported=True)
        eth1 = port("eth1", "NetworkPort", bond={"id": bond["id"], "name": "bond0"}, disbond_operation_supported=True)
        self.add_device(network_ports=[bond, eth1], state="active", polls=99)
        return bond, eth1

    def _port(self, method: str, identifier: str, rest: list[str], body: Any) -> tuple[int, Any]:
        ports = {port["id"]: port for device in self.devices.values() for port in device["network_ports"]}
        if identifier not in ports:
            return 404, {"errors": ["Not found"]}
        port = ports[identifier]
        match method, rest:
            case "GET", []:
                pass
            case "POST", ["bond" | "disbond" as action]:
                port["data"]["bonded"] = action == "bond"
            case "POST", ["convert", layer]:
                bonded = port["data"]["bonded"]
                [device] = [each for each in self.devices.values() if port in each["network_ports"]]
                self.taken.setdefault(device["id"], device["ip_addresses"])
                device["ip_addresses"] = self.taken[device["id"]] if layer == "layer-3" else []
                port["network_type"] = (
                    "layer3" if layer == "layer-3" else f"layer2-{'bonded' if bonded else 'individual'}"
                )
            case "POST", ["assign"]:
                self._assign(port, body["vnid"], "assigned")
            case "POST", ["unassign"]:
                self._assign(port, body["vnid"], "unassigned")
            case "POST", ["native-vlan"]:
                port["native_virtual_network"] = self.records["virtual-networks"][body["vnid"]]
            case "DELETE", ["native-vlan"]:
                port["native_virtual_network"] = None
            case _, ["vlan-assignments", "batches", *which]:
                return self._batch(method, port, which, body)
            case _:
                self.unexpected.append(f"{method} {rest}")
                return 501, {"errors": ["not told"]}
        return 200, port

    def _assign(self, port: Json, network: str, state: str) -> None:
        known = self.records["virtual-networks"]
        wanted = next(each for each in known.values() if network in (each["id"], str(each["vxlan"])))
        port["virtual_networks"] = [each for each in port["virtual_networks"] if each["id"] != wanted["id"]]
        if state == "assigned":
            port["virtual_networks"].append(wanted)

    def _batch(self, method: str, port: Json, which: list[str], body: Any) -> tuple[int, Any]:
        if method == "POST":
            identifier = str(uuid.uuid4())
            entries = [{"id": each["vlan"], "state": each["state"]} for each in body["vlan_assignments"]]
            batch: Json = {
                "id": identifier,
                "state": "queued",
                "polls": 0,
                "created_at": self.now,
                "vlan_assignments": entries,
            }
            self.batches[identifier] = batch
            return 201, dict(batch)
        if not which:
            return 200, {"batches": list(self.batches.values())}
        batch = self.batches[which[0]]
        batch["polls"] += 1
        if batch["polls"] == self.batch_polls:
            batch.update(self.batch_end)
            for each in batch["vlan_assignments"] if self.batch_end["state"] == "completed" else []:
                self._assign(port, each["id"], each["state"])
        return 200, batch


def _lower(code: str | None) -> str | None:
    """The API shows places in small letters, however they were written."""
    return code and code.lower()
