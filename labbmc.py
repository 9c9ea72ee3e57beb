import sys, asyncio, json, time
from pathlib import Path
sys.path.insert(0,"/tmp/w/redfish")
import provider.configuration, provider.platforms.redfish
from provider.configuration import parse
from provider.platforms.redfish import Redfish
from provider.errors import ProviderError
sys.path[0]="/tmp/w/bmc"
from tests.lab.bmc.harness import world
import tempfile
with tempfile.TemporaryDirectory() as d, world(Path(d)) as lab:
    s=lab.servers[0]
    entry={"address":lab.url().removesuffix("/redfish/v1/"),"username":s.bmc.username,"password":s.bmc.password,"ca":Path(s.bmc.ca_path).read_text()}
    def run(work, **more):
        settings,p=parse({"bmcs":json.dumps({"server-0":{**entry,**more}})}); assert not p,p
        said=[]
        async def say(t): said.append(t)
        async def go():
            async with Redfish(settings,say,timeout=20) as dr:
                return await work(dr)
        t=time.monotonic()
        try: r=asyncio.run(go())
        except ProviderError as e: r=f"{type(e).__name__}: {e}"
        print(f"{time.monotonic()-t:.1f}s", r, said, lab.machines.boots[-2:], lab.machines.calls[-1:])
        return r
    inv=run(lambda d:d.inventory("server-0"))
    mid=f"server-0/{inv.identity}"
    boot=lambda d:d.boot_installer(mid)
    disk=lambda d:d.boot_disk(mid)
    off=lambda d:d.power_off(mid)
    run(boot); run(disk); run(lambda d:d.restart(mid)); run(boot); 
    for f,o in (("slow",{"seconds":2,"count":3}),("unavailable",{"seconds":4}),("reset",{"count":2}),("session_lost",{"count":1}),("boot_not_honoured",{}),("boot_dropped",{}),("stale_power",{"seconds":5}),("deaf_shutdown",{})):
        print("---",f); lab.fault(f,**o); run(boot); 
        if f in("boot_dropped",): run(disk)
        if f in ("stale_power",): run(off)
        if f=="deaf_shutdown":
            import provider.platforms.redfish.driver as D
            run(off)
        try: lab.do(do="clear",server="server-0")
        except Exception as e: print("clear",e)
    for which in ("expired","early","other-name","other-ca"):
        print("---",which); lab.fault("certificate",which=which); run(lambda d:d.power_state(mid)); lab.do(do="clear",server="server-0")
    lab.fault("clock",days=-400); run(lambda d:d.power_state(mid))
    run(boot,bootMethod="uefi-http"); run(boot,bootMethod="virtual-media",bootImage="http://127.0.0.1:1/x.iso")
