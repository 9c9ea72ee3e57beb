"""Ids of machines that are had from Ironic: `<server>/<UUID of the node>`."""

from __future__ import annotations

from dataclasses import dataclass

from metal_ipi.provider.errors import InvalidInputs


@dataclass(frozen=True, kw_only=True)
class MachineId:
    """An id, taken apart."""

    server: str
    """Its name in `ironic.servers`."""
    node: str
    """The node's UUID."""

    def __str__(self) -> str:
        return f"{self.server}/{self.node}"

    @classmethod
    def parse(cls, text: str) -> MachineId:
        """Reads an id."""
        server, _, node = text.partition("/")
        if not server or not node or "/" in node:
            raise InvalidInputs(f"{text} is no id of a machine of Ironic's: `<server>/<UUID of the node>`")
        return cls(server=server, node=node)
