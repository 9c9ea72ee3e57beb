"""The resource types of the metal-ipi provider, as programs see them.

Only this module of the package may be imported by programs: it needs nothing but `pulumi` and imports fast. Python
names are snake_case; on the wire the same properties are camelCase. Every resource takes `(name, args, opts)`,
`ClusterKeys` without args; the arguments are frozen, keyword-only dataclasses whose fields may hold outputs of other
resources.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import pulumi

from provider import live_iso as _live_iso
from provider import mirror_files as _mirror_files
from provider import orders as _orders
from provider import sizes as _sizes
from provider.live_iso import initrd as _initrd
from provider.preflight import plan as _plan

_PACKAGE = "metal-ipi"


def _wire(values: Mapping[str, Any]) -> dict[str, Any]:
    """Leaves out what was not given: an absent property and a null one are the same to the provider."""
    return {key: value for key, value in values.items() if value is not None}


class _Resource(pulumi.CustomResource):
    """A resource whose properties are stored under their wire names, so that user-given map keys are never renamed."""

    _outputs: ClassVar[tuple[str, ...]] = ()

    def __init__(self, name: str, inputs: Mapping[str, Any], opts: pulumi.ResourceOptions | None) -> None:
        props = {**dict.fromkeys(self._outputs), **_wire(inputs)}
        super().__init__(f"{_PACKAGE}:index:{type(self).__name__}", name, props, opts)

    def _output(self, wire_name: str) -> pulumi.Output[Any]:
        return pulumi.get(self, wire_name)


# --- the provider ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class ProviderArgs:
    """Where the provider works and with which credentials. All of it is secret; changing it never replaces anything."""

    metal: pulumi.Input[Mapping[str, Any]] | None = None
    """{"authToken", "endpoint"?}: the Equinix Metal API; `endpoint` defaults to https://api.equinix.com/metal/v1."""
    bmcs: pulumi.Input[Mapping[str, Any]] | None = None
    """Server name to {"address" (https), "username", "password", "ca" (PEM) or "fingerprint" (`sha256:<hex>` of the
    certificate) unless the system trusts it, "systemId"? (where there are several), "bootMethod"? (`pxe`, `uefi-http`,
    `virtual-media` or `live-iso`), "bootMode"? (`bios` or `uefi`), "bootImage"? (URL of an iPXE image, for
    virtual-media), "bootUrl"? (for uefi-http; else what DHCP says), "liveIso"? ({"url", "sha256"} of CoreOS's live ISO,
    for live-iso), "secureBoot"? (`check`, or `ignore`: what boots is signed for its firmware)}."""
    libvirt: pulumi.Input[Mapping[str, Any]] | None = None
    """{"uri"?}: the libvirt that runs virtual machines, `qemu:///system` unless it says otherwise."""
    dns: pulumi.Input[Mapping[str, Any]] | None = None
    """One of, each with "zone"?, "propagation"? (`service`, or `authoritative`: all the zone's servers are waited for)
    and "propagationTimeout"? (seconds, 60):
    {"service": "rfc2136", "server", "port"?, "tsig": {"name", "algorithm", "secret" (base64)},
    "delegation"?: {"timeout"?, "parentServers"?}},
    {"service": "route53", "zoneId"?, "region"?, "accessKeyId", "secretAccessKey", "sessionToken"?, "endpoint"?},
    {"service": "cloudflare", "authToken", "zoneId"?, "endpoint"?},
    {"service": "lexicon", "name", "options"}: any other service of dns-lexicon, with its own options."""
    artifacts: pulumi.Input[Mapping[str, Any]] | None = None
    """{"type": "ssh", "host", "port"?, "user", "hostKey", "privateKey", "directory", "baseUrl", "bootBaseUrl",
    "caBundle"?} or
    {"type": "s3", "bucket", "prefix"?, "region", "endpoint"?, "accessKeyId", "secretAccessKey", "baseUrl",
    "bootBaseUrl", "caBundle"?}."""


