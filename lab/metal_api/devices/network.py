"""How the ports of a device are set, and what follows for its addresses: the rules of changing it are the ports'."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field

from lab.metal_api.devices.models import Device
from lab.metal_api.records import Record, saved
from lab.metal_api.state import Account

BOND = "bond0"
INTERFACES = ("eth0", "eth1")
NAMES = (BOND, *INTERFACES)


@saved("device_networks", indexed=("device_id",))
@dataclass(kw_only=True)
class DeviceNetwork(Record):
    """How the ports of a device are set; devices without such a record are set as they came."""

    id: str
    """The device's own."""
    members: list[str] = field(default_factory=lambda: list(INTERFACES))
    """The interfaces in the bond; without any there is no bond."""
    layer2: bool = False
    public: bool = True
    """Whether it has its public addresses, in layer 3: a conversion back may have asked for private ones only."""

    @property
    def device_id(self) -> str:
        """What it goes with."""
        return self.id


def network_of(account: Account, device: Device) -> DeviceNetwork:
    """How a device's ports are set, to be read only."""
    return account.table(DeviceNetwork).get(device.id) or DeviceNetwork(id=device.id)


def has_addresses(account: Account, device: Device, *, public: bool) -> bool:
    """Whether a device has its layer 3 addresses. They stay its own all the time, so it gets the same ones back."""
    network = network_of(account, device)
    return not network.layer2 and (network.public or not public)


def indexes(account: Account, device: Device) -> list[int]:
    """Which of its own addresses a device has now."""
    entries = enumerate(device.addresses)
    return [index for index, entry in entries if has_addresses(account, device, public=entry.public)]


def port_id(device_id: str, name: str) -> str:
    """The id of a device's port: the device's own, but for its last bits."""
    return str(uuid.UUID(int=uuid.UUID(device_id).int ^ (NAMES.index(name) + 1)))


def interfaces(device: Device) -> dict[str, str]:
    """A device's interfaces and their MACs."""
    return dict(zip(INTERFACES, (device.mac, "52:54:01" + device.mac[8:]), strict=True))
