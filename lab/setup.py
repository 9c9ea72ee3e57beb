"""Set-up of the lab: installs packages, builds programs, and finds out which kind of machines can run here.

Nothing is asked. What will be installed on the system is announced first, and only what is missing is installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from binaries.errors import ProgramMissing
from lab.errors import SetupFailed
from lab.hub.programs import refusal
from lab.mirror import images, registry
from lab.network import proxy
from lab.network.dns import knot
from lab.openshift import kinds

Report = Callable[[str], None]

_SYSTEMD = Path("/run/systemd/system")
"""There where systemd is the first process."""


@dataclass(frozen=True)
class Package:
    """A Debian package, and the file that shows that it is there (another one may have brought it)."""

    name: str
    file: str
    service: str = ""
    """What the package starts on the system as soon as it is installed; the lab starts its own instead."""


NETWORK = (
    Package("util-linux", "/usr/bin/unshare"),
    Package("iproute2", "/sbin/ip"),
    Package("knot", "/usr/sbin/knotd", "knot.service"),
    Package("bird2", "/usr/sbin/bird", "bird.service"),
    Package("jq", "/usr/bin/jq"),
)
"""What every lab uses. Without BIRD nothing speaks BGP, without jq simulated machines cannot be installed to disk;
without the others there is no lab."""

MACHINES = (
    Package("qemu-system-x86", "/usr/bin/qemu-system-x86_64"),
    Package("ipxe-qemu", "/usr/lib/ipxe/qemu/pxe-virtio.rom"),
    Package("ovmf", "/usr/share/OVMF/OVMF_CODE_4M.fd"),
    Package("libvirt-daemon", "/usr/sbin/libvirtd"),
    Package("libvirt-daemon-driver-qemu", "/usr/lib/x86_64-linux-gnu/libvirt/connection-driver/libvirt_driver_qemu.so"),
    Package("libvirt-clients", "/usr/bin/virsh"),
    Package("dnsmasq-base", "/usr/sbin/dnsmasq"),
)
"""What libvirt machines use on top."""

NFTABLES = Package("nftables", "/usr/sbin/nft")
MIRROR = Package("docker-registry", str(registry.PROGRAM), "docker-registry.service")
"""What a lab that is disconnected uses on top."""
HUB = (
    Package("containerd", "/usr/bin/containerd", "containerd.service"),
    Package("runc", "/usr/sbin/runc"),
    Package("containernetworking-plugins", "/usr/lib/cni/bridge"),
    MIRROR,
    NFTABLES,
)
"""What a hub uses on top."""

PROXY = Package("tinyproxy-bin", str(proxy.PROGRAM))
"""What a lab with a forward proxy uses on top."""

CARGO = (
    Package("gcc", "/usr/bin/cc"),
    Package("libc6-dev", "/usr/include/stdio.h"),
    Package("pkg-config", "/usr/bin/pkg-config"),
    Package("libssl-dev", "/usr/include/openssl/ssl.h"),
    Package("libzstd-dev", "/usr/include/zstd.h"),
    Package("liblzma-dev", "/usr/include/lzma.h"),
)
"""What cargo needs on top, to build Afterburn and coreos-installer once."""


def run(
    machines: str,
    report: Report,
    *,
    kube_vip: bool = False,
    metallb: bool = False,
    day_two: bool = False,
    openshift: str = "stand-in",
    real_kubernetes: bool = True,
    hub: bool = False,
    forward_proxy: bool = False,
    disconnected: bool = False,
) -> str:
    """Install, download and build what a lab needs, and no more; returns the kind of machines it can have here."""
    if machines == "libvirt" and (reason := _no_libvirt()):
        machines = _simulated(reason, report)
    if hub and (reason := refusal()):
        raise SetupFailed(f"the hub cannot run here: {reason}")
    more = (
        *(HUB if hub else ()),
        *((MIRROR,) if disconnected and not hub else ()),
        *((PROXY,) if forward_proxy else ()),
    )
    install(missing((*_wanted(machines), *more)), report)
    if forward_proxy and missing((PROXY,)):
        raise SetupFailed(f"the lab's forward proxy is missing: install the package {PROXY.name}")
    knot()  # without it there is no lab, and nothing is worth building
    machines = settle(machines, report)
    report("building the stand-in for openshift-install, unless it is built already")
    found = kinds.ensure(openshift, report)
    report(f"{'the stand-in for ' if found.images is None else ''}openshift-install: {found.installer}")
    if disconnected and found.images is not None:
        report(f"images of the release: {images.ensure(found.images)}")
    if real_kubernetes:
        report(kubernetes(report))
        if metallb and machines == "simulated":
            report(f"MetalLB: {announcing(report)}")
        if day_two:
            from lab import olm

            report(f"the Operator Lifecycle Manager: {olm.ensure(report).olm}")
    if hub:
        from lab.hub import control

        control.setup(report)
    if machines == "libvirt":
        from lab.node_image.build import ensure

        report("building the node image from Debian packages, unless it is built already (minutes)")
        image = ensure()
        absent = [] if image.afterburn else ["Afterburn"]
        absent += [] if image.installer else ["coreos-installer"]
        report(f"the node image: {image.directory}" + (f" (without {' and '.join(absent)})" if absent else ""))
        if kube_vip:
            from lab.kube_vip import KUBE_VIP

            report(f"kube-vip: {KUBE_VIP.ensure(report)}")
    return machines


def settle(machines: str, report: Report) -> str:
    """The kind of machines that a lab started now can have; says so when it is not the one asked for."""
    if machines != "libvirt":
        return machines
    absent = missing(MACHINES)
    reason = _no_libvirt() or (f"missing: {', '.join(package.name for package in absent)}" if absent else None)
    return machines if reason is None else _simulated(reason, report)


def _simulated(reason: str, report: Report) -> str:
    report(f"libvirt machines cannot run here: {reason}; going on with simulated machines")
    return "simulated"


def kubernetes(report: Report) -> str:
    """Download or build what the real Kubernetes API consists of; says what there is, or what the lab goes on with."""
    from lab.kubernetes import programs

    try:
        found = programs.ensure(report)
    except (SetupFailed, ProgramMissing) as error:
        return f"no real Kubernetes API, small services of the lab's own stand in: {error}"
    return f"the Kubernetes API: kube-apiserver {found.version}, {found.apiserver}"


def announcing(report: Report) -> Path:
    """Install and build what announces addresses of services on simulated machines; where MetalLB's manifest is.

    Raises SetupFailed or ProgramMissing.
    """
    from lab import metallb

    if absent := missing((NFTABLES,)):
        install(absent, report)
    return metallb.ensure(report)


def missing(packages: Sequence[Package]) -> list[Package]:
    """Those of `packages` that are not there."""
    return [package for package in packages if not Path(package.file).exists()]


def _wanted(machines: str) -> tuple[Package, ...]:
    if machines != "libvirt":
        return NETWORK
    from lab.node_image import crates

    building = any(each.to_build() for each in (crates.AFTERBURN, crates.INSTALLER))
    return (*NETWORK, *MACHINES, *(CARGO if building else ()))


def install(packages: Sequence[Package], report: Report) -> None:
    """Install Debian packages; where we may not, say what is missing and go on, for not all of them are essential."""
    if not packages:
        report("no system package is missing")
        return
    names = [package.name for package in packages]
    prefix = _privilege()
    if prefix is None or not shutil.which("apt-get"):
        report(f"not installed, for that takes apt-get and root: {' '.join(names)}")
        return
    report(f"installing on this system, with apt-get: {' '.join(names)}")
    environment = ["env", "DEBIAN_FRONTEND=noninteractive"]
    for command in (
        ["apt-get", "update", "--quiet=2"],
        ["apt-get", "install", "--quiet=2", "--yes", "--no-install-recommends", *names],
    ):
        done = _run([*prefix, *environment, *command])
        if done.returncode != 0:
            end = "\n".join((done.stdout + done.stderr).splitlines()[-15:])
            raise SetupFailed(f"`{' '.join(command)}` ended with {done.returncode}:\n{end}")
    _stop([package.service for package in packages if package.service], prefix, report)


def _stop(services: Sequence[str], prefix: Sequence[str], report: Report) -> None:
    """End what the packages that we installed have started: nobody asked for it."""
    if not services or not _SYSTEMD.is_dir():
        return
    report(f"stopping and disabling what came with it: {' '.join(services)}")
    done = _run([*prefix, "systemctl", "disable", "--now", *services])
    if done.returncode != 0:
        report(f"  it did not work, see to it yourself: {done.stderr.strip()}")


def _privilege() -> list[str] | None:
    """What to put before a command that needs root; None where there is no way that asks nothing."""
    if os.geteuid() == 0:
        return []
    if shutil.which("sudo") and _run(["sudo", "-n", "true"]).returncode == 0:
        return ["sudo", "-n"]
    return None


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)


def _no_libvirt() -> str | None:
    """Why libvirt machines can never run here, whatever is installed; None if they can."""
    if os.geteuid() != 0:
        return "they take root (run as root for them)"
    if os.uname().machine != "x86_64":
        return f"the node image is for x86_64, this is {os.uname().machine}"
    if not shutil.which("apt-get"):
        return "they are installed with apt-get, and this is not a Debian-like system"
    return None