class Provider(pulumi.ProviderResource):
    """An explicit provider. Each section travels as one JSON string, because provider configuration is flat."""

    def __init__(self, name: str, args: ProviderArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        sections = {
            "metal": args.metal,
            "bmcs": args.bmcs,
            "libvirt": args.libvirt,
            "dns": args.dns,
            "artifacts": args.artifacts,
        }
        props = {
            key: pulumi.Output.secret(pulumi.Output.from_input(value)).apply(_section)
            for key, value in sections.items()
            if value is not None
        }
        super().__init__(_PACKAGE, name, props, opts)


def _section(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


# --- keys -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class ClusterKeysArgs:
    """Arguments of `ClusterKeys`."""

    key_type: str | None = None
    """`ed25519`, or `ecdsa` (on the curve P-256), which FIPS takes; not given: `ed25519`. A change is refused."""


class ClusterKeys(_Resource):
    """The SSH key of a cluster and the seed its nodes' host keys are derived from. Never silently replaced.

    It is made by a cluster's first up and gone with its last down: its id, 16 hexadecimal digits, tells one
    installation of a cluster from the next.
    """

    _outputs = ("privateKey", "publicKey", "hostKeySeed")

    def __init__(
        self, name: str, args: ClusterKeysArgs | None = None, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(name, {"keyType": args.key_type if args else None}, opts)

    @property
    def private_key(self) -> pulumi.Output[str]:
        """OpenSSH PEM. Secret."""
        return self._output("privateKey")

    @property
    def public_key(self) -> pulumi.Output[str]:
        """One authorized_keys line without comment: `ssh-ed25519 AAAA…`, `ecdsa-sha2-nistp256 AAAA…`."""
        return self._output("publicKey")

    @property
    def host_key_seed(self) -> pulumi.Output[str]:
        """32 random bytes in base64. Secret."""
        return self._output("hostKeySeed")


# --- DNS ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class DnsRecordArgs:
    """Values of ours in one record set."""

    name: pulumi.Input[str]
    """Fully qualified, without trailing dot."""
    type: pulumi.Input[str]
    """A, AAAA, PTR, TXT or CNAME."""
    values: pulumi.Input[Sequence[pulumi.Input[str]]]
    """Addresses, names (a trailing dot is optional) or text. Never empty."""
    label: str | None = None
    """What previews call it; not given: name and type. A name that is an output needs one."""

    def to_wire(self) -> dict[str, Any]:
        return {"name": self.name, "type": self.type, "values": self.values}

    def to_label(self) -> str:
        if self.label is None and not (isinstance(self.name, str) and isinstance(self.type, str)):
            raise ValueError("a DNS record whose name is an output needs a label")
        return self.label or f"{self.name} {self.type}"


@dataclass(frozen=True, kw_only=True)
class DnsRecordsArgs:
    """Arguments of `DnsRecords`: one resource per zone, not one per record."""

    zone: pulumi.Input[str]
    """The zone the records are in, fully qualified: `facility.test`. A change replaces."""
    ttl: pulumi.Input[int]
    """Seconds."""
    records: Sequence[DnsRecordArgs]
    """The values to own; no (name, type) twice. Of PTR records only those in the zone are taken, the others passed
    over: where a reverse name lies is known once the address is."""
    domain: pulumi.Input[str] | None = None
    """The domain beside which markers of ownership stand, `_metal-ipi.<domain>`; not given: the zone."""
    ephemeral: pulumi.Input[bool] = False
    """Values that a `Removal` withdraws within the same up: absent ones are still ours, and no drift."""


class DnsRecords(_Resource):
    """Values in DNS record sets of one zone. Owns values, not sets: other values of a set are left alone."""

    _outputs = ("zone", "domain", "ttl", "records", "ephemeral", "marked")

    def __init__(self, name: str, args: DnsRecordsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        inputs = {
            "zone": args.zone,
            "domain": args.domain,
            "ttl": args.ttl,
            "records": _labelled(args.records),
            "ephemeral": args.ephemeral,
        }
        super().__init__(name, inputs, opts)

    @property
    def records(self) -> pulumi.Output[dict[str, dict[str, Any]]]:
        """The values of ours by label, {name, type, values}; after a refresh those that are really there."""
        return self._output("records")


def _labelled(records: Sequence[DnsRecordArgs]) -> dict[str, Any]:
    labels = [record.to_label() for record in records]
    twice = sorted({label for label in labels if labels.count(label) > 1})
    if twice:
        raise ValueError(f"DNS records are given twice: {', '.join(twice)}; put all values of a name into one")
    return dict(zip(labels, (record.to_wire() for record in records), strict=True))


# --- artifacts ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class ArtifactsArgs:
    """Arguments of `Artifacts`."""

    files: pulumi.Input[Mapping[str, pulumi.Input[str]]]
    """File name (letters, digits, `.`, `_`, `-`) to text. Secret."""
    path_seed: pulumi.Input[str]
    """What the unguessable directory is derived from, 16 random characters or more. Secret. A change replaces."""
    ephemeral: pulumi.Input[bool] = False
    """Files that a `Removal` or an `Installation` deletes within the same up: absent ones are still ours, and no drift.
    To have them uploaded once more: `pulumi up --replace <URN>`."""


class Artifacts(_Resource):
    """Files that machines fetch while they boot, under an unguessable directory that cannot be listed."""

    _outputs = ("files", "pathSeed", "ephemeral", "urls", "bootUrls", "hashes", "directory")

    def __init__(self, name: str, args: ArtifactsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        inputs = {
            "files": pulumi.Output.secret(args.files),
            "pathSeed": pulumi.Output.secret(args.path_seed),
            "ephemeral": args.ephemeral,
        }
        if args.ephemeral is True:
            # Their place stays the same: who deletes the old files last, deletes the new ones.
            opts = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(delete_before_replace=True))
        super().__init__(name, inputs, opts)

    @property
    def urls(self) -> pulumi.Output[dict[str, str]]:
        """File name to URL under the artifact host's `baseUrl`. Secret: who knows it can fetch the file."""
        return self._output("urls")

    @property
    def boot_urls(self) -> pulumi.Output[dict[str, str]]:
        """File name to URL under `bootBaseUrl`, for firmware which cannot verify TLS. Secret."""
        return self._output("bootUrls")

    @property
    def hashes(self) -> pulumi.Output[dict[str, str]]:
        """File name to `sha512-<hex>`, Ignition's form."""
        return self._output("hashes")

    @property
    def directory(self) -> pulumi.Output[str]:
        """The unguessable directory's name, relative to the artifact host's root. Secret."""
        return self._output("directory")


# --- the mirror -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class MirrorArgs:
    """Arguments of `Mirror`."""

    files: Mapping[str, LiveFileArgs]
    """The files, by what people call them. Each is copied once, and its hash checked before it gets its name."""
    path_seed: pulumi.Input[str]
    """What the claim is derived from, 16 random characters or more. Secret. A change replaces."""


class Mirror(_Resource):
    """Files of a release that are kept on the artifact host, for machines that cannot fetch them where they are
    published. Stacks with one artifact directory share them: a file goes with the last that uses it."""

    _outputs = ("files", "pathSeed", "urls", "sizes")

    def __init__(self, name: str, args: MirrorArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        inputs = {
            "files": {title: file.to_wire() for title, file in args.files.items()},
            "pathSeed": pulumi.Output.secret(args.path_seed),
        }
        super().__init__(name, inputs, opts)

    @property
    def urls(self) -> pulumi.Output[dict[str, str]]:
        """Where each is served, below `bootBaseUrl`."""
        return self._output("urls")

    @property
    def sizes(self) -> pulumi.Output[dict[str, int]]:
        """The size in bytes of each, by its name in the mirror."""
        return self._output("sizes")


# --- the ephemeral machine ------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class EphemeralMachineArgs:
    """Arguments of `EphemeralMachine`. Once the machine was made, changes wait for the next installation, unless it is
    disposable."""

    platform: pulumi.Input[str] = "equinix-metal"
    """Which driver makes it."""
    project_id: pulumi.Input[str]
    """UUID of the Metal project."""
    hostname: pulumi.Input[str]
    """Host name, unique in the stack."""
    plan: pulumi.Input[str]
    """Metal plan slug, `c3.small.x86`."""
    metro: pulumi.Input[str] | None = None
    """Metro code, `da`; this or `facilities`."""
    facilities: pulumi.Input[Sequence[pulumi.Input[str]]] | None = None
    """Facility codes in order of preference, `da11`."""
    operating_system: pulumi.Input[str] = "custom_ipxe"
    """Metal operating system slug."""
    ipxe_script_url: pulumi.Input[str] | None = None
    """The iPXE script a custom_ipxe machine boots."""
    always_pxe: pulumi.Input[bool] = False
    """Boot from the network every time."""
    user_data: pulumi.Input[str] | None = None
    """Plain Ignition that only holds pointers: whoever reaches the metadata service reads it. Secret, as its URLs."""
    tags: pulumi.Input[Sequence[pulumi.Input[str]]] = ()
    """Holds `metal-ipi:stack=…`, `metal-ipi:cluster=…` and `metal-ipi:name=…`: by these it is found after a crash."""
    project_ssh_key_ids: pulumi.Input[Sequence[pulumi.Input[str]]] | None = None
    """SSH keys of the project that may open the serial console."""
    hardware_reservation_id: pulumi.Input[str] | None = None
    """The reserved server to use, or `next-available`; not given: it is ordered on demand."""
    termination_time: pulumi.Input[str] | None = None
    """When Metal deletes it by itself, RFC 3339."""
    custom_data: pulumi.Input[str] | None = None
    """A JSON object that it finds in its metadata."""
    public_subnet: pulumi.Input[int] | None = None
    """The prefix length of its own public IPv4 subnet, 28 to 31; not given: 31."""
    bgp: pulumi.Input[bool] = False
    """Whether it announces IPv4 addresses: it gets a BGP session with its neighbours."""
    disposable: pulumi.Input[bool] = False
    """Whether nothing is lost with it: as long as that is so and the machine is there, a change of what it boots makes
    another machine of it."""
    timeout_seconds: pulumi.Input[float] = 1800
    """How long it may take to become active, and as long again to be gone."""

    def to_wire(self) -> dict[str, Any]:
        return {
            "platform": self.platform,
            "projectId": self.project_id,
            "hostname": self.hostname,
            "plan": self.plan,
            "metro": self.metro,
            "facilities": self.facilities,
            "operatingSystem": self.operating_system,
            "ipxeScriptUrl": self.ipxe_script_url,
            "alwaysPxe": self.always_pxe,
            "userData": self.user_data,
            "tags": self.tags,
            "projectSshKeyIds": self.project_ssh_key_ids,
            "hardwareReservationId": self.hardware_reservation_id,
            "terminationTime": self.termination_time,
            "customData": self.custom_data,
            "publicSubnet": self.public_subnet,
            "disposable": self.disposable or None,
            "timeoutSeconds": self.timeout_seconds,
            "bgp": self.bgp or None,
        }


@dataclass(frozen=True, kw_only=True)
class LentServerArgs:
    """Arguments of `EphemeralMachine` for a server with a BMC that is lent, and later installed as something else."""

    server: pulumi.Input[str]
    """Its name in the provider's section `bmcs`."""
    hostname: pulumi.Input[str]
    """Host name."""
    mac: pulumi.Input[str]
    """MAC address of the interface it boots from."""
    public_ipv4: pulumi.Input[str]
    """The address it has while it is lent."""
    private_ipv4: pulumi.Input[str] | None = None
    """Private address; not given: the same."""
    script: pulumi.Input[str]
    """The iPXE script it boots, published as `boot/mac-….ipxe`. Secret."""
    chain: pulumi.Input[str]
    """Text of `boot/boot.ipxe`, which leads there."""
    accept: pulumi.Input[str] = "empty"
    """`empty`: it must be switched off; `wipe`: whatever is on it may be lost."""
    disposable: pulumi.Input[bool] = False
    """Whether nothing is lost with it: as long as that is so and the machine is there, a change of what it boots makes
    another machine of it."""
    timeout_seconds: pulumi.Input[float] = 1800
    """How long it may take to become active, and as long again to be gone."""

    def to_wire(self) -> dict[str, Any]:
        return {
            "platform": "redfish",
            "server": self.server,
            "hostname": self.hostname,
            "mac": self.mac,
            "publicIpv4": self.public_ipv4,
            "privateIpv4": self.private_ipv4,
            "script": pulumi.Output.secret(self.script),
            "chain": self.chain,
            "accept": self.accept,
            "disposable": self.disposable or None,
            "timeoutSeconds": self.timeout_seconds,
        }


@dataclass(frozen=True, kw_only=True)
class LocalVmArgs:
    """Arguments of `EphemeralMachine` for a virtual machine of the libvirt that the provider's section names."""

    hostname: pulumi.Input[str]
    """Host name."""
    cluster: pulumi.Input[str]
    """The cluster's domain: libvirt's domain is called `<hostname>.<cluster>`, and marked as the cluster's."""
    mac: pulumi.Input[str]
    """MAC address of its network card."""
    public_ipv4: pulumi.Input[str]
    """The address it gets there."""
    bridge: pulumi.Input[str]
    """The bridge that its network card is on."""
    memory_mib: pulumi.Input[int]
    """Memory."""
    cpus: pulumi.Input[int]
    """Virtual CPUs."""
    boot_image: pulumi.Input[str] | None = None
    """Path, where libvirt runs, of an image with iPXE to boot; not given: the firmware's iPXE, by DHCP."""
    script: pulumi.Input[str]
    """The iPXE script it boots, published as `boot/mac-….ipxe`. Secret."""
    chain: pulumi.Input[str]
    """Text of `boot/boot.ipxe`, which leads there."""
    disposable: pulumi.Input[bool] = False
    """Whether nothing is lost with it: as long as that is so and the machine is there, a change of what it boots makes
    another machine of it."""
    timeout_seconds: pulumi.Input[float] = 1800
    """How long it may take to be gone."""

    def to_wire(self) -> dict[str, Any]:
        return {
            "platform": "local-vm",
            "hostname": self.hostname,
            "cluster": self.cluster,
            "mac": self.mac,
            "publicIpv4": self.public_ipv4,
            "bridge": self.bridge,
            "memoryMib": self.memory_mib,
            "cpus": self.cpus,
            "bootImage": self.boot_image,
            "script": pulumi.Output.secret(self.script),
            "chain": self.chain,
            "disposable": self.disposable or None,
            "timeoutSeconds": self.timeout_seconds,
        }


class _Machine(_Resource):
    """What every machine tells."""

    _outputs = ("machineId", "publicIpv4", "privateIpv4", "publicIpv6", "console")

    @property
    def machine_id(self) -> pulumi.Output[str]:
        """The platform's id."""
        return self._output("machineId")

    @property
    def public_ipv4(self) -> pulumi.Output[str]:
        """First public IPv4 address."""
        return self._output("publicIpv4")

    @property
    def private_ipv4(self) -> pulumi.Output[str]:
        """Private IPv4 address."""
        return self._output("privateIpv4")

    @property
    def public_ipv6(self) -> pulumi.Output[str]:
        """Public IPv6 address; empty where it has none."""
        return self._output("publicIpv6")

    @property
    def console(self) -> pulumi.Output[str]:
        """Host of the serial-over-SSH console; log in as the machine's id."""
        return self._output("console")


class EphemeralMachine(_Machine):
    """A machine that is removed within the same up by a `Removal`, and stays gone."""

    _outputs = (*_Machine._outputs, "present", "state")

    def __init__(
        self,
        name: str,
        args: EphemeralMachineArgs | LentServerArgs | LocalVmArgs,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(name, args.to_wire(), opts)

    @property
    def present(self) -> pulumi.Output[bool]:
        """Whether it was there when last looked at: at its creation, or at the last refresh."""
        return self._output("present")


# --- what Metal alone has -------------------------------------------------------------------------------------------


class Lifetime(_Resource):
    """When the platform deletes a cluster's machines: hours after it was made, and fixed from then on."""

    _outputs = ("endsAt",)

    def __init__(self, name: str, hours: pulumi.Input[int], opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, {"hours": hours}, opts)

    @property
    def ends_at(self) -> pulumi.Output[str]:
        """RFC 3339, UTC."""
        return self._output("endsAt")


@dataclass(frozen=True, kw_only=True)
class SpotMachineArgs:
    """Arguments of `SpotMachine`."""

    request_id: pulumi.Input[str]
    """The spot market request. A change replaces."""
    machine_ids: pulumi.Input[Sequence[str]]
    """The ids of the machines that the request has, as the platform tells at this run."""
    hostname: pulumi.Input[str]
    """Host name."""
    timeout_seconds: pulumi.Input[float] = 1800
    """How long it may take until it has an active machine, and as long again to be gone."""

    def to_wire(self) -> dict[str, Any]:
        return {
            "requestId": self.request_id,
            "machineIds": self.machine_ids,
            "hostname": self.hostname,
            "timeoutSeconds": self.timeout_seconds,
        }


class SpotMachine(_Machine):
    """The machine that a spot market request has got. One that is evicted is noticed by the next up."""

    _outputs = (*_Machine._outputs, "bond")

    def __init__(self, name: str, args: SpotMachineArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, args.to_wire(), opts)

    @property
    def bond(self) -> pulumi.Output[str]:
        """The id of the port that bonds its interfaces."""
        return self._output("bond")


# --- before anything is ordered -------------------------------------------------------------------------------------

NEXT_AVAILABLE = _orders.NEXT_AVAILABLE
ANY = _orders.ANY
MachineOrder = _orders.MachineOrder
AddressOrder = _orders.AddressOrder
NetworkOrder = _orders.NetworkOrder
Orders = _orders.Orders
BootFile = _plan.BootFile
LIVE_ISO_FILE = _plan.LIVE_ISO
MirroredFile = _mirror_files.MirroredFile
Plan = _plan.Plan
Server = _plan.Server
LOCAL_VM_MIB = _sizes.LOCAL_VM_MIB
LIVE_ISO_ARGUMENT = _live_iso.PLAIN_ARGUMENT
IGNITION_FILE = _initrd.IGNITION
initramfs_archive = _initrd.archive


class Preflight(_Resource):
    """Checks a stack, and fails with everything that is wrong. Let depend on it what is ordered."""

    def __init__(
        self, name: str, plan: Plan, *, run: pulumi.Input[str], opts: pulumi.ResourceOptions | None = None
    ) -> None:
        """`run` tells this installation from others of the same stack and cluster."""
        super().__init__(name, {**plan.to_wire(), "run": run}, opts)


def cost(
    orders: pulumi.Input[Mapping[str, Any]],
    *,
    prices: Mapping[str, Any] | None = None,
    source: str | None = None,
    opts: pulumi.InvokeOptions | None = None,
) -> pulumi.Output[dict[str, Any]]:
    """What orders (as `Orders.to_wire` has them) cost: {"currency", "hourly", "monthly", "hoursPerMonth", "installing"
    (per hour, with the bootstrap machine), "unknown" (what has no price), "source", "lines"}; docs/cost.md. `prices`
    take the place of the platform's list.
    """
    args = _wire({"orders": orders, "prices": prices, "source": source})
    return pulumi.runtime.invoke_output("metal-ipi:index:cost", args, opts)


# --- servers with a BMC ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class RedfishMachineArgs:
    """Arguments of `RedfishMachine`."""

    server: pulumi.Input[str]
    """Its name in the provider's section `bmcs`. A change replaces."""
    hostname: pulumi.Input[str]
    """Host name."""
    mac: pulumi.Input[str]
    """MAC address of the interface it boots from."""
    public_ipv4: pulumi.Input[str]
    """Its address."""
    private_ipv4: pulumi.Input[str] | None = None
    """Private address; not given: the same."""
    accept: pulumi.Input[str] = "empty"
    """`empty`: it must be switched off when it is claimed; `wipe`: whatever is on it may be lost."""
    minimum_memory_mib: pulumi.Input[float] | None = None
    """Memory it must have."""
    timeout_seconds: pulumi.Input[float] = 180
    """How long its BMC may be busy or out of reach before that is an error."""


class RedfishMachine(_Resource):
    """A server with a BMC, claimed for the cluster. Booting it is left to `Installation`; its end switches it off."""

    _outputs = ("machineId", "serial", "manufacturer", "model", "biosVersion", "memoryMib", "disks", "nics", "bootMode",
                "console", "publicIpv4", "privateIpv4")  # fmt: skip

    def __init__(self, name: str, args: RedfishMachineArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        inputs = {
            "server": args.server,
            "hostname": args.hostname,
            "mac": args.mac,
            "publicIpv4": args.public_ipv4,
            "privateIpv4": args.private_ipv4,
            "accept": args.accept,
            "minimumMemoryMib": args.minimum_memory_mib,
            "timeoutSeconds": args.timeout_seconds,
        }
        super().__init__(name, inputs, opts)

    @property
    def machine_id(self) -> pulumi.Output[str]:
        """`<server>/<UUID of its System>`."""
        return self._output("machineId")

    @property
    def serial(self) -> pulumi.Output[str | None]:
        """Serial number."""
        return self._output("serial")

    @property
    def manufacturer(self) -> pulumi.Output[str | None]:
        """Who made it."""
        return self._output("manufacturer")

    @property
    def model(self) -> pulumi.Output[str | None]:
        """Model."""
        return self._output("model")

    @property
    def bios_version(self) -> pulumi.Output[str | None]:
        """Version of its firmware."""
        return self._output("biosVersion")

    @property
    def memory_mib(self) -> pulumi.Output[float | None]:
        """Memory, in MiB."""
        return self._output("memoryMib")

    @property
    def disks(self) -> pulumi.Output[list[dict[str, Any]]]:
        """Its disks, {name, sizeBytes, model, serial, mediaType}, as far as its BMC knows them."""
        return self._output("disks")

    @property
    def nics(self) -> pulumi.Output[list[str]]:
        """MAC addresses of its interfaces."""
        return self._output("nics")

    @property
    def boot_mode(self) -> pulumi.Output[str | None]:
        """`bios` or `uefi`."""
        return self._output("bootMode")

    @property
    def console(self) -> pulumi.Output[str]:
        """Where to find its console: the BMC's host, and what it offers there. For people."""
        return self._output("console")

    @property
    def public_ipv4(self) -> pulumi.Output[str]:
        """Its address."""
        return self._output("publicIpv4")

    @property
    def private_ipv4(self) -> pulumi.Output[str]:
        """Its private address."""
        return self._output("privateIpv4")


# --- gates ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class GateNode:
    """A node a gate waits for, or whose logs it gathers when it fails."""

    name: pulumi.Input[str]
    """Host name."""
    address: pulumi.Input[str]
    """IP address SSH answers on."""
    host_key: pulumi.Input[str]
    """Pinned SSH host key, `ssh-ed25519 AAAA…`."""
    machine_id: pulumi.Input[str] | None = None
    """The platform's id: its events are watched for an Ignition failure."""
    console: pulumi.Input[str] | None = None
    """`<machine id>@<serial-over-SSH host>`; empty where there is none."""
    port: pulumi.Input[int] | None = None
    """SSH port, 22."""

    def to_wire(self) -> dict[str, Any]:
        return _wire(
            {
                "name": self.name,
                "address": self.address,
                "hostKey": self.host_key,
                "machineId": self.machine_id,
                "console": self.console,
                "port": self.port,
            }
        )


@dataclass(frozen=True, kw_only=True)
class GateLogs:
    """What a gate needs to gather logs when it fails. Optional everywhere but in `SshReachable`."""

    nodes: Sequence[GateNode] = ()
    """Nodes whose console and journal are gathered."""
    user: pulumi.Input[str] | None = None
    """SSH user, `core`."""
    private_key: pulumi.Input[str] | None = None
    """SSH key, OpenSSH PEM; also opens the consoles. Secret."""
    directory: pulumi.Input[str] | None = None
    """Absolute directory; logs go to `<directory>/<gate>/<node>.console.log`, readable by the owner only."""

    def to_wire(self) -> dict[str, Any]:
        return _wire(
            {
                "nodes": [node.to_wire() for node in self.nodes],
                "user": self.user,
                "privateKey": _secret(self.private_key),
                "logDirectory": self.directory,
            }
        )


def _secret(value: pulumi.Input[str] | None) -> pulumi.Output[str] | None:
    return None if value is None else pulumi.Output.secret(value)


class GateSpec(Protocol):
    """What a gate waits for."""

    kind: ClassVar[str]
    """The gate's kind on the wire."""

    def to_wire(self) -> dict[str, Any]:
        """The kind's specification on the wire."""
        ...


@dataclass(frozen=True, kw_only=True)
class SshReachable:
    """All nodes accept an SSH login with their pinned host keys. Fails early when a node's Ignition failed."""

    logs: GateLogs
    """The nodes, the user and the key to log in with."""
    kind: ClassVar[str] = "ssh-reachable"

    def to_wire(self) -> dict[str, Any]:
        return self.logs.to_wire()


@dataclass(frozen=True, kw_only=True)
class MachineConfigAccess:
    """Each node's machine config server answers the given networks and nobody else, which is tried from here."""

    logs: GateLogs
    """The nodes, the user and the key to log in with."""
    program: str
    """Absolute path of what takes the networks on each node, one per line: `<program> set`."""
    networks: pulumi.Input[Sequence[str]]
    """Addresses and CIDRs to let in."""
    addresses: Sequence[pulumi.Input[str]] = ()
    """Further addresses behind which the nodes are, and which must not answer, either."""
    kind: ClassVar[str] = "machine-config-access"

    def to_wire(self) -> dict[str, Any]:
        own = _wire({"program": self.program, "networks": self.networks, "addresses": list(self.addresses)})
        return {**self.logs.to_wire(), **own}


@dataclass(frozen=True, kw_only=True)
class AddressAnnounced:
    """All nodes announce an address over BGP, or one of them has it with ARP, and others have let go of it."""

    logs: GateLogs
    """The nodes, the user and the key to log in with."""
    leaving: GateLogs
    """Those that let go of the address once all nodes are able to serve it; they may be gone already."""
    address: pulumi.Input[str]
    """The IPv4 address."""
    mode: str
    """`bgp` or `arp`."""
    program: str
    """Absolute path of what answers on each node: `<program> status`, `<program> stop`."""
    kind: ClassVar[str] = "address-announced"

    def to_wire(self) -> dict[str, Any]:
        own = {"address": self.address, "mode": self.mode, "program": self.program}
        return {**self.logs.to_wire(), **own, "from": [node.to_wire() for node in self.leaving.nodes]}


@dataclass(frozen=True, kw_only=True)
class ApiAnswers:
    """An HTTPS URL answers 200."""

    url: pulumi.Input[str]
    """`https://api.<cluster>.<domain>:6443/readyz`."""
    ca_pem: pulumi.Input[str]
    """Certificates its TLS certificate must be signed by."""
    logs: GateLogs = field(default_factory=GateLogs)
    """Whose logs to gather on failure."""
    kind: ClassVar[str] = "api-answers"

    def to_wire(self) -> dict[str, Any]:
        return {**self.logs.to_wire(), "url": self.url, "caPem": self.ca_pem}


@dataclass(frozen=True, kw_only=True)
class ClusterCredentials:
    """How to reach a cluster's API as administrator."""

    url: pulumi.Input[str]
    """Base URL, `https://api.<cluster>.<domain>:6443`."""
    ca_pem: pulumi.Input[str]
    """Certificates the API's TLS certificate must be signed by."""
    client_cert_pem: pulumi.Input[str]
    """Client certificate."""
    client_key_pem: pulumi.Input[str]
    """Its key. Secret."""

    def to_wire(self) -> dict[str, Any]:
        return {
            "url": self.url,
            "caPem": self.ca_pem,
            "clientCertPem": self.client_cert_pem,
            "clientKeyPem": _secret(self.client_key_pem),
        }


@dataclass(frozen=True, kw_only=True)
class BootstrapComplete:
    """ConfigMap kube-system/bootstrap says `complete` (openshift/installer, create.go).

    Approves the certificate requests of the named nodes, and of no others.
    """

    credentials: ClusterCredentials
    """The cluster."""
    names: pulumi.Input[Sequence[pulumi.Input[str]]] = ()
    """Kubernetes node names of the control plane."""
    addresses: Mapping[str, pulumi.Input[Sequence[pulumi.Input[str]]]] | None = None
    """Node name to the IP addresses its serving certificate may name; not given, no address is accepted in one."""
    logs: GateLogs = field(default_factory=GateLogs)
    """Whose logs to gather on failure."""
    kind: ClassVar[str] = "bootstrap-complete"

    def to_wire(self) -> dict[str, Any]:
        own = _wire({"names": self.names, "addresses": self.addresses})
        return {**self.logs.to_wire(), **self.credentials.to_wire(), **own}


@dataclass(frozen=True, kw_only=True)
class NodesReady:
    """Each named node is Ready. Approves the certificate requests of these nodes, and of no others."""

    credentials: ClusterCredentials
    """The cluster."""
    names: pulumi.Input[Sequence[pulumi.Input[str]]]
    """Kubernetes node names."""
    addresses: Mapping[str, pulumi.Input[Sequence[pulumi.Input[str]]]] | None = None
    """Node name to the IP addresses its serving certificate may name; not given, no address is accepted in one."""
    logs: GateLogs = field(default_factory=GateLogs)
    """Whose logs to gather on failure."""
    kind: ClassVar[str] = "nodes-ready"

    def to_wire(self) -> dict[str, Any]:
        own = _wire({"names": self.names, "addresses": self.addresses})
        return {**self.logs.to_wire(), **self.credentials.to_wire(), **own}


@dataclass(frozen=True, kw_only=True)
class InstallComplete:
    """ClusterVersion is Available, not Failing and not Progressing, and stays so for `stability_seconds`."""

    credentials: ClusterCredentials
    """The cluster."""
    logs: GateLogs = field(default_factory=GateLogs)
    """Whose logs to gather on failure."""
    kind: ClassVar[str] = "install-complete"

    def to_wire(self) -> dict[str, Any]:
        return {**self.logs.to_wire(), **self.credentials.to_wire()}


@dataclass(frozen=True, kw_only=True)
class GateArgs:
    """Arguments of `Gate`."""

    spec: GateSpec
    """What to wait for."""
    timeout_seconds: pulumi.Input[float]
    """How long to wait before giving up."""
    stability_seconds: pulumi.Input[float] | None = None
    """How long it must stay so."""
    triggers: Sequence[pulumi.Input[Any]] = ()
    """A change of any of them makes the gate wait again, for all nodes."""
    aborts: bool = False
    """Without this one no cluster comes about: when it fails, all other gates of the update give up too."""
    gives_up_with: Sequence[str] = ()
    """Names of gates that run beside this one, and without which it cannot pass: it gives up when one of them fails."""


class Gate(_Resource):
    """Waits until something is so, tells what it waits for, and fails with cause and gathered logs."""

    _outputs = ("kind", "passedAt", "observed", "waitedSeconds")

    def __init__(self, name: str, args: GateArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        inputs = {
            "kind": args.spec.kind,
            "spec": args.spec.to_wire(),
            "timeoutSeconds": args.timeout_seconds,
            "stabilitySeconds": args.stability_seconds,
            "triggers": list(args.triggers),
            "aborts": args.aborts,
            "givesUpWith": list(args.gives_up_with) or None,
        }
        super().__init__(name, inputs, opts)

    @property
    def passed_at(self) -> pulumi.Output[str]:
        """When it passed, ISO 8601 in UTC."""
        return self._output("passedAt")

    @property
    def observed(self) -> pulumi.Output[str]:
        """What was seen when it passed."""
        return self._output("observed")

    @property
    def waited_seconds(self) -> pulumi.Output[float]:
        """How long it took."""
        return self._output("waitedSeconds")


# --- installation ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class ArtifactsPlace:
    """Some files of an `Artifacts`."""

    directory: pulumi.Input[str]
    """Its `directory`."""
    files: Sequence[str]
    """Their names."""
    hashes: pulumi.Input[Mapping[str, str]]
    """Its `hashes` of these: they tell when the files were uploaded once more."""

    def to_wire(self) -> dict[str, Any]:
        return {"directory": pulumi.Output.secret(self.directory), "files": list(self.files), "hashes": self.hashes}


@dataclass(frozen=True, kw_only=True)
class LiveFileArgs:
    """A file of the live system which installs, as a running node fetches it."""

    url: pulumi.Input[str]
    """Where it is."""
    sha256: pulumi.Input[str]
    """Its digest in hex."""

    def to_wire(self) -> dict[str, Any]:
        return {"url": self.url, "sha256": self.sha256}


@dataclass(frozen=True, kw_only=True)
class LiveSystemArgs:
    """The live system which installs, for a running node that is to go over to it by kexec."""

    kernel: LiveFileArgs
    """Its kernel."""
    initramfs: LiveFileArgs
    """Its initramfs."""
    arguments: pulumi.Input[Sequence[pulumi.Input[str]]]
    """Its kernel command line. Secret: it may name where its Ignition lies."""
    config: LiveFileArgs | None = None
    """The archive with its Ignition, which is unpacked after the initramfs; None: `arguments` name one. Secret."""

    def to_wire(self) -> dict[str, Any]:
        return {
            "kernel": self.kernel.to_wire(),
            "initramfs": self.initramfs.to_wire(),
            "arguments": pulumi.Output.secret(self.arguments),
            **({} if self.config is None else {"config": pulumi.Output.secret(self.config.to_wire())}),
        }


@dataclass(frozen=True, kw_only=True)
class InstalledSystemArgs:
    """What a machine runs: told in previews when it changes. What counts is `InstallationArgs.generation`."""

    release: pulumi.Input[str]
    """Release of the operating system."""
    kernel_arguments: pulumi.Input[Sequence[pulumi.Input[str]]]
    """Kernel arguments beside the image's own."""
    consoles: pulumi.Input[Sequence[pulumi.Input[str]]]
    """Consoles, `ttyS0,115200n8`."""
    ignition: pulumi.Input[str]
    """Digest of its Ignition."""
    install_device: pulumi.Input[Mapping[str, Any]]
    """The rules that its disk meets: as long as they stay, it stays on its disk."""
    installation: pulumi.Input[int] = 0
    """A number that is raised to have the same installed once more."""
    network: pulumi.Input[str] = ""
    """Its static network in words; empty where DHCP tells it."""

    def to_wire(self) -> dict[str, Any]:
        return {
            "network": self.network,
            "release": self.release,
            "kernelArguments": self.kernel_arguments,
            "consoles": self.consoles,
            "ignition": self.ignition,
            "installDevice": self.install_device,
            "installation": self.installation,
        }


@dataclass(frozen=True, kw_only=True)
class InstallationArgs:
    """Arguments of `Installation`. A changed `generation` installs the machine again.

    Where only `artifacts` changed they are deleted again; no other change does anything.
    """

    platform: pulumi.Input[str]
    """`redfish` or `equinix-metal`."""
    machine_id: pulumi.Input[str]
    """The platform's id. A change replaces: it is another machine."""
    hostname: pulumi.Input[str]
    """Short name, in messages and in the settings that consent."""
    node: pulumi.Input[str]
    """Its full name, which its node and its marker have."""
    role: str
    """`control-plane` or `worker`."""
    pool: pulumi.Input[str]
    """Machines which are installed again in turn, `max_unavailable` at once."""
    cluster: pulumi.Input[str]
    """`<cluster>.<domain>`; the marker on the machine names it."""
    generation: pulumi.Input[str]
    """16 hex digits that stand for all the machine runs."""
    runs: InstalledSystemArgs
    """The same, for people."""
    address: pulumi.Input[str]
    """IPv4 address SSH answers on, of the installed system and of the one that installs."""
    addresses: pulumi.Input[Sequence[pulumi.Input[str]]] | None = None
    """All IP addresses which the node's serving certificate may name; not given: `address`."""
    port: pulumi.Input[int] | None = None
    """SSH port, 22."""
    host_key: pulumi.Input[str]
    """Pinned SSH host key of the installed system."""
    live_host_key: pulumi.Input[str]
    """Pinned SSH host key of the live system which installs."""
    user: pulumi.Input[str] = "core"
    """SSH user of both, who may become root."""
    private_key: pulumi.Input[str]
    """SSH key, OpenSSH PEM. Secret."""
    live: LiveSystemArgs
    """What a running node goes over to in order to be installed again."""
    mac: pulumi.Input[str] | None = None
    """MAC address of the interface that boots; with `redfish`."""
    script: pulumi.Input[str] | None = None
    """iPXE script that boots the live system: published anew whenever the machine is sent there. Secret."""
    chain: pulumi.Input[str] | None = None
    """Text of the site's `boot.ipxe`; with `redfish`."""
    user_data: pulumi.Input[str] | None = None
    """User data of the installed system; with `equinix-metal`. Secret."""
    ipxe_script_url: pulumi.Input[str] | None = None
    """The iPXE script that boots the live system; with `equinix-metal`. Secret."""
    artifacts: Sequence[ArtifactsPlace]
    """This machine's uploaded files, deleted once it is installed: their `Artifacts` are `ephemeral`."""
    ordered: pulumi.Input[bool] = False
    """Whether making the machine has booted the live system already."""
    consent: pulumi.Input[bool] = False
    """Whether a control plane machine may be installed again."""
    accept: pulumi.Input[str] = "empty"
    """`wipe` where whatever answers at its address may be reset and wiped, also if it is not known."""
    disposable: pulumi.Input[bool] = False
    """Whether no cluster was formed yet: nothing is lost with what the machine runs, and nobody is asked before it is
    installed again."""
    keep: pulumi.Input[bool] = False
    """Whether one that may not goes on with what it runs, with a warning; else it is an error."""
    max_unavailable: pulumi.Input[int] = 1
    """How many machines of the pool may be away at once."""
    members: pulumi.Input[Sequence[pulumi.Input[str]]]
    """Node names of all machines of the role, this one included."""
    credentials: ClusterCredentials | None = None
    """The cluster, to drain the node and to see it join again. A first installation needs none."""
    drain_timeout_seconds: pulumi.Input[float] = 600
    """How long disruption budgets and terminating pods are waited for."""
    pre_reboot_commands: Sequence[pulumi.Input[str]] = ()
    """Shell commands run as root on the drained node before it goes; run again by an update that follows a killed one.
    Secret."""
    pxe_commands: Sequence[pulumi.Input[str]] = ()
    """Shell commands run here that boot the machine from the network, where no other way is left. Their environment
    has MACHINE, DOMAIN, NODE, MAC, ADDRESS, BMC_ADDRESS, BMC_USERNAME and BMC_PASSWORD."""
    check: pulumi.Input[str] | None = None
    """Shell script run on the node once it is installed again, before it takes pods; anything but 0 ends the roll."""
    log_directory: pulumi.Input[str] | None = None
    """Absolute directory; logs of a failed installation go to `<directory>/installation-<hostname>/`."""
    timeout_seconds: pulumi.Input[float] = 3600
    """How long the installation may take, and as long again until the node has joined."""
    valid_hours: pulumi.Input[float] = 24
    """How long an installer that was published, or started by kexec, begins its work; later it refuses to."""


class Installation(_Resource):
    """A machine's operating system on its disk, installed again when what it is to run changes."""

    _outputs = ("generation", "installedAt", "device", "via")

    def __init__(self, name: str, args: InstallationArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        inputs = {
            "platform": args.platform,
            "machineId": args.machine_id,
            "hostname": args.hostname,
            "node": args.node,
            "role": args.role,
            "pool": args.pool,
            "cluster": args.cluster,
            "generation": args.generation,
            "runs": args.runs.to_wire(),
            "address": args.address,
            "addresses": args.addresses,
            "port": args.port,
            "hostKey": args.host_key,
            "liveHostKey": args.live_host_key,
            "user": args.user,
            "privateKey": _secret(args.private_key),
            "live": args.live.to_wire(),
            "mac": args.mac,
            "script": _secret(args.script),
            "chain": args.chain,
            "userData": _secret(args.user_data),
            "ipxeScriptUrl": _secret(args.ipxe_script_url),
            "artifacts": [place.to_wire() for place in args.artifacts],
            "ordered": args.ordered,
            "consent": args.consent,
            "accept": args.accept,
            "disposable": args.disposable or None,
            "keep": args.keep,
            "maxUnavailable": args.max_unavailable,
            "members": args.members,
            "credentials": args.credentials.to_wire() if args.credentials else None,
            "drainTimeoutSeconds": args.drain_timeout_seconds,
            "preRebootCommands": pulumi.Output.secret(list(args.pre_reboot_commands)),
            "pxeCommands": pulumi.Output.secret(list(args.pxe_commands)),
            "check": args.check,
            "logDirectory": args.log_directory,
            "timeoutSeconds": args.timeout_seconds,
            "validHours": args.valid_hours,
        }
        super().__init__(name, inputs, opts)

    @property
    def generation(self) -> pulumi.Output[str]:
        """What it runs, as last seen; empty where its installation failed."""
        return self._output("generation")

    @property
    def installed_at(self) -> pulumi.Output[str]:
        """When it was installed, ISO 8601 in UTC."""
        return self._output("installedAt")

    @property
    def device(self) -> pulumi.Output[str]:
        """The disk it was installed to, by a stable path."""
        return self._output("device")

    @property
    def via(self) -> pulumi.Output[str]:
        """How it got into its installer: `order`, `network boot`, `kexec`, `reinstall`, `pxe-commands`; `found` where
        an interrupted run had installed it."""
        return self._output("via")


# --- removal --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class RemovalRecordArgs:
    """DNS values to withdraw."""

    zone: pulumi.Input[str]
    """The zone the record is in."""
    name: pulumi.Input[str]
    """Fully qualified, without trailing dot."""
    type: pulumi.Input[str]
    """A, AAAA, PTR, TXT or CNAME."""
    values: pulumi.Input[Sequence[pulumi.Input[str]]]
    """The values."""

    def to_wire(self) -> dict[str, Any]:
        return {"zone": self.zone, "name": self.name, "type": self.type, "values": self.values}


@dataclass(frozen=True, kw_only=True)
class RemovalArgs:
    """Arguments of `Removal`."""

    machine_id: pulumi.Input[str] | None = None
    """The machine to delete."""
    platform: pulumi.Input[str] = "equinix-metal"
    """Which driver deletes it."""
    records: Sequence[RemovalRecordArgs] = ()
    """DNS values to withdraw before the machine goes."""
    drain_seconds: pulumi.Input[float] = 0
    """How long to wait between the two: the records' TTL."""
    artifacts_directory: pulumi.Input[str] | None = None
    """`Artifacts.directory`."""
    artifacts_files: pulumi.Input[Sequence[pulumi.Input[str]]] | None = None
    """Names of its files to delete; the directory goes with the last one."""
    triggers: Sequence[pulumi.Input[Any]] = ()
    """A change of any of them removes everything named here once more."""
    timeout_seconds: pulumi.Input[float] = 1800
    """How long the machine may take to be gone."""


class Removal(_Resource):
    """Removes an ephemeral machine, its DNS values and its files. Let it depend on the gate they were needed for."""

    _outputs = ("removedAt",)

    def __init__(self, name: str, args: RemovalArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        inputs = {
            "machineId": args.machine_id,
            "platform": args.platform,
            "records": [record.to_wire() for record in args.records],
            "drainSeconds": args.drain_seconds,
            "artifactsDirectory": args.artifacts_directory,
            "artifactsFiles": args.artifacts_files,
            "triggers": list(args.triggers),
            "timeoutSeconds": args.timeout_seconds,
        }
        super().__init__(name, inputs, opts)

    @property
    def removed_at(self) -> pulumi.Output[str]:
        """When everything named was gone, ISO 8601 in UTC."""
        return self._output("removedAt")
