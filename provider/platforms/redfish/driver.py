"""See `MachineDriver`, for servers that are lent; and what `installation.remote` needs for all servers."""

from __future__ import annotations

from collections.abc import Collection

from metal_ipi.provider import boot_tree
from metal_ipi.provider.configuration import Settings
from metal_ipi.provider.inventory.facts import Hardware
from metal_ipi.provider.live_iso import disc
from metal_ipi.provider.platforms.contract import Machine, MachineDriver
from metal_ipi.provider.platforms.ids import MachineId
from metal_ipi.provider.platforms.redfish import boot, inventory, media, power, published, secure_boot, survey
from metal_ipi.provider.platforms.redfish.connection import Connection
from metal_ipi.provider.platforms.redfish.inventory import Inventory
from metal_ipi.provider.platforms.redfish.power import Patience
from metal_ipi.provider.resources.ephemeral_machine import LentServerArgs
from metal_ipi.provider.status import Say, silent

_asked: set[tuple[str, str]] = set()
"""(address, machine) that this process booted from the network, and not back from its disk yet."""


def _machine(machine_id: MachineId, found: Inventory) -> Machine:
    """A lent server: active while it is on. The BMC does not know its addresses."""
    state = "active" if found.power == "On" else "provisioning"
    return Machine(id=str(machine_id), hostname=machine_id.server, state=state, console=found.console)


class Redfish(MachineDriver[LentServerArgs]):
    """All servers of the section `bmcs`; connects to each on first use."""

    def __init__(
        self, settings: Settings, say: Say | None = None, *, patience: Patience | None = None, timeout: float = 180
    ) -> None:
        """`say` shows remarks to the user; `timeout` is how long a call may be repeated, in seconds."""
        self._settings = settings
        self._say = say or silent
        self._patience = patience or Patience()
        self._timeout = timeout
        self._connections: dict[tuple[str, str | None], Connection] = {}

    async def __aexit__(self, *_: object) -> None:
        for connection in self._connections.values():
            await connection.close()
        self._connections.clear()

    # --- lent servers -------------------------------------------------------------------------------------------------

    async def find(self, spec: LentServerArgs) -> list[Machine]:
        return []  # unfinished steps of an earlier run are repeated instead, which makes nothing twice

    async def create(self, spec: LentServerArgs) -> Machine:
        found = await self.inventory(spec.server, macs=[spec.mac])
        machine_id = MachineId(
            server=spec.server, identity=found.identity, mac=spec.mac, script=boot_tree.digest(spec.script)
        )
        ours = not await published.given_back(machine_id, self._settings)
        found.check_mac(spec.mac, self._settings.need_bmc(spec.server))
        found.check_free(accept=spec.accept, ours=ours)
        secure_boot.refuse(found.where, found.secure_boot, self._settings.need_bmc(spec.server))
        await published.publish(
            self._settings, spec.server, spec.mac, script=spec.script, chain=spec.chain, say=self._say
        )
        return _machine(machine_id, found)

    async def start(self, machine_id: str) -> None:
        await self.boot_installer(machine_id, MachineId.parse(machine_id).lent_mac)

    async def get(self, machine_id: str) -> Machine | None:
        machine = MachineId.parse(machine_id)
        if await published.given_back(machine, self._settings):
            return None
        return _machine(machine, await self.inventory(machine.server, machine.identity))

    async def delete(self, machine_id: str) -> None:
        machine = MachineId.parse(machine_id)
        if await published.given_back(machine, self._settings):
            return
        await self.boot_disk(machine_id)
        await power.turn_off(self._of(machine_id), self._patience, self._say, graceful=False)
        # Last: as long as its script exists, a run after a killed one knows that it is not finished.
        await disc.withdraw(self._settings, machine.lent_mac)

    # --- all servers --------------------------------------------------------------------------------------------------

    async def inventory(self, server: str, claimed: str | None = None, *, macs: Collection[str] = ()) -> Inventory:
        """What a server's BMC reports about it. Raises RemoteError if it is not the claimed server. `macs` are the
        cards that it should have."""
        return await inventory.take(self._connect(server, claimed), macs)

    async def survey(self, server: str, macs: Collection[str]) -> Hardware:
        """Everything that a server's BMC reports about it; `macs` are the cards that it should have."""
        return await survey.take(self._connect(server, None), macs)

    async def power_state(self, machine_id: str) -> str:
        """`On`, `Off`, `PoweringOn`, `PoweringOff` or `Unknown`."""
        return await power.state(self._of(machine_id))

    async def boot_installer(self, machine_id: str, mac: str) -> None:
        """Boot it once from the network, whatever runs on it; `mac` belongs to the interface."""
        connection = self._of(machine_id)
        # Secure Boot may have been switched on since the server was claimed.
        secure_boot.refuse(connection.where, await inventory.secure_boot_of(connection), connection.settings)
        # If a one-time boot is still listed although the server runs, it was ignored. If it is not listed, but did not
        # lead to the installer, that is noticed only here: the same machine is booted again before `boot_disk` was
        # called.
        found = await boot.read(connection)
        left = found.power == "On" and found.enabled == boot.ONCE and found.from_network
        every_time = left or (connection.settings.address, machine_id) in _asked
        if every_time:
            await self._say(f"{connection.where} did not accept a one-time boot: now it is set for every boot")
        if not await self._boot_from_network(connection, mac, every_time=every_time):
            await self._say(f"{connection.where} ignored its one-time boot: now it is set for every boot")
            await self._boot_from_network(connection, mac, every_time=True)
        _asked.add((connection.settings.address, machine_id))

    async def _boot_from_network(self, connection: Connection, mac: str, *, every_time: bool) -> bool:
        """Boot once. Returns False if the BMC shows that it ignored the one-time boot."""
        if (image := await published.image(self._settings, connection.settings, mac)) is not None:
            await media.insert(connection, image)
        before = await boot.read(connection)
        kinds: list[str] = []

        async def arm() -> None:
            kinds.append(await boot.arm(connection, mac, self._say, every_time=every_time))

        await power.start_over(connection, self._patience, self._say, prepare=arm)
        return kinds[-1] != boot.ONCE or not await boot.ignored(connection, before, self._patience)

    async def boot_disk(self, machine_id: str) -> None:
        """Make its later boots come from the disk; does not reset it."""
        connection = self._of(machine_id)
        await boot.withdraw(connection, self._say)
        _asked.discard((connection.settings.address, machine_id))
        if connection.settings.boot_method in published.BY_DISC:
            await media.eject(connection, published.is_image(self._settings, connection.settings))

    async def restart(self, machine_id: str) -> None:
        """Reset it, or switch it on, without a shutdown of its system. Returns once it is on."""
        await power.start_over(self._of(machine_id), self._patience, self._say)

    async def power_off(self, machine_id: str) -> None:
        """Shut it down, or switch it off if it does not react; returns once it is off."""
        await power.turn_off(self._of(machine_id), self._patience, self._say, graceful=True)

    def _of(self, machine_id: str) -> Connection:
        machine = MachineId.parse(machine_id)
        return self._connect(machine.server, machine.identity)

    def _connect(self, server: str, claimed: str | None) -> Connection:
        key = (server, claimed)
        if key not in self._connections:
            bmc = self._settings.need_bmc(server)
            self._connections[key] = Connection(server, bmc, claimed=claimed, timeout=self._timeout)
        return self._connections[key]
