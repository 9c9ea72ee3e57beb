"""The data that every check gets."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from metal_ipi.provider.configuration import Settings
from metal_ipi.provider.errors import InvalidInputs
from metal_ipi.provider.inventory.facts import Hardware
from metal_ipi.provider.orders import BOOTSTRAP, CONTROL_PLANE, MachineOrder, Orders
from metal_ipi.provider.platforms.equinix_metal.documents import marks_of
from metal_ipi.provider.platforms.ironic.driver import Ironic
from metal_ipi.provider.preflight.account import Account, Document
from metal_ipi.provider.preflight.findings import Finding
from metal_ipi.provider.preflight.plan import Plan
from metal_ipi.provider.preflight.rack import Rack


@dataclass(frozen=True, kw_only=True)
class Subject:
    """The stack that is to be checked, and access to its platforms."""

    plan: Plan
    settings: Settings
    """The provider's configuration, with credentials. A finding must not contain any of it."""
    account: Account | None
    """The Metal account; None if nothing is ordered."""
    servers: Rack | None = None
    """The servers with BMCs; None if there are none."""
    lender: Ironic | None = None
    """The Ironic client; None if no server comes from Ironic."""
    lent: Rack | None = None
    """The servers from Ironic; None if there are none."""
    again: bool = False
    """Whether the checks have passed before: then machines may be installed already."""
    clocks: dict[str, tuple[datetime, datetime]] = field(default_factory=dict[str, tuple[datetime, datetime]])
    """Name of a server that was asked to the time of its clock and of ours, at the same moment."""
    told: dict[str, str] = field(default_factory=dict[str, str])
    """Server name to a table with its facts, for people."""

    @property
    def orders(self) -> Orders:
        """What is ordered. Only for checks that need an order; raises InvalidInputs without one."""
        if self.plan.orders is None:
            raise InvalidInputs("nothing is ordered here")
        return self.plan.orders

    def runs(self, told: Hardware) -> bool:
        """Whether a server seems to be installed already: the checks have passed before, and it is switched on."""
        return self.again and told.power == "On"

    async def untold(self, rack: Rack, remedy: str) -> list[Finding]:
        """Returns one finding per server whose facts could not be read: an error, or a warning if the stack has passed
        before."""
        level = "warning" if self.again else "error"
        return [
            Finding(level=level, what=f"{server.name}: {trouble}", remedy=remedy, host=server.name)
            for server, trouble in await rack.troubles()
        ]

    @property
    def rack(self) -> Rack:
        """The servers with BMCs. Only for checks of those; raises InvalidInputs if there are none."""
        if self.servers is None:
            raise InvalidInputs("no server with a BMC is to be looked at here")
        return self.servers

    @property
    def metal(self) -> Account:
        """The Metal account. Only for checks of what is ordered; raises InvalidInputs if nothing is."""
        if self.account is None:
            raise InvalidInputs("nothing is ordered here")
        return self.account

    async def projects_of_its_name(self) -> list[Account]:
        """All projects that have the name of the stack's new project; empty if the stack uses an existing project."""
        plan = self.plan
        return await self.metal.projects_called(plan.project_name, plan.organization_id) if plan.project_name else []

    async def is_our_project(self, account: Account) -> bool:
        """Whether a project was created for this stack, by any run. Its SSH key's tags tell that."""
        return any(map(self.carries_our_marks, await account.ssh_keys()))

    def is_ours(self, item: Document) -> bool:
        """Whether something was ordered by this installation, according to its tags. Tags of old versions had no
        run."""
        return self.carries_our_marks(item) and marks_of(item).get("run") in (None, self.plan.run)

    def is_of_another_run(self, item: Document) -> bool:
        """Whether something has this stack's and cluster's tags, but was ordered by another run.

        Its state was lost then, or is in another checkout.
        """
        return self.carries_our_marks(item) and not self.is_ours(item)

    def carries_our_marks(self, item: Document) -> bool:
        """Whether something was ordered for this stack and cluster, by any run."""
        found = marks_of(item)
        return (found.get("stack"), found.get("cluster")) == (self.plan.stack, self.plan.domain)

    async def is_begun(self) -> bool:
        """Whether machines of this installation exist. The installer's output is made only once, before them."""
        return self.account is not None and any(map(self.is_ours, await self.account.devices()))

    async def missing(self) -> list[tuple[MachineOrder, tuple[str, ...]]]:
        """The orders, with the host names of machines that do not exist yet; orders without such machines are left out.

        Once all control plane machines exist, the bootstrap machine is not ordered again, because it is no longer
        needed.
        """
        there = {str(device.get("hostname")) for device in await self.metal.devices() if self.is_ours(device)}
        found = [
            (order, tuple(name for name in order.hostnames if name not in there)) for order in self.orders.machines
        ]
        installed = not any(names for order, names in found if order.role == CONTROL_PLANE)
        return [(order, names) for order, names in found if names and not (installed and order.role == BOOTSTRAP)]
