"""`Installation`, as programs see it, and its inputs."""

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
from metal_ipi.provider.resources.live_system import LiveChecksArgs, LiveSystemArgs
from metal_ipi.provider.values import has_unknown

BEING_INSTALLED = "metal-ipi/being-installed"
"""Label of nodes whose machines are installed again, or leave: their going away is no failure."""


class ArtifactsPlace(Inputs):
    """Some files of an `Artifacts`."""

    directory: Given[Directory]
    """Its `directory`."""
    files: Annotated[ListOf[FileName], NOT_EMPTY]
    """Their names."""
    hashes: GivenMap[str]
    """Its `hashes` of these: they tell when the files were uploaded once more."""


class InstalledSystemArgs(Inputs):
    """What a machine runs: told in previews when it changes. What counts is `InstallationArgs.generation`."""

    release: Given[Anything]
    """Release of the operating system."""
    kernel_arguments: GivenList[str]
    """Kernel arguments beside the image's own."""
    consoles: GivenList[str]
    """Consoles, `ttyS0,115200n8`."""
    ignition: Given[Anything]
    """Digest of its Ignition."""
    install_device: GivenMap[Any]
    """The rules that its disk meets: as long as they stay, it stays on its disk."""
    installation: Given[Whole] = default(0)
    """A number that is raised to have the same installed once more."""
    network: Given[Anything] = default("")
    """Its static network in words; empty where DHCP tells it."""


_BOOTED_BY: Mapping[str, tuple[str, ...]] = {
    "redfish": ("mac", "script", "chain"),
    "ironic": ("mac", "script"),
    "equinix-metal": ("userData", "ipxeScriptUrl"),
}
"""The platforms, and by what their machines boot the installer."""


