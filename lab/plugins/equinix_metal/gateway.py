"""Gateways: Metal's routers with an address in a virtual network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pulumi.provider.experimental import provider as api
from pulumi.provider.experimental.provider import CheckFailure

from lab.plugins.base import EngineLog
from lab.plugins.equinix_metal.bridged import Bridged
from lab.plugins.equinix_metal.client import Client
from lab.plugins.equinix_metal.network_documents import gateway_state, reference
from lab.plugins.equinix_metal.network_inputs import GATEWAY, gateway_rules
from lab.plugins.values import Json


class Gateway(Bridged):
    """`equinix-metal:index/gateway:Gateway`."""

    computed = ("state",)
    path = "/metal-gateways"
    include = "project,ip_reservation,virtual_network"

    def __init__(self, client: Client, log: EngineLog) -> None:
        super().__init__(GATEWAY, client, log)

    def rules(self, inputs: Mapping[str, Json]) -> Iterator[CheckFailure]:
        """See `network_inputs.gateway_rules`."""
        return gateway_rules(inputs)

    def same(self, name: str, state: Mapping[str, Json], inputs: Mapping[str, Json]) -> bool:
        """A gateway that was asked for by its size has a block of addresses all the same."""
        sizes = inputs.get("privateIpv4SubnetSize") or state.get("privateIpv4SubnetSize")
        return name == "ipReservationId" and bool(sizes)

    async def make(self, inputs: Mapping[str, Json], request: api.CreateRequest) -> dict[str, Json]:
        """Order it; that it becomes active is not waited for: it does so with the first device in its network."""
        path, vlan = f"/projects/{inputs['projectId']}/metal-gateways", inputs["vlanId"]
        body: dict[str, Json] = {"virtual_network_id": vlan}
        if inputs.get("ipReservationId"):
            body["ip_reservation_id"] = inputs["ipReservationId"]
        if inputs.get("privateIpv4SubnetSize"):
            body["private_ipv4_subnet_size"] = int(inputs["privateIpv4SubnetSize"])

        def alike(found: dict[str, Json]) -> bool:
            return reference(found, "virtual_network") == vlan and found.get("state") != "deleting"

        find = self._client.finder(path, "metal_gateways", alike, include=self.include)
        return gateway_state(await self._client.order(path, body, find, include=self.include))

    def describe(self, document: Mapping[str, Json], known: Mapping[str, Json]) -> dict[str, Json]:
        """See `Bridged`."""
        return gateway_state(document)
