"""A node's hardware from Ironic's inspection, or from its properties. Most nodes are not inspected before a claim.

The inventory's fields are those of ironic-python-agent (hardware.py, get_inventory), which Ironic's inspection by
Redfish fills as far as BMCs report them (ironic/drivers/modules/redfish/inspect.py). Neither reports health, TPMs and
Secure Boot, and Ironic does not expose its BMCs' clocks and virtual media.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from metal_ipi.provider.inventory.disks import plain_wwn
from metal_ipi.provider.inventory.facts import Card, Disk, Hardware

_TURNS = {True: "HDD", False: "SSD"}


def hardware(found: Mapping[str, Any], given: Mapping[str, Any]) -> Hardware:
    """The hardware from the inventory; missing values from the node's properties, which anybody may have set."""
    cpu, memory, vendor = _member(found, "cpu"), _member(found, "memory"), _member(found, "system_vendor")
    disks, cards = found.get("disks"), found.get("interfaces")
    return Hardware(
        manufacturer=_text(vendor.get("manufacturer")),
        model=_text(vendor.get("product_name")),
        serial=_text(vendor.get("serial_number")),
        uuid=_text(vendor.get("system_uuid")),
        architecture=_text(cpu.get("architecture") or given.get("cpu_arch")),
        memory_mib=_number(memory.get("physical_mb") or given.get("memory_mb")),
        cpus=_number(cpu.get("count") or given.get("cpus")),
        disks=[_disk(each) for each in disks] if disks else None,
        cards=[_card(each) for each in cards if each.get("mac_address")] if cards else None,
        boot_mode=_text(_member(found, "boot").get("current_boot_mode")),
    )


def _disk(disk: Mapping[str, Any]) -> Disk:
    return Disk(
        name=str(disk.get("name")),
        size_bytes=_number(disk.get("size")),
        model=_text(disk.get("model")),
        serial=_text(disk.get("serial")),
        vendor=_text(disk.get("vendor")),
        media_type=_TURNS.get(disk["rotational"]) if isinstance(disk.get("rotational"), bool) else None,
        wwns=[plain_wwn(str(disk["wwn"]))] if disk.get("wwn") else [],
    )


def _card(card: Mapping[str, Any]) -> Card:
    carrier = card.get("has_carrier")
    return Card(mac=str(card["mac_address"]).lower(), link={True: "up", False: "down"}.get(carrier))  # pyright: ignore[reportArgumentType]


def _member(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = document.get(name)
    return found if isinstance(found, dict) else {}


def _text(value: object) -> str | None:
    return value.strip() or None if isinstance(value, str) else None


def _number(value: object) -> int | None:
    """Properties set by people may have any value."""
    return int(str(value)) if str(value).isdecimal() and int(str(value)) else None
