"""Kernel arguments and the iPXE scripts that boot CoreOS from the network: to stay in memory, or to install itself.

Sources: fedora-coreos-docs live-booting-ipxe; coreos/fedora-coreos-config platforms.yaml (consoles of platform
`packet`). Arguments `coreos.inst.*` are not used: they want a device by name, and ours is chosen by rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from components.boot.network import StaticNetwork
from components.boot.stream import PxeArtifacts

_PACKET_CONSOLES = {"x86_64": ("ttyS1,115200n8",), "aarch64": ("ttyAMA0,115200",)}


@dataclass(frozen=True, kw_only=True)
class BootSpec:
    """What a machine boots, on any platform."""

    artifacts: PxeArtifacts
    """Kernel, initramfs and rootfs of one release."""
    architecture: str
    """`x86_64` or `aarch64`."""
    platform_id: str
    """Ignition's platform id, e.g. `packet`: where Ignition and Afterburn find their data."""
    installs: bool = False
    """Whether what boots is installed to disk; else it runs from memory."""
    consoles: tuple[str, ...] = ()
    """Consoles as the kernel takes them; empty: the platform's own."""
    extra: tuple[str, ...] = ()
    """Further kernel arguments."""


def consoles(spec: BootSpec) -> tuple[str, ...]:
    """The consoles the machine gets: those asked for, else the platform's own."""
    if spec.consoles:
        return spec.consoles
    return _PACKET_CONSOLES[spec.architecture] if spec.platform_id == "packet" else ()


def kernel_arguments(spec: BootSpec) -> tuple[str, ...]:
    """All kernel arguments of the live system that stays, in order."""
    return _arguments(spec, spec.platform_id)


def installer_arguments(spec: BootSpec, *, config_url: str, network: StaticNetwork | None = None) -> tuple[str, ...]:
    """All kernel arguments of the live system that installs, in order.

    Args:
        config_url: where its Ignition is (`installer.live_config`).
        network: the machine's network where there is no DHCP.
    Its platform id is always `metal`: it has no userdata, only what `config_url` gives.
    """
    return _arguments(
        spec, "metal", f"ignition.config.url={config_url}", *(network.arguments if network is not None else ())
    )


def script(spec: BootSpec, arguments: Sequence[str] | None = None) -> str:
    """The iPXE script of a machine; `arguments` are those of the live system that stays, or the given ones."""
    return (
        "#!ipxe\n"
        f"# {spec.artifacts.release}, platform {spec.platform_id}\n"
        f"kernel {spec.artifacts.kernel.url} {' '.join(kernel_arguments(spec) if arguments is None else arguments)}\n"
        f"initrd --name main {spec.artifacts.initramfs.url}\n"
        "boot\n"
    )


def _arguments(spec: BootSpec, platform_id: str, *further: str) -> tuple[str, ...]:
    """`initrd=main` is needed by UEFI firmware, which panics without it (poseidon/typhoon#1191)."""
    return (
        "initrd=main",
        f"coreos.live.rootfs_url={spec.artifacts.rootfs.url}",
        "ignition.firstboot",
        f"ignition.platform.id={platform_id}",
        *further,
        *(f"console={console}" for console in consoles(spec)),
        *spec.extra,
    )
