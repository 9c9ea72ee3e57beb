"""Has servers deployed and given back through Ironic, over and over: `ironic_load SECONDS`, in the facility's network.

Reads {"config": the provider's configuration, "servers": {name: MAC}} from standard input, for it holds secrets. Writes
a line for each step that begins, and at last what became of the servers: {name: {"rounds": N, "error": TEXT or null}}.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any

from metal_ipi.provider.configuration import Settings, parse
from metal_ipi.provider.errors import ProviderError
from metal_ipi.provider.live_iso import disc, place
from metal_ipi.provider.platforms.ids import MachineId
from metal_ipi.provider.platforms.ironic import Ironic
from metal_ipi.provider.status import silent

SCRIPT = "#!ipxe\nkernel http://boot.test/kernel initrd=main ignition.platform.id=metal\ninitrd --name main http://boot.test/initramfs\nboot\n"
"""What servers' discs stand for."""
_PATIENCE = 240
"""Seconds that a step may take: a conductor that died is missed after a minute."""


async def _rounds(settings: Settings, name: str, mac: str, until: float) -> dict[str, Any]:
    rounds = 0

    def told(step: str) -> None:
        print(json.dumps({"at": round(time.time(), 1), "server": name, "round": rounds, "step": step}), flush=True)

    try:
        live_iso = settings.need_ironic().live_iso
        assert live_iso is not None, "these servers boot discs"
        await disc.publish(settings, live_iso, mac, SCRIPT, silent)
        while time.time() < until:
            async with Ironic(settings, silent, timeout=_PATIENCE) as driver:
                told("claim")
                node = await driver.claim(name, accept="wipe")
                machine = str(MachineId(server=name, identity=node.id))
                told("deploy")
                await driver.boot_installer(machine, mac)
                told("disk")
                await driver.boot_disk(machine)
                told("give back")
                await driver.give_back(machine)
            rounds += 1
        told("done")
    except ProviderError as error:
        return {"rounds": rounds, "error": str(error)}
    finally:
        await place.remove(settings, mac)
    return {"rounds": rounds, "error": None}


async def main(seconds: float) -> dict[str, Any]:
    """What became of the servers."""
    given = json.load(sys.stdin)
    settings, problems = parse(given["config"])
    assert not problems, problems
    until, servers = time.time() + seconds, given["servers"]
    found = await asyncio.gather(*(_rounds(settings, name, mac, until) for name, mac in servers.items()))
    return dict(zip(servers, found, strict=True))


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(float(sys.argv[1])))))
