"""The executable `pulumi-resource-equinix-metal`."""

from __future__ import annotations

from typing import NoReturn

from pulumi.provider.experimental import provider as api

from lab.plugins.base import EngineLog, StandIn, serve
from lab.plugins.equinix_metal.bgp_neighbors import BGP_NEIGHBORS, bgp_neighbors
from lab.plugins.equinix_metal.bgp_session import BgpSession
from lab.plugins.equinix_metal.client import Client
from lab.plugins.equinix_metal.device import Device
from lab.plugins.equinix_metal.inputs import CONFIGURATION, PROJECT_SSH_KEY, SSH_KEY, configuration_rules, settings_of
from lab.plugins.equinix_metal.ip_attachment import IpAttachment
from lab.plugins.equinix_metal.project import Project
from lab.plugins.equinix_metal.reserved_ip_block import ReservedIpBlock
from lab.plugins.equinix_metal.ssh_key import SshKey
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
        token = "equinix-metal:index/{}:{}".format
        super().__init__(
            "equinix-metal",
            {
                token("device", "Device"): Device(self._client, log),
                token("project", "Project"): Project(self._client, log),
                token("projectSshKey", "ProjectSshKey"): SshKey(PROJECT_SSH_KEY, self._client, log),
                token("sshKey", "SshKey"): SshKey(SSH_KEY, self._client, log),
                token("reservedIpBlock", "ReservedIpBlock"): ReservedIpBlock(self._client, log),
                token("ipAttachment", "IpAttachment"): IpAttachment(self._client, log),
                token("bgpSession", "BgpSession"): BgpSession(self._client, log),
            },
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
        """The one function of which the project makes use."""
        if request.tok != BGP_NEIGHBORS:
            return await super().invoke(request)
        return await bgp_neighbors(self._client, request.args)

    async def close(self) -> None:
        """See `StandIn`."""
        await self._client.close()


def main() -> NoReturn:
    """Serve until the engine goes."""
    serve(VERSION, EquinixMetalPlugin)
