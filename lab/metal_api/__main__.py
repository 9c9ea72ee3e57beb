"""`python -m lab.metal_api --state DIR --machines libvirt|simulated`: the service, inside the lab's namespaces."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import os
import secrets
import signal
import sys
from pathlib import Path

from lab.facts import Facts, require
from lab.layout import Layout
from lab.machines.base import BackendError, MachineBackend
from lab.metal_api.bgp import LOCAL_ASN, request_config
from lab.metal_api.provisioning import Pace
from lab.metal_api.routing import NoRouter, config_of
from lab.metal_api.server import Places, Service
from lab.metal_api.state import Account, Chance, Identity, SystemClock
from lab.network import bird, plan, stream
from lab.network.bgp import RouterError
from lab.network.bird_control import Bird


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="lab.metal_api", description=__doc__)
    parser.add_argument("--state", type=Path, required=True, help="the lab's state directory")
    parser.add_argument("--machines", choices=("libvirt", "simulated"), required=True, help="the machine back end")
    return parser.parse_args()


def _backend(options: argparse.Namespace, layout: Layout, facts: Facts) -> MachineBackend:
    """The chosen back end; the other one's packages need not be installed."""
    if options.machines == "simulated":
        from lab.machines.simulated import SimulatedBackend, Surroundings

        binary = Path(facts.openshift)
        if not binary.is_file():
            raise BackendError(f"simulated machines need lab-openshift, and {binary} is not a file")
        return SimulatedBackend(
            layout.state / "machines",
            Surroundings(
                ca=layout.ca,
                boot_server=f"http://{plan.METADATA}",
                lab_openshift=binary,
                base_config=stream.base_config(layout),
            ),
        )
    from lab.machines.libvirt import LibvirtBackend

    return LibvirtBackend(layout.state)


def _tell(ready: Path, text: str | None) -> None:
    """The ready file is there exactly as long as all is served."""
    if text is None:
        ready.unlink(missing_ok=True)
    else:
        ready.write_text(text)


def _enable_bgp(account: Account, project_id: str, *, md5: bool) -> None:
    """The project that is there from the start may speak BGP, as one does that somebody has prepared."""
    if config_of(account, project_id) is None:
        password = f"Lab0{secrets.token_hex(6)}" if md5 else None
        request_config(account, project_id, {"deployment_type": "local", "asn": LOCAL_ASN, "md5": password})


async def _serve(options: argparse.Namespace) -> None:
    layout = Layout.of(options.state)
    ready = layout.api_ready
    _tell(ready, None)
    facts = require(layout)
    if facts.api is None:
        raise BackendError(f"the lab in {layout.state} has a rack, and no Metal API")
    service = Service(
        Identity(token=facts.api.token, organization_id=facts.api.organization_id, project_id=facts.api.project_id),
        Places(api=plan.API, metadata=plan.METADATA, sos=plan.SOS, tls=layout.tls, state=layout.state / "metal_api"),
        _backend(options, layout, facts),
        Bird(bird.directory(layout), md5=facts.bgp.md5) if facts.bgp else NoRouter(),
        pace=Pace(),
        clock=SystemClock(),
        chance=Chance(),
    )
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    running: asyncio.Task[None] | None = None
    try:
        await service.start()
        if facts.bgp is not None:
            _enable_bgp(service.account, facts.api.project_id, md5=facts.bgp.md5)
        _tell(ready, f"{os.getpid()}\n")
        running = asyncio.create_task(service.run())
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait({running, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if running.done():
            running.result()
    finally:
        _tell(ready, None)
        await service.close()
        if running is not None:
            running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await running


def main() -> int:
    """Serve until SIGTERM."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    logging.getLogger("asyncssh").setLevel(logging.WARNING)
    logging.getLogger("httpx").setLevel(logging.WARNING)
    try:
        asyncio.run(_serve(_arguments()))
    except (BackendError, RouterError) as error:
        print(f"lab.metal_api: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