class InstallationArgs(Inputs):
    """Arguments of `Installation`. A changed `generation` installs the machine again.

    Where only `artifacts` changed they are deleted again; no other change does anything.
    """

    platform: Given[Annotated[str, one_of(*_BOOTED_BY)]]
    """`redfish`, `ironic` or `equinix-metal`."""
    machine_id: Given[str]
    """The platform's id. A change replaces: it is another machine."""
    hostname: Given[HostName]
    """Short name, in messages and in the settings that consent."""
    node: Given[NodeName]
    """Its full name, which its node and its marker have."""
    role: Annotated[str, one_of("control-plane", "arbiter", "worker")]
    """`control-plane`, `arbiter` or `worker`."""
    pool: Given[str]
    """Machines which are installed again in turn, `max_unavailable` at once."""
    cluster: Given[Domain]
    """`<cluster>.<domain>`; the marker on the machine names it."""
    generation: Given[Annotated[str, form(r"[0-9a-f]{16}", "16 hex digits")]]
    """16 hex digits that stand for all the machine runs."""
    runs: InstalledSystemArgs
    """The same, for people."""
    address: Given[Annotated[str, form(r"[\d.]+", "an IPv4 address")]]
    """IPv4 address SSH answers on, of the installed system and of the one that installs."""
    addresses: Annotated[GivenList[str], LEFT_OUT] = default(())
    """All IP addresses which the node's serving certificate may name; not given: `address`."""
    port: Given[Port | None] = default()
    """SSH port, 22."""
    host_key: Given[SshKey]
    """Pinned SSH host key of the installed system."""
    live_host_key: Given[SshKey]
    """Pinned SSH host key of the live system which installs."""
    user: Given[str] = default("core")
    """SSH user of both, who may become root."""
    private_key: Given[Secret[str]]
    """SSH key, OpenSSH PEM. Secret."""
    live: LiveSystemArgs
    """What a running node goes over to in order to be installed again."""
    live_checks: LiveChecksArgs | None = default()
    """How it is checked in the live system; None: it is not, and its installer does not wait for that."""
    mac: Given[Mac | None] = default()
    """MAC address of the interface that boots; with `redfish` and `ironic`."""
    script: Given[Secret[BootScript] | None] = default()
    """iPXE script that boots the live system: published anew whenever the machine is sent there. Secret."""
    chain: Given[Script | None] = default()
    """Text of the site's `boot.ipxe`; with `redfish`."""
    user_data: Given[Secret[str] | None] = default()
    """User data of the installed system; with `equinix-metal`. Secret."""
    ipxe_script_url: Given[Secret[Url] | None] = default()
    """The iPXE script that boots the live system; with `equinix-metal`. Secret."""
    artifacts: ListOf[ArtifactsPlace]
    """This machine's uploaded files, deleted once it is installed: their `Artifacts` are `ephemeral`."""
    ordered: Given[bool] = default(False)
    """Whether making the machine has booted the live system already."""
    consent: Given[bool] = default(False)
    """Whether a control plane machine may be installed again."""
    accept: Given[Accept] = default("empty")
    """`wipe` where whatever answers at its address may be reset and wiped, also if it is not known."""
    disposable: Given[LateFlag] = default(False)
    """Whether no cluster was formed yet: nothing is lost with what the machine runs, and nobody is asked before it is
    installed again."""
    keep: Given[bool] = default(False)
    """Whether one that may not goes on with what it runs, with a warning; else it is an error."""
    max_unavailable: Given[Annotated[Whole, between(1)]] = default(1)
    """How many machines of the pool may be away at once."""
    members: Annotated[GivenList[NodeName], NOT_EMPTY]
    """Node names of all machines of the role, this one included."""
    credentials: ClusterCredentials | None = default()
    """The cluster, to drain the node and to see it join again. A first installation needs none."""
    drain_timeout_seconds: Given[Seconds] = default(600)
    """How long disruption budgets and terminating pods are waited for."""
    pre_reboot_commands: GivenList[Secret[str]] = default(())
    """Shell commands run as root on the drained node before it goes; run again by an update that follows a killed one.
    Secret."""
    pxe_commands: GivenList[Secret[str]] = default(())
    """Shell commands run here that boot the machine from the network, where no other way is left. Their environment
    has MACHINE, DOMAIN, NODE, MAC, ADDRESS, BMC_ADDRESS, BMC_USERNAME and BMC_PASSWORD."""
    expected: Annotated[GivenMap[str], LEFT_OUT] = default({})
    """What the node must be once it is installed again, before it takes pods: variables of `provider/node_check.sh`.
    Where it is anything else, the roll ends. Empty: it is not checked."""
    log_directory: Given[AbsolutePath | None] = default()
    """Absolute directory; logs of a failed installation go to `<directory>/installation-<hostname>/`."""
    timeout_seconds: Given[Seconds] = default(3600)
    """How long the installation may take, and as long again until the node has joined."""
    valid_hours: Given[Annotated[float, between(0)]] = default(24)
    """How long an installer that was published, or started by kexec, begins its work; later it refuses to."""

    @classmethod
    def conflicts(cls, given: Mapping[str, Any]) -> Iterator[Conflict]:
        platform, node, members = given.get("platform"), given.get("node"), given.get("members")
        if isinstance(platform, str):
            for key in _BOOTED_BY.get(platform, ()):
                if given.get(key) is None:
                    yield (key,), f"is required on {platform}: the machine boots its installer by it"
        if isinstance(node, str) and isinstance(members, list) and not has_unknown(members) and node not in members:
            yield ("members",), f"must hold {node} itself"


class Installation(Resource[InstallationArgs]):
    """A machine's operating system on its disk, installed again when what it is to run changes."""

    generation: pulumi.Output[str] = computed()
    """What it runs, as last seen; empty where its installation failed."""
    installed_at: pulumi.Output[str] = computed()
    """When it was installed, ISO 8601 in UTC."""
    device: pulumi.Output[str] = computed()
    """The disk it was installed to, by a stable path."""
    via: pulumi.Output[str] = computed()
    """How it got into its installer: `order`, `network boot`, `kexec`, `reinstall`, `pxe-commands`; `found` where
    an interrupted run had installed it."""
