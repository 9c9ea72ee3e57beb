"""Elastic addresses that are assigned to a device."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pulumi.provider.experimental import provider as api
from pulumi.provider.experimental.provider import CheckFailure

from lab.plugins.base import EngineLog
from lab.plugins.equinix_metal.bridged import Bridged
from lab.plugins.equinix_metal.client import Client
from lab.plugins.equinix_metal.documents import attachment_state
from lab.plugins.equinix_metal.inputs import IP_ATTACHMENT, attachment_rules
from lab.plugins.values import Json


class IpAttachment(Bridged):
    """`equinix-metal:index/ipAttachment:IpAttachment`."""

    computed = (
        "address",
        "addressFamily",
        "cidr",
        "gateway",
        "global",
        "manageable",
        "management",
        "netmask",
        "network",
        "public",
    )
    path = "/ips"

    def __init__(self, client: Client, log: EngineLog) -> None:
        super().__init__(IP_ATTACHMENT, client, log)

    def rules(self, inputs: Mapping[str, Json]) -> Iterator[CheckFailure]:
        """See `inputs.attachment_rules`."""
        return attachment_rules(inputs)

    async def make(self, inputs: Mapping[str, Json], request: api.CreateRequest) -> dict[str, Json]:
        """Assign them."""
        path, wanted = f"/devices/{inputs['deviceId']}/ips", inputs["cidrNotation"]
        find = self._client.finder(path, "ip_addresses", lambda it: attachment_state(it)["cidrNotation"] == wanted)
        return attachment_state(await self._client.order(path, {"address": wanted}, find))

    def describe(self, document: Mapping[str, Json], known: Mapping[str, Json]) -> dict[str, Json]:
        """See `Bridged`."""
        return attachment_state(document)
