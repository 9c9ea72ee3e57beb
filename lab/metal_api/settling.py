"""What happens by itself when its time has come, according to the account's clock.

Nothing sleeps for it: what is due is in the records, so it also comes after a restart, and is done before a request is
carried out, or within a second when nobody asks.
"""

from __future__ import annotations

import asyncio

from lab.metal_api import gateways, spot_market, vlans
from lab.metal_api.devices import GONE, Device
from lab.metal_api.provisioning import Provisioner
from lab.metal_api.state import Account


def settle(account: Account, provisioner: Provisioner) -> None:
    """Do what is due."""
    vlans.settle(account)
    gateways.settle(account)
    for device in spot_market.settle(account):
        provisioner.provision(device)
    now = account.now()
    for device in account.table(Device).where("limited", "limited"):
        if str(device.termination_time) <= now and device.state != GONE:
            provisioner.deprovision(device)


async def keep_settled(account: Account, provisioner: Provisioner) -> None:
    """Do what is due also when nobody asks; until cancelled."""
    while True:
        settle(account, provisioner)
        await asyncio.sleep(1)
