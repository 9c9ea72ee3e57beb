"""Kernel arguments and the iPXE script that boots CoreOS from the network.

Sources: fedora-coreos-docs live-booting-ipxe; coreos/coreos-installer scripts/coreos-installer-service (which
`coreos.inst.*` arguments there are); coreos/fedora-coreos-config platforms.yaml (consoles of platform `packet`).
"""

from __future__ import annotations

from dataclasses import dataclass

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
    install_device: str | None = None
    """A stable device path to install to; None runs the live system from memory."""
    consoles: tuple[str, ...] = ()
    """Consoles as the kernel takes them; empty: the platform's own."""
    extra: tuple[str, ...] = ()
    """Further kernel arguments."""

    @property
    def always_pxe(self) -> bool:
        """A machine without a disk must find the network at every boot; an installed one must not loop into it."""
        return self.install_device is None


def consoles(spec: BootSpec) -> tuple[str, ...]:
    """The consoles the machine gets: those asked for, else the platform's own."""
    if spec.consoles:
        return spec.consoles
    return _PACKET_CONSOLES[spec.architecture] if spec.platform_id == "packet" else ()


def kernel_arguments(spec: BootSpec) -> tuple[str, ...]:
    """All kernel arguments, in order.

    `initrd=main` is needed by UEFI firmware, which panics without it (poseidon/typhoon#1191). Ignition's own arguments
    configure the live system only; an installed one takes its platform id from the installer and its Ignition
    from the platform's userdata.
    """
    arguments = ["initrd=main", f"coreos.live.rootfs_url={spec.artifacts.rootfs.url}"]
    if spec.install_device is None:
        arguments += ["ignition.firstboot", f"ignition.platform.id={spec.platform_id}"]
    else:
        arguments += [f"coreos.inst.install_dev={spec.install_device}", f"coreos.inst.platform_id={spec.platform_id}"]
    arguments += [f"console={console}" for console in consoles(spec)]
    return (*arguments, *spec.extra)


def script(spec: BootSpec) -> str:
    """The iPXE script of a machine."""
    return (
        "#!ipxe\n"
        f"# {spec.artifacts.release}, platform {spec.platform_id}\n"
        f"kernel {spec.artifacts.kernel.url} {' '.join(kernel_arguments(spec))}\n"
        f"initrd --name main {spec.artifacts.initramfs.url}\n"
        "boot\n"
    )
