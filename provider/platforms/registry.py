"""The list of platforms, and how to find the platform of a machine."""

from __future__ import annotations

from typing import Any

from metal_ipi.provider.configuration import Settings
from metal_ipi.provider.errors import InvalidInputs
from metal_ipi.provider.forms import PLATFORMS
from metal_ipi.provider.platforms.contract import MachineDriver
from metal_ipi.provider.status import Status


def open_driver(platform: str, settings: Settings, status: Status | None = None) -> MachineDriver[Any]:
    """The driver of a platform; does not connect yet. It reports remarks through `status`."""
    if platform == "equinix-metal":
        from metal_ipi.provider.platforms.equinix_metal.driver import EquinixMetal

        return EquinixMetal(settings.need_metal())
    if platform == "redfish":
        from metal_ipi.provider.platforms.redfish import Redfish

        return Redfish(settings, status.remark if status else None)
    if platform == "ironic":
        from metal_ipi.provider.platforms.ironic import Ironic

        return Ironic(settings, status.live if status else None)
    if platform == "local-vm":
        from metal_ipi.provider.platforms.local_vm import LocalVm

        return LocalVm(settings, status.remark if status else None)
    raise InvalidInputs(f"platform {platform} is not known; known are {', '.join(PLATFORMS)}")


def platform_of(machine_id: str, settings: Settings) -> str | None:
    """The platform of a machine, among those that the provider is configured for; None if it is none of them."""
    from metal_ipi.provider.platforms.local_vm.ids import PREFIX

    server, _, identity = machine_id.partition("/")
    if machine_id.startswith(PREFIX):
        return None if settings.artifacts is None else "local-vm"
    if identity and server in (settings.bmcs or {}):
        return "redfish"
    if identity and server in settings.ironic_servers:
        return "ironic"
    return None if settings.metal is None or identity else "equinix-metal"


async def is_gone(machine_id: str | None, settings: Settings) -> bool:
    """Whether a machine no longer exists; False if no platform can be asked. Raises ProviderError.

    Servers with a BMC never disappear: a lent server counts as gone once it was given back.
    """
    platform = platform_of(machine_id, settings) if machine_id else None
    if machine_id is None or platform is None:
        return False
    if platform == "redfish":
        from metal_ipi.provider.platforms.ids import MachineId
        from metal_ipi.provider.platforms.redfish import published

        return await published.given_back(MachineId.parse(machine_id), settings)
    async with open_driver(platform, settings) as driver:
        return await driver.get(machine_id) is None
