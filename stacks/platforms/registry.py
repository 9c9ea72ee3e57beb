"""The list of platforms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from metal_ipi.stacks.model import Settings
from metal_ipi.stacks.platforms.contract import Facility
from metal_ipi.stacks.platforms.equinix_metal.facility import EquinixMetalFacility
from metal_ipi.stacks.platforms.equinix_metal.settings import EquinixMetal
from metal_ipi.stacks.platforms.ironic.facility import IronicFacility
from metal_ipi.stacks.platforms.ironic.settings import Ironic
from metal_ipi.stacks.platforms.redfish.facility import RedfishFacility
from metal_ipi.stacks.platforms.redfish.settings import Redfish
from metal_ipi.stacks.platforms.section import PlatformSection

_FACILITIES: Mapping[type[PlatformSection], Callable[[Settings, Any], Facility]] = {
    EquinixMetal: EquinixMetalFacility,
    Redfish: RedfishFacility,
    Ironic: IronicFacility,
}


def facility(settings: Settings) -> Facility:
    """Where a stack's machines come from."""
    return _FACILITIES[type(settings.platform)](settings, settings.platform)
