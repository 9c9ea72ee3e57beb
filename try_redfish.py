import asyncio, sys
sys.path.insert(0,"/tmp/w/redfish")
from tests.provider import fake_bmc
from provider.configuration import parse
from provider.platforms.redfish import Redfish
import json
async def main():
    with fake_bmc.running() as bmc:
        settings,p=parse({"bmcs":json.dumps({"a":bmc.settings()})}); print(p)
        said=[]
        async def say(t): said.append(t)
        async with Redfish(settings,say) as d:
            i=await d.inventory("a"); print(i)
            mid=f"a/{i.identity}"
            print(await d.power_state(mid))
            await d.boot_installer(mid); print(bmc.machine.boots,bmc.machine.resets,bmc.bodies)
            await d.boot_installer(mid); print(bmc.machine.boots,bmc.machine.resets,bmc.bodies)
            await d.boot_disk(mid); await d.restart(mid); print(bmc.machine.boots)
            await d.power_off(mid); print(bmc.machine.resets, said, len(bmc.requests))
        print(bmc.sessions)
asyncio.run(main())
