"""Settings that contradict each other for servers from Ironic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from metal_ipi.provider.types import STEPS_NOT_OF_IPMI, WIPING_STEPS
from metal_ipi.stacks.platforms.ironic.settings import Ironic
from metal_ipi.stacks.platforms.listed import conflicts as listed
from metal_ipi.stacks.problems import Found
from metal_ipi.stacks.sections.artifacts import SshArtifacts
from metal_ipi.stacks.sections.base import revealed

if TYPE_CHECKING:
    from metal_ipi.stacks.model import Settings

_IPMI_BYTES = {"username": 16, "password": 20}
"""IPMI 2.0, 13.20 and 22.30; ipmitool refuses longer values."""


def conflicts(settings: Settings, platform: Ironic) -> Found:
    """All conflicts of servers from Ironic."""
    yield from listed.conflicts(settings, platform)
    yield from listed.live_iso(settings, platform)
    yield from _ipmi(settings, platform)
    for index, server in enumerate(platform.servers):
        path = f"platform.servers[{index}]"
        of = {"cleanSteps": platform.clean_steps_of(server), "deploySteps": platform.deploy_steps_of(server)}
        for key, steps in of.items():
            wiping = [each for each in steps if each.interface in WIPING_STEPS]
            if wiping and server.consent != "wipe":
                yield (
                    f"{path}.{key}",
                    f"{wiping[0].interface}.{wiping[0].step}",
                    f"it destroys the data on the disks of {server.name}",
                    "set consent: wipe for this server, or remove the step",
                )
        given = [f"{each.interface}.{each.step}" for each in of["deploySteps"]]
        if given and server.driver == "ipmi":
            yield (
                f"{path}.deploySteps",
                given[0],
                f"the driver ipmi of {server.name} has no such step",
                "remove the step, or use the driver redfish or idrac",
            )
        if twice := next((each for each in given if given.count(each) > 1), None):
            yield f"{path}.deploySteps", twice, "Ironic runs each step only once", "combine them into one step"


def _ipmi(settings: Settings, platform: Ironic) -> Found:
    """Limits of IPMI, and of servers that boot from the network through Ironic."""
    for index, server in enumerate(platform.servers):
        if not server.by_network:
            continue
        path, bmc = f"platform.servers[{index}]", platform.bmc_of(server)
        if isinstance(settings.artifacts, SshArtifacts) and settings.artifacts.matchbox is not None:
            yield (
                f"{path}.{'boot' if server.driver is None else 'driver'}",
                server.boot or "ipmi",
                "with artifacts.matchbox boot scripts are served by matchbox, and Ironic's boot files do not lead "
                "there",
                "remove artifacts.matchbox, or use a server that boots a disc",
            )
        if bmc is None or server.bmc is None:
            continue
        given = {"username": bmc.username or "", "password": revealed(bmc.password) if bmc.password else ""}
        for key, most in _IPMI_BYTES.items():
            if len(given[key].encode()) > most:
                own = f"{path}.bmc" if getattr(server.bmc, key) is not None else "platform.bmc"
                yield (
                    f"{own}.{key}",
                    f"({len(given[key].encode())} bytes)",
                    f"the driver ipmi of {server.name}: IPMI 2.0 allows at most {most} bytes",
                    "give the BMC an account that fits",
                )
        for step in platform.clean_steps_of(server):
            if step.interface in STEPS_NOT_OF_IPMI:
                yield (
                    f"{path}.cleanSteps",
                    f"{step.interface}.{step.step}",
                    f"the driver ipmi of {server.name} has no such interface",
                    "remove the step, or use the driver redfish or idrac",
                )
