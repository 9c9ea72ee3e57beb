"""Settings that contradict each other for servers with BMCs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from metal_ipi.stacks.platforms.listed import conflicts as listed
from metal_ipi.stacks.platforms.redfish.settings import Redfish
from metal_ipi.stacks.problems import Found

if TYPE_CHECKING:
    from metal_ipi.stacks.model import Settings


def conflicts(settings: Settings, platform: Redfish) -> Found:
    """All conflicts of servers with a BMC."""
    yield from listed.conflicts(settings, platform)
    yield from _boot_methods(platform)
    yield from listed.live_iso(settings, platform, by=" (bootMethod live-iso)", otherwise=", or another bootMethod")


def _boot_methods(platform: Redfish) -> Found:
    for index, server in enumerate(platform.servers):
        bmc, path = platform.bmc_of(server), f"platform.servers[{index}].bmc"
        if bmc.boot_method == "virtual-media" and bmc.boot_image is None:
            yield (
                f"{path}.bootImage",
                "(not set)",
                "with bootMethod virtual-media the BMC attaches an image, and none is set",
                "set platform.bmc.bootImage to the URL of an iPXE image (ISO)",
            )
        if bmc.boot_method == "uefi-http" and bmc.boot_mode == "bios":
            yield (
                f"{path}.bootMethod",
                bmc.boot_method,
                "only UEFI firmware boots over HTTP, and bootMode is bios",
                "set bootMode to uefi, or bootMethod to pxe or virtual-media",
            )
