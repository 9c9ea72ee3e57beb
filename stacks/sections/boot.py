"""What the machines boot."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import Field, field_validator, model_validator

from metal_ipi.components.boot.installer import takes_console
from metal_ipi.stacks.sections.base import Section, Words, wrong
from metal_ipi.stacks.sections.devices import InstallToDisk
from metal_ipi.stacks.sections.forms import PathHere
from metal_ipi.stacks.sections.kernel_arguments import KernelArguments


class Boot(Section):
    """What the machines boot, over iPXE."""

    stream_url: str | None = Field(
        default=None, description="an http(s) URL of CoreOS stream metadata (JSON); else streamFile"
    )
    stream_file: PathHere | None = Field(
        default=None,
        description="a file of CoreOS stream metadata, relative to the project;"
        " `openshift-install coreos print-stream-json` prints it",
    )
    architecture: Literal["x86_64", "aarch64"] = Field(default="x86_64", description="x86_64 or aarch64")
    install: InstallToDisk | None = Field(
        default=None, description="the installation to disk; required unless diskless is true"
    )
    diskless: bool = Field(
        default=False,
        description=(
            "true: machines run from memory and need no disk; only without install, and only with the lab's "
            "stand-in for OpenShift: real nodes need a disk"
        ),
    )
    kernel_arguments: KernelArguments = Field(default=(), description="more kernel arguments, one per item")
    consoles: Words = Field(
        default=(),
        description="consoles in the kernel's format, e.g. ttyS1,115200n8; empty: the platform's default",
    )

    @field_validator("stream_url")
    @classmethod
    def _http(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(r"https?://[^/\s]+/\S+", value):
            raise wrong(
                "it is not an http(s) URL", "give the URL of the stream document, e.g. https://host/streams/stable.json"
            )
        return value

    @model_validator(mode="after")
    def _consoles_that_can_be_installed(self) -> Boot:
        for console in self.consoles if self.install else ():
            if not takes_console(console):
                raise wrong(
                    f"coreos-installer does not know the console '{console}'",
                    "write ttyS<n>, ttyAMA<n> (with speed, parity and bits: ttyS1,115200n8), tty0, hvc0 or ttysclp0;"
                    " set any other in boot.kernelArguments, as console=<name>",
                    at="consoles",
                )
        return self

    @model_validator(mode="after")
    def _one_stream(self) -> Boot:
        if self.stream_url is not None and self.stream_file is not None:
            raise wrong("streamUrl and streamFile are both set", "set one of them")
        return self
