"""Ids of servers that are claimed or lent, because no platform gives them one.

`<server>/<identity>` for a claimed server, `<server>/<identity>/bootstrap/<mac>/<script>` for a lent one. `server` is
its name in the provider's configuration, `identity` the platform's identifier, and `script` the beginning of the
SHA-512 of the boot script for which it was lent: a lent server is recognised only by the script on the artifact host.
"""

from __future__ import annotations

from dataclasses import dataclass

from metal_ipi.provider.errors import InvalidInputs

_LENT = "bootstrap"


@dataclass(frozen=True, kw_only=True)
class MachineId:
    """The parts of an id."""

    server: str
    identity: str
    """With `redfish` the System's UUID, with `ironic` the node's."""
    mac: str | None = None
    """For a lent server: the MAC address of the interface that boots its script."""
    script: str | None = None
    """For a lent server: the beginning of its script's SHA-512."""

    @property
    def lent_mac(self) -> str:
        """The MAC address of the interface that a lent server boots from. Raises InvalidInputs if it is not lent."""
        if self.mac is None:
            raise InvalidInputs(f"{self} is a server of the cluster, not one that was lent")
        return self.mac

    @property
    def lent(self) -> bool:
        """Whether it is lent, not claimed."""
        return self.mac is not None

    def __str__(self) -> str:
        claimed = f"{self.server}/{self.identity}"
        return f"{claimed}/{_LENT}/{self.mac}/{self.script}" if self.lent else claimed

    @classmethod
    def parse(cls, text: str) -> MachineId:
        """Parse an id. Raises InvalidInputs."""
        match text.split("/"):
            case [server, identity] if server and identity:
                return cls(server=server, identity=identity)
            case [server, identity, word, mac, script] if server and identity and word == _LENT:
                return cls(server=server, identity=identity, mac=mac, script=script)
            case _:
                raise InvalidInputs(f"{text} is not an id of a server: `<server>/<identity>`")
