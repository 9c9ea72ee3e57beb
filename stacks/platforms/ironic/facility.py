"""What the settings of servers from Ironic mean for the program."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pulumi

from metal_ipi.components.boot.stream import Artifact, PxeArtifacts
from metal_ipi.components.machines.contract import Platform
from metal_ipi.provider.types import Plan
from metal_ipi.stacks.platforms.ironic.conflicts import conflicts
from metal_ipi.stacks.platforms.ironic.settings import CleanStep, DeployStep, Ironic, Server
from metal_ipi.stacks.platforms.listed.facility import ListedFacility
from metal_ipi.stacks.problems import Found
from metal_ipi.stacks.sections.base import REHEARSAL, revealed


class IronicFacility(ListedFacility[Ironic]):
    """See `Facility`."""

    def conflicts(self) -> Found:
        return conflicts(self._settings, self._section)

    bmcs = "Ironic controls the BMCs: it would power on again a server that nodes switch off without Ironic"

    def provider_sections(self, iso: Artifact | None) -> dict[str, dict[str, Any]]:
        section, api = self._section, self._section.api
        ironic = {
            "endpoint": api.endpoint,
            "username": api.username or REHEARSAL,
            "password": revealed(api.password),
            "ca": api.ca,
            "claimant": self._settings.domain,
            "liveIso": {"url": iso.url, "sha256": iso.sha256} if iso and section.live_iso_machines else None,
            "release": section.release,
            "servers": {server.name: self._server(server) for server in section.servers},
        }
        return {"ironic": _given(ironic), **self.libvirt()}

    def _server(self, server: Server) -> dict[str, Any]:
        bmc = self._section.bmc_of(server)
        own = {
            "driver": server.driver,
            "node": server.node,
            "resourceClass": server.resource_class,
            "traits": list(server.traits) or None,
            "conductorGroup": server.conductor_group,
            "bootMode": server.boot_mode or self._section.boot_mode,
            "cleanSteps": _steps(self._section.clean_steps_of(server)),
            "deploySteps": _steps(self._section.deploy_steps_of(server)),
            "boot": server.boot,
            "mac": server.mac if server.by_network else None,
        }
        if bmc is not None:
            own |= {
                "address": bmc.address,
                "username": bmc.username or REHEARSAL,
                "password": revealed(bmc.password),
            }
            if server.driver != "ipmi":
                own |= {"systemId": bmc.system_id, "verifyCa": bmc.verify_ca}
        return _given(own)

    def checked(self, plan: Plan, boot: PxeArtifacts) -> Plan:
        servers = (self.planned_server(each).model_copy(update={"ironic": each.name}) for each in self._section.servers)
        return self.planned(plan, boot, servers)

    def _declare(self, after: Sequence[pulumi.Resource], opts: pulumi.ResourceOptions) -> Platform:
        # Only a program needs the component, and it takes long to load.
        from metal_ipi.stacks.platforms.ironic.component import component

        return component(self._settings, self._section, after, opts)


def _steps(steps: Sequence[CleanStep | DeployStep]) -> list[dict[str, str]] | None:
    return [
        {"interface": each.interface, "step": each.step, "args": json.dumps(each.args, sort_keys=True)}
        for each in steps
    ] or None


def _given(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
