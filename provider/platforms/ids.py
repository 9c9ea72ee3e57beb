"""Ids of servers that are claimed, or lent for a while, and made by nobody.

`<server>/<identity>` of a claimed one, `<server>/<identity>/bootstrap/<mac>/<script>` of a lent one, where `server` is
its name in the provider's configuration, `identity` what the platform knows it again by, and `script` the beginning of
the SHA-512 of the boot script it was lent for: so it is known again by what lies on the artifact host, and by nothing
else.
"""

from __future__ import annotations

from dataclasses import dataclass

from metal_ipi.provider.errors import InvalidInputs

_LENT = "bootstrap"


@dataclass(frozen=True, kw_only=True)
class MachineId:
    """An id, taken apart."""

    server: str
    identity: str
    """The System's UUID, with `redfish`; the node's, with `ironic`."""
    mac: str | None = None
    """Of a lent server: of the interface that boots its script."""
    script: str | None = None
    """Of a lent server: the beginning of its script's SHA-512."""

    @property
    def lent_mac(self) -> str:
        """The MAC address of the interface that a lent server boots from; refuses one that is not lent."""
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
        """Reads an id."""
        match text.split("/"):
            case [server, identity] if server and identity:
                return cls(server=server, identity=identity)
            case [server, identity, word, mac, script] if server and identity and word == _LENT:
                return cls(server=server, identity=identity, mac=mac, script=script)
            case _:
                raise InvalidInputs(f"{text} is no id of a server: `<server>/<identity>`")
