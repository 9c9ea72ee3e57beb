"""Blocks of elastic addresses that a project reserves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pulumi.provider.experimental import provider as api
from pulumi.provider.experimental.provider import CheckFailure

from lab.plugins.base import EngineLog, PluginError
from lab.plugins.equinix_metal.bridged import Bridged
from lab.plugins.equinix_metal.client import Client, Finder
from lab.plugins.equinix_metal.documents import block_state, set_order
from lab.plugins.equinix_metal.inputs import RESERVED_IP_BLOCK, block_rules
from lab.plugins.values import Json

PENDING = "pending"
"""The state of a block that somebody at Equinix Metal has to approve first."""


class ReservedIpBlock(Bridged):
    """`equinix-metal:index/reservedIpBlock:ReservedIpBlock`."""

    computed = (
        "address",
        "addressFamily",
        "cidr",
        "cidrNotation",
        "gateway",
        "global",
        "manageable",
        "management",
        "netmask",
        "network",
        "public",
    )
    optional = ("facility",)
    sets = ("tags",)
    path = "/ips"

    def __init__(self, client: Client, log: EngineLog) -> None:
        super().__init__(RESERVED_IP_BLOCK, client, log)

    def rules(self, inputs: Mapping[str, Json]) -> Iterator[CheckFailure]:
        """See `inputs.block_rules`."""
        return block_rules(inputs)

    def same(self, name: str, state: Mapping[str, Json], inputs: Mapping[str, Json]) -> bool:
        """A metro that is only given or only told for a block of a facility."""
        half = bool(state.get("facility")) and not (state.get("metro") and inputs.get("metro"))
        return super().same(name, state, inputs) or (name == "metro" and half)

    async def make(self, inputs: Mapping[str, Json], request: api.CreateRequest) -> dict[str, Json]:
        """Reserve it."""
        path = f"/projects/{inputs['projectId']}/ips"
        document = await self._client.order(path, _body(inputs), self._finder(path, inputs))
        state = block_state(document)
        if document.get("state") == PENDING:
            reason = f"block {state['id']} of {int(inputs['quantity'])} addresses waits for approval by Equinix Metal"
            raise self.kept(state, reason)
        return state

    def _finder(self, path: str, inputs: Mapping[str, Json]) -> Finder:
        """A block like this one, made since: blocks have no names, so description and tags must tell them apart."""
        wanted = {**inputs, "metro": str(inputs.get("metro") or "").lower() or None}
        wanted["tags"] = set_order(inputs.get("tags") or [])

        def alike(document: dict[str, Json]) -> bool:
            state = block_state(document)
            return all(
                state.get(name) == wanted.get(name) or self.same(name, state, wanted)
                for name in ("type", "quantity", "metro", "facility", "description", "tags")
            )

        marked = inputs.get("description") or inputs.get("tags")
        nameless = "" if marked else "a block without description and tags"
        return self._client.finder(path, "ip_addresses", alike, nameless=nameless)

    def describe(self, document: Mapping[str, Json], known: Mapping[str, Json]) -> dict[str, Json]:
        """A block that still waits for approval cannot be used."""
        if document.get("state") == PENDING:
            raise PluginError(f"block {document['id']} still waits for approval by Equinix Metal")
        return block_state(document)


def _body(inputs: Mapping[str, Json]) -> dict[str, Json]:
    """The request for a new block; empty values are left out, as the official plug-in does."""
    names = {"metro": "metro", "facility": "facility", "description": "details", "tags": "tags"}
    body = {theirs: inputs[ours] for ours, theirs in names.items() if inputs.get(ours)}
    if "metro" in body:
        body["metro"] = str(body["metro"]).lower()
    return {"type": inputs["type"], "quantity": int(inputs["quantity"]), **body}
