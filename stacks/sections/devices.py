"""Rules for the disk to which a machine is installed: Metal3's root device hints, names by id, the smallest."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from metal_ipi.stacks.sections.base import Section, matching, wrong

_LARGEST = 10_000_000
"""The largest size in GiB; ten thousand times a large disk of today."""
_KERNEL_NAME = re.compile(r"/dev/(sd[a-z]+|vd[a-z]+|hd[a-z]+|nvme\d+n\d+)")


def _stable(value: str) -> str:
    if _KERNEL_NAME.fullmatch(value):
        raise wrong(
            "kernel names such as /dev/sda change between boots, and the wrong disk would be wiped",
            "give a stable name: a path below /dev/disk/by-id or /dev/disk/by-path",
        )
    if not re.fullmatch(r"/dev/disk/by-(id|path)/[^\s/]+", value):
        raise wrong("it is not a stable device path", "give a path below /dev/disk/by-id or /dev/disk/by-path")
    return value


def _text(value: str) -> str:
    if value != value.strip() or not value or not value.isprintable():
        raise wrong("it is empty, or has spaces at an end", "copy it from `lsblk -o NAME,VENDOR,MODEL,SERIAL`")
    return value


StableDevice = Annotated[str, AfterValidator(_stable)]
"""The path of a disk that is the same at every boot."""
_Text = Annotated[str, AfterValidator(_text)]
_ById = Annotated[
    str,
    matching(
        r"[^\s/]+", "it is not a name below /dev/disk/by-id", "give the name alone, as `ls /dev/disk/by-id` shows it"
    ),
]
_Wwn = Annotated[
    str,
    matching(
        r"(0x[0-9a-f]+|eui\.[0-9a-f]+|uuid\.[-0-9a-f]+|nvme\.[-0-9a-f]+)",
        "it is not a World Wide Name",
        "copy it from `lsblk -o NAME,WWN`, e.g. 0x5000c500a1b2c3d4",
    ),
]
_Hctl = Annotated[
    str,
    matching(r"\d+(:\d+){3}", "it is not a SCSI address", "give host:channel:target:lun, as `lsblk -o HCTL` shows it"),
]


class DeviceRule(Section):
    """Conditions for a disk; it must meet all that are set. Exactly one disk must match, or nothing is written.

    Source: metal3-io/baremetal-operator, docs of RootDeviceHints; lsblk(8) shows every value.
    """

    device_name: StableDevice | None = Field(
        default=None, description="a stable path: /dev/disk/by-id/..., /dev/disk/by-path/..."
    )
    by_id: _ById | None = Field(
        default=None, description="a name below /dev/disk/by-id, e.g. nvme-eui.0025388b71b1c2d3"
    )
    serial: _Text | None = Field(default=None, description="the serial number, as `lsblk -o SERIAL` shows it")
    wwn: _Wwn | None = Field(default=None, description="the World Wide Name without extension, e.g. 0x5000c500a1b2c3d4")
    wwn_with_extension: _Wwn | None = Field(default=None, description="the World Wide Name with the vendor's extension")
    wwn_vendor_extension: _Wwn | None = Field(default=None, description="the vendor's extension of the World Wide Name")
    model: _Text | None = Field(default=None, description="a part of the model's name")
    vendor: _Text | None = Field(default=None, description="a part of the vendor's name")
    hctl: _Hctl | None = Field(default=None, description="the SCSI address host:channel:target:lun, e.g. 0:0:0:0")
    min_size: int | None = Field(default=None, ge=1, le=_LARGEST, description="the least size, GiB")
    max_size: int | None = Field(default=None, ge=1, le=_LARGEST, description="the greatest size, GiB")
    rotational: bool | None = Field(default=None, description="true: a disk that turns; false: flash")
    smallest: Literal[True] | None = Field(
        default=None, description="true: of the disks that meet all other rules, the smallest"
    )

    @model_validator(mode="after")
    def _some_rule(self) -> DeviceRule:
        if not self.rules:
            raise wrong("it has no rule, and every disk would match", "give at least one rule, e.g. smallest: true")
        if self.min_size is not None and self.max_size is not None and self.min_size > self.max_size:
            raise wrong(
                f"it is less than minSize ({self.min_size}), so no disk can match", "correct one of them", at="maxSize"
            )
        return self

    @property
    def rules(self) -> dict[str, str | int | bool]:
        """The conditions that are set, by their names in the configuration."""
        return self.model_dump(by_alias=True, exclude_none=True)


class InstallToDisk(Section):
    """How machines are installed to disk."""

    device: DeviceRule = Field(description="the rule for the disk to install to; a disk must match")
    wipe_disks: tuple[DeviceRule, ...] = Field(
        default=(),
        strict=False,
        description="rules for other disks to empty; disks that match no rule are never written",
    )
    image: Literal["live", "stream"] = Field(
        default="live",
        description=(
            "the source of the disk image: live: the live system contains it; stream: the URL in the stream metadata"
        ),
    )
    valid_hours: int = Field(
        default=24,
        ge=1,
        le=720,
        description="how many hours after its publication, or its start by kexec, an installer refuses to work",
    )
