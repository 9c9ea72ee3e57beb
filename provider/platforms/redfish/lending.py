"""A server that is lent for a while: its script lies in the boot tree, or its disc beside it, as long as it is."""

from __future__ import annotations

from provider import boot_tree
from provider.configuration import Settings
from provider.platforms.contract import Machine
from provider.platforms.redfish import published
from provider.platforms.redfish.ids import MachineId
from provider.resources.ephemeral_machine import LentServerArgs


def machine_id(spec: LentServerArgs, identity: str) -> MachineId:
    """The id of a lent server."""
    return MachineId(server=spec.server, identity=identity, mac=spec.mac, script=boot_tree.digest(spec.script))


def machine(machine_id: MachineId, power: str, console: str) -> Machine:
    """A server, as the platform tells of it: active while it is on. Its addresses are not the BMC's to tell."""
    return Machine(
        id=str(machine_id),
        hostname=machine_id.server,
        state="active" if power == "On" else "provisioning",
        console=console,
    )


async def given_back(machine_id: str, settings: Settings) -> bool:
    """Whether a server was lent and is not any more: the script it boots is not the one it was lent for."""
    machine = MachineId.parse(machine_id)
    if machine.mac is None or machine.script is None or settings.artifacts is None:
        return False
    return not await published.is_published(settings, machine.server, machine.mac, machine.script)
