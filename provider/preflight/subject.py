"""What a check is given to work with."""

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
    """A stack that is about to be brought up."""

    plan: Plan
    settings: Settings
    """The provider's configuration, with the credentials. Nothing of it may stand in a finding."""
    account: Account | None
    """None where nothing is ordered."""
    servers: Rack | None = None
    """None where no server has a BMC of ours."""
    lender: Ironic | None = None
    """None where no server is had from Ironic."""
    lent: Rack | None = None
    """Those servers."""
    again: bool = False
    """Whether these checks have passed before: what comes after them may have been done."""
    clocks: dict[str, tuple[datetime, datetime]] = field(default_factory=dict[str, tuple[datetime, datetime]])
    """Who was asked → what its clock said, and what ours said then."""
    told: dict[str, str] = field(default_factory=dict[str, str])
    """What is told of each server, by its name: a table for people."""

    @property
    def orders(self) -> Orders:
        """What is ordered. Only for checks of what is."""
        if self.plan.orders is None:
            raise InvalidInputs("nothing is ordered here")
        return self.plan.orders

    def runs(self, told: Hardware) -> bool:
        """Whether a server was installed before, as far as that is known: these checks have passed, and it is on."""
        return self.again and told.power == "On"

    async def untold(self, rack: Rack, remedy: str) -> list[Finding]:
        """A finding per server of which nothing is told: of a stack that has passed before, a warning only."""
        level = "warning" if self.again else "error"
        return [
            Finding(level=level, what=f"{server.name}: {trouble}", remedy=remedy, host=server.name)
            for server, trouble in await rack.troubles()
        ]

    @property
    def rack(self) -> Rack:
        """The servers that have BMCs. Only for checks of such."""
        if self.servers is None:
            raise InvalidInputs("no server with a BMC is to be looked at here")
        return self.servers

    @property
    def metal(self) -> Account:
        """The account that it is ordered with."""
        if self.account is None:
            raise InvalidInputs("nothing is ordered here")
        return self.account

    async def projects_of_its_name(self) -> list[Account]:
        """All projects of the name that the stack's is to have; none where it uses one that exists."""
        plan = self.plan
        return await self.metal.projects_called(plan.project_name, plan.organization_id) if plan.project_name else []

    async def is_our_project(self, account: Account) -> bool:
        """Whether a project was made for this stack, by whichever run: its SSH key tells."""
        return any(map(self.carries_our_marks, await account.ssh_keys()))

    def is_ours(self, item: Document) -> bool:
        """Whether this installation ordered something, as its marks say; once they told no run."""
        return self.carries_our_marks(item) and marks_of(item).get("run") in (None, self.plan.run)

    def is_of_another_run(self, item: Document) -> bool:
        """Whether something carries this stack's and this cluster's marks, and was not ordered by this installation.

        Its state was lost then, or is kept by another checkout.
        """
        return self.carries_our_marks(item) and not self.is_ours(item)

    def carries_our_marks(self, item: Document) -> bool:
        """Whether something was ordered for this stack and this cluster, by whichever run."""
        found = marks_of(item)
        return (found.get("stack"), found.get("cluster")) == (self.plan.stack, self.plan.domain)

    async def is_begun(self) -> bool:
        """Whether machines of ours are there. What the installer makes comes before them, once and for all."""
        return self.account is not None and any(map(self.is_ours, await self.account.devices()))

    async def missing(self) -> list[tuple[MachineOrder, tuple[str, ...]]]:
        """The orders with the host names of those machines that are not there yet; orders that are done are left out.

        The bootstrap machine of a cluster whose control plane is there has done its work, and is not ordered again.
        """
        there = {str(device.get("hostname")) for device in await self.metal.devices() if self.is_ours(device)}
        found = [
            (order, tuple(name for name in order.hostnames if name not in there)) for order in self.orders.machines
        ]
        installed = not any(names for order, names in found if order.role == CONTROL_PLANE)
        return [(order, names) for order, names in found if names and not (installed and order.role == BOOTSTRAP)]
