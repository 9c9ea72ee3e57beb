"""A server that is lent for a while: its script lies in the boot tree, or its disc beside it, as long as it is."""

from __future__ import annotations

from dataclasses import dataclass, field

from provider import boot_tree
from provider.configuration import Settings
from provider.fields import IPV4, SHORT_NAME, Reader
from provider.platforms.contract import Machine, MachineSpec
from provider.platforms.redfish import published
from provider.platforms.redfish.ids import MachineId

ACCEPT = ("empty", "wipe")
KEYS = ("hostname", "server", "mac", "publicIpv4", "privateIpv4", "script", "chain", "accept")


@dataclass(frozen=True, kw_only=True)
class LentServer(MachineSpec):
    """A server to borrow."""

    server: str
    """Its name in the provider's section `bmcs`."""
    mac: str
    """Of the interface it boots from."""
    script: str = field(repr=False)
    """The iPXE script it boots."""
    chain: str = field(repr=False)
    """Text of `boot.ipxe`."""
    accept: str
    """One of ACCEPT: what may be on it."""


def read(reader: Reader) -> LentServer:
    """Reads the inputs of a lent server."""
    reader.text("publicIpv4", pattern=IPV4, what="an IPv4 address")
    reader.optional_text("privateIpv4", pattern=IPV4, what="an IPv4 address")
    return LentServer(
        hostname=reader.text("hostname", pattern=SHORT_NAME, what="a host name"),
        server=reader.text("server"),
        mac=boot_tree.read_mac(reader),
        script=reader.text("script"),
        chain=reader.text("chain"),
        accept=read_accept(reader),
    )


def read_accept(reader: Reader) -> str:
    """`accept`."""
    return reader.text("accept", default=ACCEPT[0], pattern="|".join(ACCEPT), what=f"one of {', '.join(ACCEPT)}")


def machine_id(spec: LentServer, identity: str) -> MachineId:
    """The id of a lent server."""
    return MachineId(server=spec.server, identity=identity, mac=spec.mac, script=boot_tree.digest(spec.script))


def machine(machine_id: MachineId, power: str, console: str) -> Machine:
    """A server, as the platform tells of it: active while it is on. Its addresses are not the BMC's to tell."""
    return Machine(
        id=str(machine_id),
        hostname=machine_id.server,
        state="active" if power == "On" else "provisioning",
        console=console,
    )


async def given_back(machine_id: str, settings: Settings) -> bool:
    """Whether a server was lent and is not any more: the script it boots is not the one it was lent for."""
    machine = MachineId.parse(machine_id)
    if machine.mac is None or machine.script is None or settings.artifacts is None:
        return False
    return not await published.is_published(settings, machine.server, machine.mac, machine.script)
