"""`InstallationPool`, as programs see it, and its inputs."""

from __future__ import annotations

from typing import Annotated

from metal_ipi.provider.forms import NOT_EMPTY, BootScript, Domain, NodeName, Script
from metal_ipi.provider.given import Given, GivenList, Secret, default
from metal_ipi.provider.inputs import Inputs
from metal_ipi.provider.resources.base import Resource
from metal_ipi.provider.resources.credentials import ClusterCredentials
from metal_ipi.provider.resources.live_system import LiveFileArgs


class InstallationPoolArgs(Inputs):
    """Arguments of `InstallationPool`."""

    cluster: Given[Domain]
    """`<cluster>.<domain>`. A change replaces."""
    name: Given[str]
    """What tells it from others of the cluster. A change replaces."""
    members: Annotated[GivenList[NodeName], NOT_EMPTY]
    """Node names of all machines of the role."""
    credentials: ClusterCredentials
    """The cluster."""
    kernel: LiveFileArgs
    """Kernel of the live system which installs."""
    initramfs: LiveFileArgs
    """Its initramfs."""
    script: Given[Secret[BootScript] | None] = default()
    """The iPXE script of one of the machines: others are told by what they have instead. Secret."""
    user_data: Given[Secret[str] | None] = default()
    """The same of user data. Secret."""
    chain: Given[Script | None] = default()
    """Text of the site's `boot.ipxe`; with `redfish`."""
    pre_reboot_commands: GivenList[Secret[str]] = default(())
    """Shell commands run as root on a drained node before it goes. Secret."""
    pxe_commands: GivenList[Secret[str]] = default(())
    """Shell commands that boot a machine from the network, where no other way is left."""


class InstallationPool(Resource[InstallationPoolArgs]):
    """What the installations of a pool have in common, so that the state has it once. It makes nothing."""
