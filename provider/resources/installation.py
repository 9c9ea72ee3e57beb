"""`Installation` and its inputs, for programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import pulumi

from metal_ipi.provider.forms import (
    NOT_EMPTY,
    AbsolutePath,
    Accept,
    Anything,
    BootScript,
    Directory,
    Domain,
    FileName,
    HostName,
    Mac,
    NodeName,
    Port,
    Script,
    Seconds,
    SshKey,
    Url,
    Whole,
    between,
    form,
    one_of,
)
from metal_ipi.provider.given import LEFT_OUT, Given, GivenList, GivenMap, LateFlag, ListOf, Secret, default
from metal_ipi.provider.inputs import Conflict, Inputs
from metal_ipi.provider.resources.base import Resource, computed
from metal_ipi.provider.resources.credentials import ClusterCredentials
from metal_ipi.provider.resources.live_system import LiveChecksArgs, OwnLiveSystemArgs
from metal_ipi.provider.values import has_unknown

BEING_INSTALLED = "metal-ipi/being-installed"
"""Label of nodes whose machines are being installed again or removed: it is not a failure that they go away."""


class ArtifactsPlace(Inputs):
    """Some files of an `Artifacts` resource."""

    directory: Given[Directory]
    """Its output `directory`."""
    files: Annotated[ListOf[FileName], NOT_EMPTY]
    """Names of the files."""
    hashes: GivenMap[str]
    """Its output `hashes` for these files. They change when the files are uploaded again."""


class InstalledSystemArgs(Inputs):
    """What a machine runs, so that previews show how it changes. `InstallationArgs.generation` decides about a
    reinstallation."""

    release: Given[Anything]
    """Release of the operating system."""
    kernel_arguments: GivenList[str]
    """Kernel arguments in addition to those of the image."""
    consoles: GivenList[str]
    """Consoles, `ttyS0,115200n8`."""
    ignition: Given[Anything]
    """Digest of its Ignition."""
    install_device: GivenMap[Any]
    """The rules for its disk. While they stay the same, the machine keeps its disk."""
    installation: Given[Whole] = default(0)
    """Raise this number to install the same system once more."""
    network: Given[Anything] = default("")
    """Its static network in words; empty with DHCP."""


_BOOTED_BY: Mapping[str, tuple[str, ...]] = {
    "redfish": ("mac", "script", "chain"),
    "ironic": ("mac", "script"),
    "equinix-metal": ("userData", "ipxeScriptUrl"),
}
"""Platform to the inputs from which its machines boot the installer."""


_SHARED = frozenset({"script", "userData", "chain"})
"""What of that an `InstallationPool` may have."""


class InstallationArgs(Inputs):
    """Arguments of `Installation`. A changed `generation` installs the machine again.

    If only `artifacts` changed, they are deleted again; any other change has no effect.
    """

    platform: Given[Annotated[str, one_of(*_BOOTED_BY)]]
    """`redfish`, `ironic` or `equinix-metal`."""
    machine_id: Given[str]
    """The platform's id. A change replaces, because it is another machine."""
    hostname: Given[HostName]
    """Short name, for messages and for the settings that give consent."""
    node: Given[NodeName]
    """Its full name: the name of its node, and in its marker file."""
    role: Annotated[str, one_of("control-plane", "arbiter", "worker")]
    """`control-plane`, `arbiter` or `worker`."""
    pool: Given[str]
    """Name of the pool: its machines are installed again in turn, at most `max_unavailable` at once."""
    cluster: Given[Domain]
    """`<cluster>.<domain>`, which is also in the marker file on the machine."""
    generation: Given[Annotated[str, form(r"[0-9a-f]{16}", "16 hex digits")]]
    """16 hexadecimal digits: a hash of everything that the machine runs."""
    runs: InstalledSystemArgs
    """The same in a form for people."""
    address: Given[Annotated[str, form(r"[\d.]+", "an IPv4 address")]]
    """IPv4 address of its SSH server, in the installed system and in the live system."""
    addresses: Annotated[GivenList[str], LEFT_OUT] = default(())
    """All IP addresses that the node's serving certificate may contain; default: `address`."""
    port: Given[Port | None] = default()
    """SSH port; default 22."""
    host_key: Given[SshKey]
    """Pinned SSH host key of the installed system."""
    live_host_key: Given[SshKey]
    """Pinned SSH host key of the live system, which installs the machine."""
    user: Given[str] = default("core")
    """SSH user in both systems, who may become root."""
    private_key: Given[Secret[str]]
    """SSH key, OpenSSH PEM. Secret."""
    common: Given[str | None] = default()
    """The id of an `InstallationPool`, which has what is left out here: `members`, `credentials`, `chain`, commands,
    and of `live` its kernel and initramfs."""
    derived: Annotated[GivenMap[Secret[Anything]], LEFT_OUT] = default({})
    """`script` and `userData` as their differences from the pool's, in the form of those of `Artifacts`. Secret."""
    live: OwnLiveSystemArgs
    """The live system that a running node starts by kexec to be installed again."""
    live_checks: LiveChecksArgs | None = default()
    """The checks in the live system; None: no checks, and the installer does not wait for them."""
    mac: Given[Mac | None] = default()
    """MAC address of the interface that boots; required with `redfish` and `ironic`."""
    script: Given[Secret[BootScript] | None] = default()
    """iPXE script that boots the live system. It is published again each time the machine has to boot it. Secret."""
    chain: Given[Script | None] = default()
    """Text of the site's `boot.ipxe`; required with `redfish`."""
    user_data: Given[Secret[str] | None] = default()
    """User data of the installed system; required with `equinix-metal`. Secret."""
    ipxe_script_url: Given[Secret[Url] | None] = default()
    """URL of the iPXE script that boots the live system; required with `equinix-metal`. Secret."""
    artifacts: ListOf[ArtifactsPlace]
    """This machine's uploaded files, which are deleted after its installation. Their `Artifacts` are `ephemeral`."""
    ordered: Given[bool] = default(False)
    """Whether the creation of the machine has booted the live system already."""
    consent: Given[bool] = default(False)
    """Whether a control plane machine may be installed again."""
    accept: Given[Accept] = default("empty")
    """`wipe`: the machine at its address may be reset and wiped, even if it is not known."""
    disposable: Given[LateFlag] = default(False)
    """Whether no cluster exists yet. Then the machine has nothing to lose, and is installed again without consent."""
    keep: Given[bool] = default(False)
    """Whether a machine that must not be installed again keeps its system, with a warning; otherwise it is an error."""
    max_unavailable: Given[Annotated[Whole, between(1)]] = default(1)
    """Maximum number of machines of the pool that are out of service at once."""
    members: Annotated[GivenList[NodeName], LEFT_OUT] = default(())
    """Node names of all machines of the role, including this one."""
    credentials: ClusterCredentials | None = default()
    """How to reach the cluster, to drain the node and to wait until it has joined again. Not needed for a first
    installation."""
    drain_timeout_seconds: Given[Seconds] = default(600)
    """Seconds to wait for disruption budgets and terminating pods."""
    pre_reboot_commands: Annotated[GivenList[Secret[str]], LEFT_OUT] = default(())
    """Shell commands that run as root on the drained node before it reboots. They run again in an update that follows a
    killed one. Secret."""
    pxe_commands: Annotated[GivenList[Secret[str]], LEFT_OUT] = default(())
    """Shell commands that run on this computer and boot the machine from the network, if there is no other way. Their
    environment has MACHINE, DOMAIN, NODE, MAC, ADDRESS, BMC_ADDRESS, BMC_USERNAME and BMC_PASSWORD."""
    expected: Annotated[GivenMap[Anything], LEFT_OUT] = default({})
    """What the reinstalled node must look like before it takes pods: variables of `provider/node_check.sh`. A
    difference stops the reinstallation of further nodes. Empty: no check."""
    log_directory: Given[AbsolutePath | None] = default()
    """Absolute directory. Logs of a failed installation go to `<directory>/installation-<hostname>/`."""
    timeout_seconds: Given[Seconds] = default(3600)
    """Seconds that the installation may take, and seconds until the node must have joined."""
    valid_hours: Given[Annotated[float, between(0)]] = default(24)
    """Hours after which a published or started installer refuses to begin."""

    @classmethod
    def conflicts(cls, given: Mapping[str, Any]) -> Iterator[Conflict]:
        platform, node, members = given.get("platform"), given.get("node"), given.get("members")
        alone = given.get("common") is None
        if isinstance(platform, str):
            for key in _BOOTED_BY.get(platform, ()):
                if given.get(key) is None and (alone or key not in _SHARED):
                    yield (key,), f"is required on {platform}: the machine boots its installer by it"
        live = given.get("live")
        for key in ("kernel", "initramfs"):
            if alone and isinstance(live, Mapping) and live.get(key) is None:
                yield ("live", key), "is required, where `common` names no pool that has it"
        if alone and not members:
            yield ("members",), "is required, where `common` names no pool that has it"
        elif isinstance(node, str) and isinstance(members, list) and not has_unknown(members) and node not in members:
            yield ("members",), f"must hold {node} itself"


class Installation(Resource[InstallationArgs]):
    """The operating system on a machine's disk. It is installed again when what the machine is to run changes."""

    generation: pulumi.Output[str] = computed()
    """The hash of what it runs, as last seen; empty if its installation failed."""
    installed_at: pulumi.Output[str] = computed()
    """Time of the installation, ISO 8601 in UTC."""
    device: pulumi.Output[str] = computed()
    """The disk it was installed to, as a stable path."""
    via: pulumi.Output[str] = computed()
    """How it booted its installer: `order`, `network boot`, `kexec`, `reinstall`, `pxe-commands`; `found` if an
    interrupted run had installed it already."""
