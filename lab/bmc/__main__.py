"""`python -m lab.bmc --state DIR --machines libvirt|simulated`: the service, inside the lab's namespaces."""

from __future__ import annotations

import argparse
import asyncio
import logging
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from lab.bmc.control import Control
from lab.bmc.identity import WIDE, network_of
from lab.bmc.rack import Bmc, Rack, guest_spec
from lab.facts import Facts, require
from lab.layout import Layout
from lab.machines.base import BackendError, RackBackend
from lab.network import link, plan, stream

_WRITE_SECONDS = 0.15
"""Seconds for each step of a simulated installation."""


def _backend(machines: str, layout: Layout, facts: Facts) -> RackBackend:
    """The chosen back end; the other one's packages need not be installed."""
    if machines == "simulated":
        from lab.machines.simulated import SimulatedBackend, Surroundings

        binary = Path(facts.openshift)
        if not binary.is_file():
            raise BackendError(f"simulated machines need lab-openshift, and {binary} is not a file")
        ranges = (plan.SERVERS, plan.WIDE_SERVERS, *((plan.SERVERS_IPV6,) if link.has_ipv6() else ()))
        around = Surroundings(
            ca=layout.ca,
            boot_server=f"http://{plan.METADATA}",
            lab_openshift=binary,
            base_config=stream.base_config(layout),
            progress=_write_slowly,
        )
        return SimulatedBackend(layout.state / "machines", around, ranges=ranges)
    from lab.machines.libvirt import LibvirtBackend

    guests = [guest_spec(facts.rack.guest)] if facts.rack and facts.rack.guest else []
    return LibvirtBackend(layout.state, guests=guests)


async def _write_slowly(_machine_id: str, _step: str) -> None:
    """Writing a disk takes time, so power can be lost meanwhile."""
    await asyncio.sleep(_WRITE_SECONDS)


async def _serve(layout: Layout, machines: str) -> None:
    facts = require(layout)
    if facts.rack is None:
        raise BackendError(f"the lab in {layout.state} has no rack: take it down, and start one with --rack")
    layout.rack.mkdir(exist_ok=True, mode=0o700)
    # sushy-tools keeps there what was put into virtual drives: it goes with the lab.
    tempfile.tempdir = str(layout.rack)
    rack = Rack(facts.rack.servers, _backend(machines, layout, facts), layout.rack, layout.tls)
    control = Control(rack, layout.rack)
    ipmi: asyncio.subprocess.Process | None = None
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    try:
        if any(network_of(each.address) is WIDE for each in facts.rack.servers):
            await _have(f"{plan.WIDE_GATEWAY}/{plan.WIDE.partition('/')[2]}")
        await rack.open(_listen)
        ipmi = await _start_ipmi(layout)
        await control.open()  # the last: who finds it open finds all there
        ended = asyncio.create_task(ipmi.wait())
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait({ended, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if ended.done():
            raise BackendError(f"IPMI ended with status {ended.result()}")
        ended.cancel()
    finally:
        if ipmi is not None and ipmi.returncode is None:
            ipmi.kill()
            await ipmi.wait()
        await control.close()
        await rack.close()


async def _start_ipmi(layout: Layout) -> asyncio.subprocess.Process:
    """The process that speaks IPMI, once it listens."""
    process = await asyncio.create_subprocess_exec(
        *("setpriv", "--pdeathsig", "KILL", sys.executable, "-m", "lab.bmc.ipmi", "--state", str(layout.state)),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    if not await process.stdout.readline():
        raise BackendError(f"IPMI ended with status {await process.wait()}")
    return process


async def _listen(bmc: Bmc) -> None:
    """A BMC has its address on the facility's wire."""
    await _have(f"{bmc.identity.host}/32")
    bmc.listen(bmc.identity.host, 443)


async def _have(address: str) -> None:
    """Have an address on the facility's wire."""
    command = ["ip", "address", "replace", address, "dev", plan.BRIDGE]
    await asyncio.to_thread(subprocess.run, command, check=True, timeout=10)


def main() -> int:
    """Serve until SIGTERM."""
    parser = argparse.ArgumentParser(prog="lab.bmc", description=__doc__)
    parser.add_argument("--state", required=True, help="the lab's state directory")
    parser.add_argument("--machines", choices=("libvirt", "simulated"), required=True, help="the machine back end")
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    for name in ("asyncssh", "httpx"):
        logging.getLogger(name).setLevel(logging.WARNING)
    try:
        asyncio.run(_serve(Layout.of(options.state), options.machines))
    except BackendError as error:
        print(f"lab.bmc: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
