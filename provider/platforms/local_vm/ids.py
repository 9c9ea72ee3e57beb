"""The ids of virtual machines in the state."""

from __future__ import annotations

from dataclasses import dataclass

from metal_ipi.provider import boot_tree
from metal_ipi.provider.errors import InvalidInputs
from metal_ipi.provider.resources.ephemeral_machine import LocalVmArgs

PREFIX = "local-vm:"
"""The prefix of these ids."""


@dataclass(frozen=True, kw_only=True)
class MachineId:
    """The parts of an id; the package's docstring describes its form."""

    domain: str
    mac: str
    script: str

    def __str__(self) -> str:
        return f"{PREFIX}{self.domain}/{self.mac}/{self.script}"

    @classmethod
    def of(cls, spec: LocalVmArgs) -> MachineId:
        """The id of a virtual machine that will be made."""
        return cls(domain=spec.domain, mac=spec.mac, script=boot_tree.digest(spec.script))

    @classmethod
    def parse(cls, text: str) -> MachineId:
        """Parse an id. Raises InvalidInputs."""
        match text.removeprefix(PREFIX).split("/"):
            case [domain, mac, script] if text.startswith(PREFIX) and domain and mac and script:
                return cls(domain=domain, mac=mac, script=script)
            case _:
                raise InvalidInputs(f"{text} is not an id of a virtual machine: `{PREFIX}<domain>/<mac>/<script>`")
