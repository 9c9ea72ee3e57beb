"""The live system which installs machines: inputs of several resources."""

from __future__ import annotations

from typing import Annotated

from metal_ipi.provider.forms import NOT_EMPTY, Sha256, Url
from metal_ipi.provider.given import Given, GivenList, ListOf, MapOf, Secret, default
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


class LiveChecksArgs(Inputs):
    """How machines are checked in the live system, before anything is written to their disks."""

    release: str
    """OpenShift's, `4.19.0`: what machines must have depends on it."""
    names: ListOf[str] = default(())
    """Names that must resolve there."""
    registries: ListOf[str] = default(())
    """Registries of images, host and port, that must answer there."""
    authorities: str | None = None
    """Certificates (PEM) of registries' authorities that not every system trusts."""
    overrides: MapOf[str] = default({})
    """Checks whose errors are taken for warnings, each with the reason."""
