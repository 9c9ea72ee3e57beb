"""The executable `pulumi-resource-kubernetes`."""

from __future__ import annotations

from typing import NoReturn

from pulumi.provider.experimental import provider as api

from lab.plugins.base import ENGINE_KEYS, EngineLog, Resource, StandIn, serve
from lab.plugins.fields import problems
from lab.plugins.kubernetes.client import Client
from lab.plugins.kubernetes.inputs import CONFIGURATION, kind_of, settings_of
from lab.plugins.kubernetes.resource import KubernetesObject
from lab.plugins.values import plain_map

VERSION = "4.34.2+lab"
"""That of the official plug-in it was compared with."""


class KubernetesPlugin(StandIn):
    """One client for all resources; it takes its settings when the engine sends the configuration."""

    def __init__(self, log: EngineLog) -> None:
        super().__init__("kubernetes", {})
        self._client = Client()
        self._log = log

    def resource(self, token: str) -> Resource:
        """Custom resources have as many types as there are kinds, so a resource is made for each request."""
        return KubernetesObject(kind_of(token), self._client, self._log)

    async def check_config(self, request: api.CheckRequest) -> api.CheckResponse:
        """A missing kubeconfig is not an error yet: the cluster may be made by the same update."""
        own = {name: value for name, value in request.new_inputs.items() if name not in ENGINE_KEYS}
        return api.CheckResponse(request.new_inputs, list(problems("kubernetes", CONFIGURATION, own)))

    async def configure(self, request: api.ConfigureRequest) -> api.ConfigureResponse:
        """Secrets are told from other values here, so that each output is a secret exactly when its input is."""
        self._client.settings = settings_of(plain_map(request.args))
        return api.ConfigureResponse(accept_secrets=True, supports_preview=True)

    async def close(self) -> None:
        """See `StandIn`."""
        await self._client.close()


def main() -> NoReturn:
    """Serve until the engine goes."""
    serve(VERSION, KubernetesPlugin)
