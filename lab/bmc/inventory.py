"""Additions to sushy-tools' Redfish resources: further resources, and further properties of existing ones.

Names are those of DMTF's schemas (DSP8010): Memory, TrustedModules, NetworkAdapter, NetworkDeviceFunction, Port,
PowerSupply, Drive. Serial numbers, MAC addresses, order and kind of disks are those of the emulated machine. Sizes are
those of a real server (`lab.bmc.told`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lab.bmc.documents import Json, listing
from lab.bmc.server import Server
from lab.machines.base import MachineSpec, cards

_SUPPLIES = ("PSU1", "PSU2")
_TPM = {"2.0": "TPM2_0", "1.2": "TPM1_2", "off": "TPM2_0"}


class Inventory:
    """The inventory of one server at the current moment."""

    def __init__(self, server: Server, spec: MachineSpec) -> None:
        self._server = server
        self._spec = spec
        self._system, self._chassis = f"/redfish/v1/Systems/{spec.id}", f"/redfish/v1/Chassis/{spec.id}"
        self._resources = self._made()

    def document(self, path: str) -> Json | None:
        """A resource that sushy-tools does not have, by its path; None for all others."""
        made = self._resources.get(path)
        return None if made is None else {"@odata.id": path, **made()}

    def _made(self) -> Mapping[str, Callable[[], Json]]:
        adapter, power = f"{self._chassis}/NetworkAdapters/0", f"{self._chassis}/PowerSubsystem"
        ports = {f"{adapter}/Ports/{name}": mac for name, mac in cards(self._spec).items()}
        functions = {f"{adapter}/NetworkDeviceFunctions/{name}": mac for name, mac in cards(self._spec).items()}
        supplies = {f"{power}/PowerSupplies/{name}": name for name in _SUPPLIES}
        return {
            f"{self._system}/Memory": lambda: listing("Memory", [f"{self._system}/Memory/DIMM0"]),
            f"{self._system}/Memory/DIMM0": self._module,
            f"{self._chassis}/NetworkAdapters": lambda: listing("NetworkAdapter", [adapter]),
            adapter: lambda: {
                **_about("NetworkAdapter.v1_8_0", "0", "Network Adapter"),
                **{name: {"@odata.id": f"{adapter}/{name}"} for name in ("Ports", "NetworkDeviceFunctions")},
            },
            f"{adapter}/Ports": lambda: listing("Port", ports),
            f"{adapter}/NetworkDeviceFunctions": lambda: listing("NetworkDeviceFunction", functions),
            **{path: lambda path=path, mac=mac: self._port(path, mac) for path, mac in ports.items()},
            **{path: lambda path=path, mac=mac: self._function(path, mac) for path, mac in functions.items()},
            power: lambda: {
                **_about("PowerSubsystem.v1_1_0", "PowerSubsystem", "Power Subsystem"),
                "PowerSupplies": {"@odata.id": f"{power}/PowerSupplies"},
            },
            f"{power}/PowerSupplies": lambda: listing("PowerSupply", supplies),
            **{path: lambda name=name: self._supply(name) for path, name in supplies.items()},
        }

    def amend_system(self, document: Json) -> None:
        """Identity, processors, trusted module and health."""
        told = self._server.settings.told
        document["UUID"] = told.uuid or document["UUID"]
        document["SerialNumber"] = told.serial or self._server.identity.serial
        summary = {"Count": 1, "CoreCount": told.cpus // 2 or 1, "LogicalProcessorCount": told.cpus}
        document["ProcessorSummary"] = {**summary, "Status": self._status("processor")}
        document["MemorySummary"]["Status"] = self._status("memory")
        document["Status"] = {**self._status("system"), "HealthRollup": self._worst()}
        if told.tpm != "untold":
            document["TrustedModules"] = [self._tpm(told.tpm)]

    def amend_card(self, document: Json) -> None:
        """Whether an interface has a link."""
        document["LinkStatus"] = self._link(document["MACAddress"])

    def amend_chassis(self, document: Json) -> None:
        """What belongs to it."""
        for name in ("NetworkAdapters", "PowerSubsystem"):
            document[name] = {"@odata.id": f"{self._chassis}/{name}"}

    def amend_drive(self, document: Json) -> None:
        """What kind of disk it is."""
        number, disk = next((n, each) for n, each in enumerate(self._spec.disks) if each.serial == document["Id"])
        document["SerialNumber"], document["Manufacturer"], document["Model"] = disk.serial, "Lab", "rack1"
        document["MediaType"] = "HDD" if disk.rotational else "SSD"
        document["RotationSpeedRPM"] = 7200 if disk.rotational else 0
        document["CapacityBytes"] = self._server.settings.told.disk_bytes(self._spec, number)
        document["Status"] = self._status("disk") if number == 0 else {"State": "Enabled", "Health": "OK"}

    def _module(self) -> Json:
        memory = self._server.settings.told.memory_gib
        capacity = {} if memory is None else {"CapacityMiB": int(memory * 1024)}
        status = {"Status": self._status("memory")}
        return {**_about("Memory.v1_0_0", "DIMM0", "DIMM 0"), **capacity, "MemoryType": "DRAM", **status}

    def _port(self, path: str, mac: str) -> Json:
        about = _about("Port.v1_6_0", path.rpartition("/")[2], "Port")
        return {**about, "LinkStatus": self._link(mac), "Ethernet": {"AssociatedMACAddresses": [mac]}}

    def _function(self, path: str, mac: str) -> Json:
        about = _about("NetworkDeviceFunction.v1_8_0", path.rpartition("/")[2], "Function")
        return {**about, "NetDevFuncType": "Ethernet", "Ethernet": {"PermanentMACAddress": mac, "MACAddress": mac}}

    def _supply(self, name: str) -> Json:
        status = self._status("power supply") if name == _SUPPLIES[0] else {"State": "Enabled", "Health": "OK"}
        return {**_about("PowerSupply.v1_5_0", name, name), "PowerSupplyType": "AC", "Status": status}

    def _link(self, mac: str) -> str:
        return "LinkDown" if mac == self._spec.mac and not self._server.settings.told.link else "LinkUp"

    def _tpm(self, kind: str) -> Json:
        if kind == "none":
            return {"Status": {"State": "Absent"}}
        state = {"State": "Disabled" if kind == "off" else "Enabled"}
        return {"InterfaceType": _TPM[kind], "FirmwareVersion": "1.0", "Status": state}

    def _status(self, part: str) -> Json:
        return {"State": "Enabled", "Health": self._server.settings.told.health.get(part, "OK")}

    def _worst(self) -> str:
        found = self._server.settings.told.health.values()
        return next((word for word in ("Critical", "Warning") if word in found), "OK")


def _about(kind: str, name: str, title: str) -> Json:
    return {"@odata.type": f"#{kind}.{kind.partition('.')[0]}", "Id": name, "Name": title}
