"""The live system which installs machines: inputs of several resources."""

from __future__ import annotations

from typing import Annotated

from metal_ipi.provider.forms import NOT_EMPTY, Sha256, Url
from metal_ipi.provider.given import Given, GivenList, Secret
from metal_ipi.provider.inputs import Inputs


class LiveFileArgs(Inputs):
    """A file of the live system which installs, as a running node fetches it."""

    url: Given[Url]
    """Where it is."""
    sha256: Given[Sha256]
    """Its digest in hex."""


class LiveSystemArgs(Inputs):
    """The live system which installs, for a running node that is to go over to it by kexec."""

    kernel: LiveFileArgs
    """Its kernel."""
    initramfs: LiveFileArgs
    """Its initramfs."""
    arguments: Annotated[GivenList[Secret[str]], NOT_EMPTY]
    """Its kernel command line. Secret: it may name where its Ignition lies."""
    config: Secret[LiveFileArgs] | None = None
    """The archive with its Ignition, which is unpacked after the initramfs; None: `arguments` name one. Secret."""
