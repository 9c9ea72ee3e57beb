"""The executable `pulumi-resource-command`."""

from __future__ import annotations

from typing import NoReturn

from pulumi.provider.experimental import provider as api

from lab.plugins.base import EngineLog, StandIn, serve
from lab.plugins.command.resource import Command

VERSION = "1.2.1+lab"
"""That of the official plug-in it was compared with."""


class CommandPlugin(StandIn):
    """Needs no configuration."""

    def __init__(self, log: EngineLog) -> None:
        super().__init__("command", {"command:local:Command": Command(log)})

    async def configure(self, request: api.ConfigureRequest) -> api.ConfigureResponse:
        """Secrets are told from other values here, so that each output is a secret exactly when its input is."""
        return api.ConfigureResponse(accept_secrets=True, supports_preview=True)


def main() -> NoReturn:
    """Serve until the engine goes."""
    serve(VERSION, CommandPlugin)
