"""The live system that installs machines: inputs of several resources."""

from __future__ import annotations

from typing import Annotated

from metal_ipi.provider.forms import NOT_EMPTY, Sha256, Url
from metal_ipi.provider.given import Given, GivenList, ListOf, MapOf, Secret, default
from metal_ipi.provider.inputs import Inputs


class LiveFileArgs(Inputs):
    """A file of the live system, which a running node downloads."""

    url: Given[Url]
    """URL of the file."""
    sha256: Given[Sha256]
    """Its SHA-256 in hexadecimal digits."""


class OwnLiveSystemArgs(Inputs):
    """The live system which installs a machine; its kernel and initramfs may be in the pool's `InstallationPool`."""

    kernel: LiveFileArgs | None = None
    """Its kernel."""
    initramfs: LiveFileArgs | None = None
    """Its initramfs."""
    arguments: Annotated[GivenList[Secret[str]], NOT_EMPTY]
    """Its kernel command line. Secret: it may contain the URL of its Ignition."""
    config: Secret[LiveFileArgs] | None = None
    """The archive with its Ignition, which is unpacked after the initramfs; None: `arguments` contain its URL.
    Secret."""


class LiveSystemArgs(OwnLiveSystemArgs):
    """The live system which installs, for a running node that is to go over to it by kexec."""

    # Narrower, and never written to.
    kernel: LiveFileArgs  # pyright: ignore[reportGeneralTypeIssues, reportIncompatibleVariableOverride]
    """Its kernel."""
    initramfs: LiveFileArgs  # pyright: ignore[reportGeneralTypeIssues, reportIncompatibleVariableOverride]
    """Its initramfs."""


class LiveChecksArgs(Inputs):
    """How machines are checked in the live system, before anything is written to their disks."""

    release: str
    """The OpenShift release, `4.19.0`: the requirements depend on it."""
    names: ListOf[str] = default(())
    """DNS names that must resolve on the machine."""
    registries: ListOf[str] = default(())
    """Image registries, host and port, that must answer the machine."""
    authorities: str | None = None
    """Certificates (PEM) of registries' authorities that are not in every system's trust store."""
    overrides: MapOf[str] = default({})
    """Check name to reason: its errors become warnings."""
