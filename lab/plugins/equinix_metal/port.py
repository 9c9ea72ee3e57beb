"""Ports of devices: their bond, their layer and the virtual networks in them. They come and go with their device: a
resource of this type only says how one is set."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Iterator, Mapping

from pulumi.provider.experimental import provider as api
from pulumi.provider.experimental.provider import CheckFailure

from lab.plugins.base import EngineLog, PluginError
from lab.plugins.equinix_metal.bridged import DEFAULT_TIMEOUT_SECONDS, Bridged, timeouts_meta
from lab.plugins.equinix_metal.client import ApiError, Client, Gone
from lab.plugins.equinix_metal.documents import set_order
from lab.plugins.equinix_metal.network_documents import BOND, PORT_INCLUDES, port_state
from lab.plugins.equinix_metal.network_inputs import PORT, port_rules
from lab.plugins.equinix_metal.ports import Ports, native, networks
from lab.plugins.values import Json, plain_map

KEPT = ("__meta", "resetOnDelete", "nativeVlanId")
"""What the API does not tell, or not always."""


class Port(Bridged):
    """`equinix-metal:index/port:Port`."""

    computed = ("bondId", "bondName", "disbondSupported", "mac", "name", "networkType", "type", "vlanIds", "vxlanIds")
    optional = ("vlanIds", "vxlanIds")
    sets = ("vlanIds", "vxlanIds")
    path = "/ports"
    include = PORT_INCLUDES

    def __init__(self, client: Client, log: EngineLog) -> None:
        super().__init__(PORT, client, log)
        self._ports = Ports(client)

    def rules(self, inputs: Mapping[str, Json]) -> Iterator[CheckFailure]:
        """See `network_inputs.port_rules`."""
        return port_rules(inputs)

    async def make(self, inputs: Mapping[str, Json], request: api.CreateRequest) -> dict[str, Json]:
        """Set it as it is wished. What was changed before a failure stays changed: the next update goes on."""
        seconds = request.timeout or DEFAULT_TIMEOUT_SECONDS
        document = await self._set(inputs["portId"], inputs, _wanted(inputs), seconds)
        return self.describe(document, {**inputs, "__meta": timeouts_meta(seconds)})

    async def change(self, request: api.UpdateRequest, olds: Mapping[str, Json], inputs: Mapping[str, Json]) -> None:
        """See `make`; networks that are not spoken of stay."""
        wanted = _wanted(inputs) or _wanted(olds)
        await self._set(request.resource_id, inputs, wanted, request.timeout or DEFAULT_TIMEOUT_SECONDS)

    async def fetch(self, identifier: str, known: Mapping[str, Json]) -> dict[str, Json] | None:
        """Also gone when it may not be seen any more: the device may be somebody else's by now."""
        try:
            return await super().fetch(identifier, known)
        except ApiError as error:
            if error.status == 403:
                return None
            raise

    def describe(self, document: Mapping[str, Json], known: Mapping[str, Json]) -> dict[str, Json]:
        """See `Bridged`."""
        kept = {name: known[name] for name in KEPT if known.get(name) is not None}
        state = port_state(document)
        sets = {name: set_order(state[name]) for name in self.sets}
        return {"__meta": timeouts_meta(DEFAULT_TIMEOUT_SECONDS), **kept, **state, **sets}

    async def delete(self, request: api.DeleteRequest) -> None:
        """With `resetOnDelete` bonded, in layer 3 and without networks, as it was when it came; else left as it is."""
        if not plain_map(request.properties).get("resetOnDelete"):
            return
        with contextlib.suppress(Gone):
            port = await self._ports.get(request.resource_id)
            kind = {"layer2": False} if port.get("type") == BOND else {}
            await self._set(port["id"], {"bonded": True, **kind}, set(), request.timeout or DEFAULT_TIMEOUT_SECONDS)

    async def _set(
        self, identifier: str, inputs: Mapping[str, Json], wanted: set[str], seconds: float
    ) -> dict[str, Json]:
        """First what goes, then bond and layer, then what comes. The port is looked at again after whatever was done:
        one step changes what the next one finds."""
        port = await self._ports.get(identifier)
        _fits(port, inputs)
        untagged = str(inputs.get("nativeVlanId") or "")
        there = networks(port)
        going = [network for network, vxlan in there.items() if not {network, str(vxlan)} & wanted]
        coming = set_order(wanted - there.keys() - {str(vxlan) for vxlan in there.values()})
        ports = self._ports
        steps: list[Callable[[dict[str, Json]], Awaitable[bool]]] = [
            lambda it: ports.batch(it, "unassigned", going, seconds),
            ports.bond if inputs["bonded"] else ports.disbond,
            lambda it: ports.batch(it, "assigned", coming, seconds),
        ]
        if native(port) != untagged:
            steps.insert(0, ports.unset_native)
        if inputs.get("layer2") is not None:
            # Addresses go after the bond is broken and come once it holds again.
            steps.insert(-1, ports.to_layer_2 if inputs["layer2"] else ports.to_layer_3)
        if untagged:
            steps.append(lambda it: ports.set_native(it, untagged))
        for step in steps:
            if await step(port):
                port = await ports.get(identifier)
        return port


def _wanted(properties: Mapping[str, Json]) -> set[str]:
    """The networks that a port is to have, by id or by VXLAN."""
    vlans: list[Json] = properties.get("vlanIds") or []
    return set(vlans) or {str(int(vxlan)) for vxlan in properties.get("vxlanIds") or []}


def _fits(port: Mapping[str, Json], inputs: Mapping[str, Json]) -> None:
    """Whether this kind of port can be set like this."""
    bond, name = port.get("type") == BOND, port.get("name")
    if not bond and inputs.get("layer2") is not None:
        raise PluginError(f"layer2 is only for bond ports, not for {name}: set it on its bond")
    if bond and not inputs["bonded"] and not inputs.get("layer2"):
        raise PluginError(f"{name} cannot be unbonded in layer 3: set layer2 too")
    if bond and inputs.get("nativeVlanId"):
        raise PluginError(f"nativeVlanId is not for bond ports as {name}: set it on one of its ports")
