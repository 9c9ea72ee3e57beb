"""Single virtual networks in the ports of devices, named as people name them: by VXLAN and by the port's name."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping

from pulumi.provider.experimental import provider as api

from lab.plugins.base import EngineLog, PluginError
from lab.plugins.equinix_metal.bridged import Bridged
from lab.plugins.equinix_metal.client import ApiError, Client, Gone
from lab.plugins.equinix_metal.documents import part
from lab.plugins.equinix_metal.network_documents import identity, reference, vlan_state
from lab.plugins.equinix_metal.network_inputs import PORT_VLAN_ATTACHMENT
from lab.plugins.equinix_metal.ports import Ports, native, networks
from lab.plugins.values import Json, plain_map

INCLUDE = "virtual_networks,project,native_virtual_network,metro,facility"


class PortVlanAttachment(Bridged):
    """`equinix-metal:index/portVlanAttachment:PortVlanAttachment`."""

    computed = ("portId", "vlanId")

    def __init__(self, client: Client, log: EngineLog) -> None:
        super().__init__(PORT_VLAN_ATTACHMENT, client, log)
        self._ports = Ports(client)
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def make(self, inputs: Mapping[str, Json], request: api.CreateRequest) -> dict[str, Json]:
        """Find port and network, and bring them together; one network at a time, as the API wants it."""
        device = (await self._client.get(f"/devices/{inputs['deviceId']}", include=INCLUDE)).document
        port = _port(device, inputs)
        vlan = _attached(port, inputs) or await self._network(device, inputs)
        async with self._locks[port["id"]]:
            await self._ports.assign(port, vlan)
            if inputs.get("native"):
                await self._ports.set_native(port, vlan)
        return _state(port["id"], vlan, inputs, native=bool(inputs.get("native")))

    async def _network(self, device: Mapping[str, Json], inputs: Mapping[str, Json]) -> str:
        project = reference(device, "project")
        metro, facility = part(device, "metro", "code"), part(device, "facility", "code")
        async for answer in self._client.entries(f"/projects/{project}/virtual-networks", "virtual_networks"):
            found = vlan_state(answer.document)
            here = found["metro"] == metro or (found["facility"] and found["facility"] == facility)
            if found["vxlan"] == int(inputs["vlanVnid"]) and here:
                return found["id"]
        raise PluginError(f"project {project} has no virtual network with VXLAN {int(inputs['vlanVnid'])} in {metro}")

    async def fetch(self, identifier: str, known: Mapping[str, Json]) -> dict[str, Json] | None:
        """See `Bridged`. What is imported names neither device nor port."""
        if not known.get("deviceId"):
            raise PluginError(f"{identifier}: an attachment cannot be imported; use a resource of type Port")
        try:
            device = (await self._client.get(f"/devices/{known['deviceId']}", include=INCLUDE)).document
        except Gone:
            return None
        port = _port(device, known)
        vlan = _attached(port, known)
        return _state(port["id"], vlan, known, native=native(port) == vlan) if vlan else None

    def describe(self, document: Mapping[str, Json], known: Mapping[str, Json]) -> dict[str, Json]:
        """Nothing of the API is an attachment: see `fetch`."""
        raise AssertionError("an attachment is no document")

    async def change(self, request: api.UpdateRequest, olds: Mapping[str, Json], inputs: Mapping[str, Json]) -> None:
        """Only whether it is untagged can be changed."""
        port = await self._ports.get(olds["portId"])
        if inputs.get("native"):
            await self._ports.set_native(port, olds["vlanId"])
        elif native(port) == olds["vlanId"]:
            await self._ports.unset_native(port)

    async def delete(self, request: api.DeleteRequest) -> None:
        """Take the network out of the port; with `forceBond` the last one puts the port back into its bond."""
        known = plain_map(request.properties)
        try:
            async with self._locks[known["portId"]]:
                port = await self._ports.get(known["portId"])
                if native(port) == known["vlanId"]:
                    await self._ports.unset_native(port)
                await self._ports.unassign(port, known["vlanId"])
                if known.get("forceBond") and not networks(port).keys() - {known["vlanId"]}:
                    await self._ports.bond(port)
        except ApiError as error:
            if not isinstance(error, Gone) and error.status != 403:
                raise


def _port(device: Mapping[str, Json], inputs: Mapping[str, Json]) -> dict[str, Json]:
    for port in device.get("network_ports") or []:
        if port.get("name") == inputs["portName"]:
            return port
    names = ", ".join(str(port.get("name")) for port in device.get("network_ports") or [])
    raise PluginError(f"device {inputs['deviceId']} has no port {inputs['portName']}, only {names or 'none at all'}")


def _attached(port: Mapping[str, Json], inputs: Mapping[str, Json]) -> str:
    wanted = int(inputs["vlanVnid"])
    found = [network for network in port.get("virtual_networks") or [] if network.get("vxlan") == wanted]
    return identity(found[0]) if found else ""


def _state(port: str, vlan: str, known: Mapping[str, Json], *, native: bool) -> dict[str, Json]:
    given = {name: known[name] for name in PORT_VLAN_ATTACHMENT if known.get(name) is not None}
    return {**given, "id": f"{port}:{vlan}", "portId": port, "vlanId": vlan, "native": native}
