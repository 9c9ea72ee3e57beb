"""The bootstrap machine, if it is a server of the rack: see `components.machines.listed`."""

from __future__ import annotations

from metal_ipi.components.boot import site
from metal_ipi.components.machines.contract import MachineArgs
from metal_ipi.components.machines.listed import ListedServer
from metal_ipi.provider.types import LentServerArgs


def lent_server(args: MachineArgs, server: ListedServer) -> LentServerArgs:
    """The inputs of our provider for the lent server."""
    assert args.boot.script is not None, "a lent server boots its script"
    return LentServerArgs(
        server=server.name,
        hostname=args.node.hostname,
        mac=server.mac,
        public_ipv4=server.address,
        private_ipv4=server.private_address,
        script=args.boot.script,
        chain=site.chain_script(),
        accept=server.accept,
        disposable=args.disposable,
        timeout_seconds=args.timeout,
    )
