"""Ids of machines on Redfish servers; their form is in the package's docstring."""

from __future__ import annotations

from dataclasses import dataclass

from metal_ipi.provider.errors import InvalidInputs

_LENT = "bootstrap"


@dataclass(frozen=True, kw_only=True)
class MachineId:
    """An id, taken apart."""

    server: str
    identity: str
    mac: str | None = None
    """Of a lent server: whose script is in the boot tree."""
    script: str | None = None
    """Of a lent server: the beginning of its script's SHA-512."""

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
                raise InvalidInputs(f"{text} is no id of a Redfish machine: `<server>/<identity>`")
