"""What a server boots, and where its firmware or its BMC finds it: in the boot tree, or on a disc of its own."""

from __future__ import annotations

from collections.abc import Callable

from metal_ipi.provider import boot_tree
from metal_ipi.provider.bmc_settings import LIVE_ISO, BmcSettings
from metal_ipi.provider.configuration import Settings
from metal_ipi.provider.errors import InvalidInputs
from metal_ipi.provider.live_iso import disc, place
from metal_ipi.provider.platforms.ids import MachineId
from metal_ipi.provider.status import Say, silent

_ATTACHED = "virtual-media"
BY_DISC = (_ATTACHED, LIVE_ISO)
"""Boot methods with an image that the BMC attaches."""


async def publish(settings: Settings, server: str, mac: str, *, script: str, chain: str, say: Say = silent) -> None:
    """Publish a server's boot script for iPXE, or the disc made from it."""
    bmc = settings.need_bmc(server)
    if bmc.boot_method != LIVE_ISO:
        await boot_tree.publish(settings, mac, script, chain)
        return
    if bmc.live_iso is None:
        raise InvalidInputs(f"server {server} boots the live ISO, but `bmcs` does not name it: set `liveIso`")
    await disc.publish(settings, bmc.live_iso, mac, script, say)


async def given_back(machine: MachineId, settings: Settings) -> bool:
    """Whether a server was lent, and was given back: what is published for it does not come from the script it was lent
    for."""
    if machine.mac is None or machine.script is None or settings.artifacts is None:
        return False
    return not await disc.is_published(settings, machine.mac, machine.script)


async def image(settings: Settings, bmc: BmcSettings, mac: str) -> str | None:
    """The URL of the image that the BMC must attach; None if it attaches none."""
    if bmc.boot_method == _ATTACHED:
        return bmc.boot_image
    if bmc.boot_method != LIVE_ISO:
        return None
    return await place.url_now(settings, mac)


def is_image(settings: Settings, bmc: BmcSettings) -> Callable[[str], bool]:
    """A function that tells whether a URL is that of an image of ours, for any machine."""
    if bmc.boot_method == LIVE_ISO:
        return lambda url: place.is_url(settings, url)
    return lambda url: url == bmc.boot_image
