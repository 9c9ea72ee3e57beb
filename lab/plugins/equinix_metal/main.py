"""The executable `pulumi-resource-equinix-metal`."""

from __future__ import annotations

import os
from typing import NoReturn

from pulumi.provider.experimental import provider as api

from lab.plugins.base import ENGINE_KEYS, EngineLog, Resource, StandIn, serve
from lab.plugins.equinix_metal.bridged import Bridged
from lab.plugins.equinix_metal.client import Client
from lab.plugins.equinix_metal.device import Device
from lab.plugins.equinix_metal.functions import FUNCTIONS, invoke
from lab.plugins.equinix_metal.special import Port, Project, SpotMarketRequest, Vlan
from lab.plugins.equinix_metal.table import TYPES
from lab.plugins.fields import ABSENT, TEXT, problems
from lab.plugins.values import plain

VERSION = "3.2.1+lab"
"""That of the official plug-in it was compared with."""

_CONFIGURATION = {"authToken": TEXT, "maxRetries": ABSENT, "maxRetryWaitSeconds": ABSENT}
_SPECIAL = {"Port": Port, "Project": Project, "SpotMarketRequest": SpotMarketRequest, "Vlan": Vlan}


class EquinixMetalPlugin(StandIn):
    """One client for all resources; it takes its token when the engine sends the configuration."""

    def __init__(self, log: EngineLog) -> None:
        self._client = Client()
        resources: dict[str, Resource] = {
            f"equinix-metal:index/{name[0].lower()}{name[1:]}:{name}": _SPECIAL.get(name, Bridged)(
                kind, self._client, log
            )
            for name, kind in TYPES.items()
        }
        super().__init__("equinix-metal", {**resources, "equinix-metal:index/device:Device": Device(self._client, log)})

    async def check_config(self, request: api.CheckRequest) -> api.CheckResponse:
        """A missing token is not an error yet: a preview needs none."""
        own = {name: value for name, value in request.new_inputs.items() if name not in ENGINE_KEYS}
        return api.CheckResponse(request.new_inputs, list(problems("equinix-metal", _CONFIGURATION, own)))

    async def configure(self, request: api.ConfigureRequest) -> api.ConfigureResponse:
        """Secrets stay with the engine, which marks outputs that carry a secret input's name: as the bridge does it."""
        given = request.args.get("authToken")
        self._client.token = (plain(given) if given else "") or os.environ.get("METAL_AUTH_TOKEN", "")
        return api.ConfigureResponse(supports_preview=True)

    async def invoke(self, request: api.InvokeRequest) -> api.InvokeResponse:
        """See `functions`."""
        known = request.tok in FUNCTIONS
        return await (invoke(self._client, request) if known else super().invoke(request))

    async def close(self) -> None:
        """See `StandIn`."""
        await self._client.close()


def main() -> NoReturn:
    """Serve until the engine goes."""
    serve(VERSION, EquinixMetalPlugin)
