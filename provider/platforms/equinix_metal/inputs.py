"""What is ordered of Equinix Metal."""

from __future__ import annotations

from dataclasses import dataclass

from provider.fields import SHORT_NAME, URL, Reader
from provider.platforms.contract import MachineSpec, identifying


@dataclass(frozen=True, kw_only=True)
class MetalSpec(MachineSpec):
    """A machine to order."""

    project_id: str
    plan: str
    metro: str | None
    facilities: tuple[str, ...]
    operating_system: str
    ipxe_script_url: str | None
    always_pxe: bool
    user_data: str | None
    tags: tuple[str, ...]
    project_ssh_key_ids: tuple[str, ...]
    hardware_reservation_id: str | None = None
    termination_time: str | None = None
    custom_data: str | None = None
    public_subnet: int | None = None
    """The prefix length of its public IPv4 subnet; None: what Metal gives."""


KEYS = ("hostname", "bgp", "projectId", "plan", "metro", "facilities", "operatingSystem", "ipxeScriptUrl",
        "alwaysPxe", "userData", "tags", "projectSshKeyIds", "hardwareReservationId", "terminationTime", "customData",
        "publicSubnet")  # fmt: skip


def read(reader: Reader) -> MetalSpec:
    """Reads the inputs that are Metal's."""
    inputs = reader.values
    reader.boolean("bgp")
    spec = MetalSpec(
        project_id=reader.text("projectId"),
        hostname=reader.text("hostname", pattern=SHORT_NAME, what="a host name"),
        plan=reader.text("plan"),
        metro=reader.optional_text("metro"),
        facilities=reader.texts("facilities", required=False),
        operating_system=reader.text("operatingSystem", default="custom_ipxe"),
        ipxe_script_url=reader.optional_text("ipxeScriptUrl", pattern=URL, what="a URL"),
        always_pxe=reader.boolean("alwaysPxe"),
        user_data=reader.optional_text("userData"),
        tags=reader.texts("tags"),
        project_ssh_key_ids=reader.texts("projectSshKeyIds", required=False),
        hardware_reservation_id=reader.optional_text("hardwareReservationId"),
        termination_time=reader.optional_text("terminationTime"),
        custom_data=reader.optional_text("customData"),
        public_subnet=_subnet(reader),
    )
    places = [key for key in ("metro", "facilities") if inputs.get(key) is not None]
    if len(places) != 1:
        reader.fail("metro", "or `facilities` must be given, and not both")
    tags = inputs.get("tags")
    if isinstance(tags, list) and all(isinstance(tag, str) for tag in tags) and len(identifying(spec.tags)) != 4:
        reader.fail(
            "tags",
            "must hold metal-ipi:stack=…, metal-ipi:cluster=…, metal-ipi:run=… and metal-ipi:name=…: it is found by "
            "them after a crash",
        )
    return spec


def _subnet(reader: Reader) -> int | None:
    if reader.values.get("publicSubnet") is None:
        return None
    return int(reader.number("publicSubnet", minimum=28, maximum=31))
