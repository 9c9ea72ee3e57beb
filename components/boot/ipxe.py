"""Kernel arguments and iPXE scripts that boot CoreOS from the network, to run from memory or to install itself.

A live system that installs finds its Ignition in a second archive after the initramfs (`components.boot.initrd`). With
`ignition.config.url` instead, Ignition would know neither the hash of the config nor the boot server's own authority.

Sources: fedora-coreos-docs live-booting-ipxe; coreos/fedora-coreos-config platforms.yaml (consoles of platform
`packet`). Arguments `coreos.inst.*` are not used: they need a device by name, and ours is chosen by conditions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from metal_ipi.components.boot.initrd import NAME
from metal_ipi.components.boot.network import StaticNetwork
from metal_ipi.components.boot.stream import PxeArtifacts

_PACKET_CONSOLES = {"x86_64": ("ttyS1,115200n8",), "aarch64": ("ttyAMA0,115200",)}


@dataclass(frozen=True, kw_only=True)
class BootSpec:
    """What a machine boots, on any platform."""

    artifacts: PxeArtifacts
    """Kernel, initramfs and rootfs of one release."""
    architecture: str
    """`x86_64` or `aarch64`."""
    platform_id: str
    """Ignition's platform id, e.g. `packet`. It decides where Ignition and Afterburn find their data."""
    installs: bool = False
    """Whether the machine is installed to disk. If not, it runs from memory."""
    consoles: tuple[str, ...] = ()
    """Consoles in the kernel's syntax. Empty: the platform's own."""
    extra: tuple[str, ...] = ()
    """Further kernel arguments."""


def consoles(spec: BootSpec) -> tuple[str, ...]:
    """The machine's consoles: those of the settings, or the platform's own."""
    if spec.consoles:
        return spec.consoles
    return _PACKET_CONSOLES[spec.architecture] if spec.platform_id == "packet" else ()


def kernel_arguments(spec: BootSpec) -> tuple[str, ...]:
    """All kernel arguments of a live system that runs from memory, in order."""
    return _arguments(spec, spec.platform_id)


def installer_arguments(spec: BootSpec, *, network: StaticNetwork | None = None) -> tuple[str, ...]:
    """All kernel arguments of a live system whose Ignition is in an archive of its own, in order.

    `network` is the machine's network if it has no DHCP. The platform id is always `metal`, because there is no
    userdata.
    """
    return _arguments(spec, "metal", *(network.arguments if network is not None else ()), archives=("main", NAME))


def script(spec: BootSpec) -> str:
    """The iPXE script of a live system that runs from memory and gets userdata from its platform."""
    return _script(spec, kernel_arguments(spec), {"main": spec.artifacts.initramfs.url})


def installer_script(spec: BootSpec, arguments: Sequence[str], config_url: str) -> str:
    """The iPXE script of a live system with these kernel arguments; `config_url` is the archive with its Ignition."""
    return _script(spec, arguments, {"main": spec.artifacts.initramfs.url, NAME: config_url})


def _script(spec: BootSpec, arguments: Sequence[str], archives: Mapping[str, str]) -> str:
    return (
        "#!ipxe\n"
        f"# {spec.artifacts.release}, platform {spec.platform_id}\n"
        f"kernel {spec.artifacts.kernel.url} {' '.join(arguments)}\n"
        + "".join(f"initrd --name {name} {url}\n" for name, url in archives.items())
        + "boot\n"
    )


def _arguments(spec: BootSpec, platform_id: str, *further: str, archives: Sequence[str] = ("main",)) -> tuple[str, ...]:
    """All kernel arguments. UEFI firmware loads only the archives that `initrd=` names, in that order; without any the
    kernel panics (poseidon/typhoon#1191)."""
    return (
        *(f"initrd={name}" for name in archives),
        f"coreos.live.rootfs_url={spec.artifacts.rootfs.url}",
        "ignition.firstboot",
        f"ignition.platform.id={platform_id}",
        *further,
        *(f"console={console}" for console in consoles(spec)),
        *spec.extra,
    )
