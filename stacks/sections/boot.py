"""What the machines boot."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import Field, field_validator, model_validator

from stacks.sections.base import Section, wrong

_KERNEL_NAME = re.compile(r"/dev/(sd[a-z]+|vd[a-z]+|hd[a-z]+|nvme\d+n\d+)")


class Boot(Section):
    """What the machines boot, over iPXE."""

    stream_url: str | None = Field(
        default=None, description="an http(s) URL of CoreOS stream metadata (JSON); else streamFile"
    )
    stream_file: str | None = Field(
        default=None,
        description="a file of CoreOS stream metadata, relative to the project;"
        " `openshift-install coreos print-stream-json` prints it",
    )
    architecture: Literal["x86_64", "aarch64"] = Field(default="x86_64", description="x86_64 or aarch64")
    install_device: str | None = Field(
        default=None,
        description="a stable device path (/dev/disk/by-id/..., by-path) to install to;"
        " not set: the live system runs from memory",
    )
    kernel_arguments: tuple[str, ...] = Field(
        default=(), strict=False, description="more kernel arguments, one per item"
    )
    consoles: tuple[str, ...] = Field(
        default=(),
        strict=False,
        description="consoles as the kernel takes them, e.g. ttyS1,115200n8; empty: the platform's own",
    )

    @field_validator("stream_url")
    @classmethod
    def _http(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(r"https?://[^/\s]+/\S+", value):
            raise wrong(
                "it is no http(s) URL", "give the URL of the stream document, e.g. https://host/streams/stable.json"
            )
        return value

    @field_validator("install_device")
    @classmethod
    def _stable(cls, value: str | None) -> str | None:
        if value is None:
            return value
        if _KERNEL_NAME.fullmatch(value):
            raise wrong(
                "kernel names such as /dev/sda change between boots, and the wrong disk would be wiped",
                "give a stable name: a path below /dev/disk/by-id, by-path or by-diskseq",
            )
        if not value.startswith("/dev/disk/by-"):
            raise wrong("it is no stable device path", "give a path below /dev/disk/by-id or /dev/disk/by-path")
        return value

    @field_validator("kernel_arguments", "consoles")
    @classmethod
    def _one_word_each(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for item in value:
            if not item or any(character.isspace() for character in item):
                raise wrong(f"'{item}' is not one argument", "write one argument per list item, without spaces")
        return value

    @model_validator(mode="after")
    def _one_stream(self) -> Boot:
        if self.stream_url is not None and self.stream_file is not None:
            raise wrong("streamUrl and streamFile are both set", "set one of them")
        return self
