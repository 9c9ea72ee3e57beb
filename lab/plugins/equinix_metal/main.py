"""The executable `pulumi-resource-equinix-metal`."""

from __future__ import annotations

from typing import NoReturn

from pulumi.provider.experimental import provider as api

from lab.plugins.base import EngineLog, Resource, StandIn, serve
from lab.plugins.equinix_metal.bgp_session import BgpSession
from lab.plugins.equinix_metal.client import Client
from lab.plugins.equinix_metal.device import Device
from lab.plugins.equinix_metal.functions import FUNCTIONS
from lab.plugins.equinix_metal.gateway import Gateway
from lab.plugins.equinix_metal.inputs import (
    CONFIGURATION,
    PROJECT_SSH_KEY,
    configuration_rules,
    settings_of,
)
from lab.plugins.equinix_metal.port import Port
from lab.plugins.equinix_metal.project import Project
from lab.plugins.equinix_metal.reserved_ip_block import ReservedIpBlock
from lab.plugins.equinix_metal.spot_market_request import SpotMarketRequest
from lab.plugins.equinix_metal.ssh_key import ProjectSshKey
from lab.plugins.equinix_metal.vlan import Vlan
from lab.plugins.fields import problems
from lab.plugins.values import plain_map

VERSION = "3.2.1+lab"
"""That of the official plug-in it was compared with."""

ENGINE_KEYS = ("version", "pluginDownloadURL", "pluginChecksums")
"""What the engine adds to a provider's own configuration."""


class EquinixMetalPlugin(StandIn):
    """One client for all resources, made when the engine sends the configuration."""

    def __init__(self, log: EngineLog) -> None:
        self._client = Client()
        client = self._client
        resources: dict[str, Resource] = {
            "BgpSession": BgpSession(client, log),
            "Device": Device(client, log),
            "Gateway": Gateway(client, log),
            "Port": Port(client, log),
            "Project": Project(client, log),
            "ProjectSshKey": ProjectSshKey(PROJECT_SSH_KEY, client, log),
            "ReservedIpBlock": ReservedIpBlock(client, log),
            "SpotMarketRequest": SpotMarketRequest(client, log),
            "Vlan": Vlan(client, log),
        }
        super().__init__(
            "equinix-metal",
            {f"equinix-metal:index/{kind[0].lower()}{kind[1:]}:{kind}": made for kind, made in resources.items()},
        )

    async def check_config(self, request: api.CheckRequest) -> api.CheckResponse:
        """A missing token is no error yet: a preview needs none."""
        own = {name: value for name, value in request.new_inputs.items() if name not in ENGINE_KEYS}
        failures = [*problems(CONFIGURATION, own), *configuration_rules(plain_map(own))]
        return api.CheckResponse(request.new_inputs, failures)

    async def configure(self, request: api.ConfigureRequest) -> api.ConfigureResponse:
        """Secrets stay with the engine, which marks outputs that carry a secret input's name: as the bridge does it."""
        self._client.configure(settings_of(plain_map(request.args)))
        return api.ConfigureResponse(supports_preview=True)

    async def invoke(self, request: api.InvokeRequest) -> api.InvokeResponse:
        """See `functions`."""
        function = FUNCTIONS.get(request.tok)
        return await (function.invoke(self._client, request.args) if function else super().invoke(request))

    async def close(self) -> None:
        """See `StandIn`."""
        await self._client.close()


def main() -> NoReturn:
    """Serve until the engine goes."""
    serve(VERSION, EquinixMetalPlugin)
