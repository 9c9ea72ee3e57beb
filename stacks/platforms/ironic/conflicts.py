"""What cannot go together in the settings of servers that are had from Ironic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from metal_ipi.provider.types import WIPING_STEPS
from metal_ipi.stacks.platforms.ironic.settings import Ironic
from metal_ipi.stacks.platforms.listed import conflicts as listed
from metal_ipi.stacks.problems import Found

if TYPE_CHECKING:
    from metal_ipi.stacks.model import Settings


def conflicts(settings: Settings, platform: Ironic) -> Found:
    """What cannot go together there."""
    yield from listed.conflicts(settings, platform)
    yield from listed.live_iso(settings, platform)
    for index, server in enumerate(platform.servers):
        wiping = [each for each in platform.clean_steps_of(server) if each.interface in WIPING_STEPS]
        if wiping and server.consent != "wipe":
            yield (
                f"platform.servers[{index}].cleanSteps",
                f"{wiping[0].interface}.{wiping[0].step}",
                f"it takes what is on the disks of {server.name}",
                "set consent: wipe of this server, or remove the step",
            )
