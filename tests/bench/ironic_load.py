"""Has many servers deployed and given back through Ironic, all at once: `ironic_load COUNT`, in the facility's network.

Reads {"config": the provider's configuration, whose servers have BMCs of the farm, "mac": whose disc they boot} from
standard input, for it holds secrets; prints {"deployed": SECONDS, "given_back": SECONDS, "failed": [TEXT...]}.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

from metal_ipi.provider.configuration import Settings, parse
from metal_ipi.provider.errors import ProviderError
from metal_ipi.provider.live_iso import disc, place
from metal_ipi.provider.platforms.ids import MachineId
from metal_ipi.provider.platforms.ironic import Ironic
from metal_ipi.provider.status import silent
from tests.end_to_end.ironic_load import SCRIPT

_PATIENCE = 1800
"""Seconds that a step may take."""


async def _deploy(settings: Settings, name: str, mac: str) -> str:
    async with Ironic(settings, silent, timeout=_PATIENCE) as driver:
        node = await driver.claim(name, accept="wipe")
        machine = str(MachineId(server=name, identity=node.id))
        await driver.boot_installer(machine, mac)
        await driver.boot_disk(machine)
        return machine


async def _give_back(settings: Settings, machine: str) -> None:
    async with Ironic(settings, silent, timeout=_PATIENCE) as driver:
        await driver.give_back(machine)


async def _all(work: list[Callable[[], Awaitable[Any]]], failed: list[str]) -> tuple[float, list[Any]]:
    began = time.monotonic()
    ended = await asyncio.gather(*(each() for each in work), return_exceptions=True)
    for each in ended:
        if isinstance(each, ProviderError):
            failed.append(str(each))
        elif isinstance(each, BaseException):
            raise each
    return time.monotonic() - began, [each for each in ended if not isinstance(each, BaseException)]


async def main() -> dict[str, Any]:
    """What it took."""
    given = json.load(sys.stdin)
    settings, problems = parse(given["config"])
    assert not problems, problems
    mac, failed = given["mac"], list[str]()
    live_iso = settings.need_ironic().live_iso
    assert live_iso is not None, "these servers boot discs"
    await disc.publish(settings, live_iso, mac, SCRIPT, silent)
    try:
        names = list(settings.ironic_servers)
        deployed, machines = await _all([lambda name=name: _deploy(settings, name, mac) for name in names], failed)
        given_back, _ = await _all([lambda each=each: _give_back(settings, each) for each in machines], failed)
    finally:
        await place.remove(settings, mac)
    return {"deployed": round(deployed, 1), "given_back": round(given_back, 1), "failed": failed}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main())))
