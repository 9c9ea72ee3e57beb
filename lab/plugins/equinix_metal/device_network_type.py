"""How a device as a whole is in its networks. It only says so: a device that has none of these keeps what it has."""

from __future__ import annotations

from collections.abc import Mapping

from pulumi.provider.experimental import provider as api

from lab.plugins.base import EngineLog, PluginError
from lab.plugins.equinix_metal.bridged import Bridged
from lab.plugins.equinix_metal.client import Client
from lab.plugins.equinix_metal.documents import network_type
from lab.plugins.equinix_metal.network_documents import BOND
from lab.plugins.equinix_metal.network_inputs import DEVICE_NETWORK_TYPE
from lab.plugins.equinix_metal.ports import Ports
from lab.plugins.values import Json


class DeviceNetworkType(Bridged):
    """`equinix-metal:index/deviceNetworkType:DeviceNetworkType`."""

    path = "/devices"

    def __init__(self, client: Client, log: EngineLog) -> None:
        super().__init__(DEVICE_NETWORK_TYPE, client, log)
        self._ports = Ports(client)

    async def make(self, inputs: Mapping[str, Json], request: api.CreateRequest) -> dict[str, Json]:
        """Have it like this."""
        await self._convert(inputs["deviceId"], inputs["type"])
        return {"id": inputs["deviceId"], "deviceId": inputs["deviceId"], "type": inputs["type"]}

    def describe(self, document: Mapping[str, Json], known: Mapping[str, Json]) -> dict[str, Json]:
        """What is derived from ports and addresses does not tell layer 3 from it with networks."""
        kind = network_type(document)
        if kind == "layer3" and known.get("type") == "hybrid-bonded":
            kind = "hybrid-bonded"
        return {"id": document["id"], "deviceId": document["id"], "type": kind}

    async def change(self, request: api.UpdateRequest, olds: Mapping[str, Json], inputs: Mapping[str, Json]) -> None:
        """See `make`."""
        await self._convert(request.resource_id, inputs["type"])

    async def delete(self, request: api.DeleteRequest) -> None:
        """It stays as it is."""

    async def _convert(self, device: str, wanted: str) -> None:
        """Bond by bond and port by port, as Metal's console does it."""
        kind = "layer3" if wanted == "hybrid-bonded" else wanted
        document = (await self._client.get(f"{self.path}/{device}")).document
        if network_type(document) == kind:
            return
        bonds = _ports(document, bond=True)
        if kind == "layer2-individual":
            for port in bonds[:1]:
                await self._ports.to_layer_2(port)
            for port in bonds:
                await self._ports.disbond(port, bulk=True)
        elif kind == "layer2-bonded":
            for port in bonds:
                await self._ports.bond(port)
                await self._ports.to_layer_2(port)
        else:
            for port in bonds:
                await self._ports.bond(port)
            for port in bonds[:1]:
                await self._ports.to_layer_3(port)
        if kind != "layer2-individual":
            document = (await self._client.get(f"{self.path}/{device}")).document
            for port in _ports(document, bond=False):
                if kind == "hybrid" and str(port.get("name"))[-1:] in "13":
                    await self._ports.disbond(port)
                else:
                    await self._ports.bond(port)
        found = network_type((await self._client.get(f"{self.path}/{device}")).document)
        if found != kind:
            raise PluginError(f"device {device} was to become {wanted} and is {found}")


def _ports(device: Mapping[str, Json], *, bond: bool) -> list[dict[str, Json]]:
    ports: list[dict[str, Json]] = device.get("network_ports") or []
    return sorted(
        (port for port in ports if (port.get("type") == BOND) is bond), key=lambda port: str(port.get("name"))
    )
