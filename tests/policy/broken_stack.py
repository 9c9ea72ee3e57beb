"""A program in the place of `stacks/program.py` that breaks rules about the stack as a whole."""

from __future__ import annotations

import asyncssh
import pulumi
import pulumi_equinix_metal as metal

from metal_ipi.provider.types import (
    Installation,
    InstallationArgs,
    InstalledSystemArgs,
    LiveFileArgs,
    LiveSystemArgs,
    Provider,
    ProviderArgs,
)

_HOSTNAME = "lab-worker-0"
_NODE = f"{_HOSTNAME}.lab.facility.test"
_TAGS = ["metal-ipi", "metal-ipi:stack=lab", "metal-ipi:cluster=lab.facility.test", "metal-ipi:run=1",
         "metal-ipi:role=worker"]  # fmt: skip
_FILE = LiveFileArgs(url="https://mirror.facility.test/file", sha256="0" * 64)


def main() -> None:
    """Declare it."""
    key = asyncssh.generate_private_key("ssh-ed25519")
    public, private = (part.decode().strip() for part in (key.export_public_key(), key.export_private_key()))
    provider = Provider("metal-ipi", ProviderArgs(metal={"authToken": "token"}))
    theirs = metal.Provider("metal", auth_token=pulumi.Output.secret("token"))
    metal.Device(
        "loops",
        hostname=_HOSTNAME, plan="c3.medium.x86", metro="lb", operating_system="custom_ipxe", billing_cycle="hourly",
        project_id="p", always_pxe=True, ipxe_script_url="https://b.test/s", tags=_TAGS,
        opts=pulumi.ResourceOptions(provider=theirs),
    )  # fmt: skip
    Installation(
        "loops",
        InstallationArgs(
            platform="equinix-metal", machine_id="m", hostname=_HOSTNAME, node=_NODE, role="worker", pool="worker",
            cluster="lab.facility.test", generation="0" * 16,
            runs=InstalledSystemArgs(release="1", kernel_arguments=[], consoles=[], ignition="{}", install_device={}),
            address="192.0.2.9", host_key=public, live_host_key=public, private_key=f"{private}\n", user_data="{}",
            live=LiveSystemArgs(kernel=_FILE, initramfs=_FILE, arguments=["quiet"]), artifacts=[], members=[_NODE],
            ipxe_script_url="https://b.test/s",
        ),
        pulumi.ResourceOptions(provider=provider),
    )  # fmt: skip
    pulumi.export("kubeconfig", "in clear")
