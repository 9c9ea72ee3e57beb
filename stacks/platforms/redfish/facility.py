"""What the settings of a rack mean for the program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pulumi

from metal_ipi.components.boot.stream import Artifact, PxeArtifacts
from metal_ipi.components.machines.contract import Platform
from metal_ipi.provider.types import Plan
from metal_ipi.stacks.platforms.contract import FencedBy
from metal_ipi.stacks.platforms.listed.facility import ListedFacility
from metal_ipi.stacks.platforms.redfish.conflicts import conflicts
from metal_ipi.stacks.platforms.redfish.settings import Redfish, ServerBmc
from metal_ipi.stacks.problems import Found
from metal_ipi.stacks.sections.base import REHEARSAL, revealed


class RedfishFacility(ListedFacility[Redfish]):
    """See `Facility`."""

    def conflicts(self) -> Found:
        return conflicts(self._settings, self._section)

    def provider_sections(self, iso: Artifact | None) -> dict[str, dict[str, Any]]:
        section = self._section
        bmcs = {server.name: self._bmc(section.bmc_of(server), iso) for server in section.servers}
        return {"bmcs": bmcs, **self.libvirt()}

    @property
    def bmcs(self) -> tuple[FencedBy, ...]:
        section = self._section
        bmcs = {server.name: section.bmc_of(server) for server in section.servers}
        return tuple(
            FencedBy(
                machine=name,
                address=bmc.address,
                system_id=bmc.system_id,
                username=bmc.username or REHEARSAL,
                password=revealed(bmc.password),
                private_authority=bool(bmc.ca or bmc.fingerprint),
            )
            for name, bmc in bmcs.items()
        )

    def _bmc(self, bmc: ServerBmc, iso: Artifact | None) -> dict[str, Any]:
        section = {
            "address": bmc.address,
            "username": bmc.username or REHEARSAL,
            "password": revealed(bmc.password),
            "ca": bmc.ca,
            "fingerprint": bmc.fingerprint,
            "systemId": bmc.system_id,
            "bootMethod": bmc.boot_method or "pxe",
            "bootMode": bmc.boot_mode,
            "bootImage": bmc.boot_image,
            "bootUrl": bmc.boot_url,
            "liveIso": {"url": iso.url, "sha256": iso.sha256} if iso and bmc.boot_method == "live-iso" else None,
            "secureBoot": "ignore" if self._settings.preflight.lets_pass("secure-boot") else None,
            "cards": "ignore" if self._settings.preflight.lets_pass("cards") else None,
        }
        return {name: value for name, value in section.items() if value is not None}

    def checked(self, plan: Plan, boot: PxeArtifacts) -> Plan:
        servers = (self.planned_server(each).model_copy(update={"bmc": each.name}) for each in self._section.servers)
        return self.planned(plan, boot, servers)

    def _declare(self, after: Sequence[pulumi.Resource], opts: pulumi.ResourceOptions) -> Platform:
        # Only a program needs the component, and it takes long to load.
        from metal_ipi.stacks.platforms.redfish.component import component

        return component(self._settings, self._section, after, opts)
