"""The resource types of the metal-ipi provider, as programs see them.

Only this module of the package may be imported by programs. Python names are snake_case; on the wire the same
properties are camelCase. Every resource takes `(name, args, opts)`, `ClusterKeys` without args; what may be an output
of another resource is said in `provider.inputs`.
"""

from provider.given import Secret
from provider.live_iso import PLAIN_ARGUMENT as LIVE_ISO_ARGUMENT
from provider.live_iso.initrd import IGNITION as IGNITION_FILE
from provider.live_iso.initrd import archive as initramfs_archive
from provider.mirror_files import MirroredFile
from provider.orders import ANY, NEXT_AVAILABLE, AddressOrder, MachineOrder, NetworkOrder, Orders
from provider.preflight.plan import LIVE_ISO as LIVE_ISO_FILE
from provider.preflight.plan import BootFile, Plan, Server
from provider.resources.artifacts import Artifacts, ArtifactsArgs
from provider.resources.cluster_keys import ClusterKeys, ClusterKeysArgs
from provider.resources.cost import cost
from provider.resources.credentials import ClusterCredentials
from provider.resources.dns_records import DnsRecordArgs, DnsRecords, DnsRecordsArgs, RemovalRecordArgs
from provider.resources.ephemeral_machine import EphemeralMachine, EphemeralMachineArgs, LentServerArgs, LocalVmArgs
from provider.resources.gate import Gate, GateArgs
from provider.resources.gate_kinds import (
    AddressAnnounced,
    ApiAnswers,
    BootstrapComplete,
    GateLogs,
    GateNode,
    GateSpec,
    InstallComplete,
    MachineConfigAccess,
    NodesReady,
    SshReachable,
)
from provider.resources.installation import ArtifactsPlace, Installation, InstallationArgs, InstalledSystemArgs
from provider.resources.lifetime import Lifetime, LifetimeArgs
from provider.resources.live_system import LiveFileArgs, LiveSystemArgs
from provider.resources.mirror import Mirror, MirrorArgs
from provider.resources.preflight import Preflight
from provider.resources.provider import Provider, ProviderArgs
from provider.resources.redfish_machine import RedfishMachine, RedfishMachineArgs
from provider.resources.removal import Removal, RemovalArgs
from provider.resources.spot_machine import SpotMachine, SpotMachineArgs
from provider.sizes import LOCAL_VM_MIB

__all__ = [
    "ANY",
    "IGNITION_FILE",
    "LIVE_ISO_ARGUMENT",
    "LIVE_ISO_FILE",
    "LOCAL_VM_MIB",
    "NEXT_AVAILABLE",
    "AddressAnnounced",
    "AddressOrder",
    "ApiAnswers",
    "Artifacts",
    "ArtifactsArgs",
    "ArtifactsPlace",
    "BootFile",
    "BootstrapComplete",
    "ClusterCredentials",
    "ClusterKeys",
    "ClusterKeysArgs",
    "DnsRecordArgs",
    "DnsRecords",
    "DnsRecordsArgs",
    "EphemeralMachine",
    "EphemeralMachineArgs",
    "Gate",
    "GateArgs",
    "GateLogs",
    "GateNode",
    "GateSpec",
    "InstallComplete",
    "Installation",
    "InstallationArgs",
    "InstalledSystemArgs",
    "LentServerArgs",
    "Lifetime",
    "LifetimeArgs",
    "LiveFileArgs",
    "LiveSystemArgs",
    "LocalVmArgs",
    "MachineConfigAccess",
    "MachineOrder",
    "Mirror",
    "MirrorArgs",
    "MirroredFile",
    "NetworkOrder",
    "NodesReady",
    "Orders",
    "Plan",
    "Preflight",
    "Provider",
    "ProviderArgs",
    "RedfishMachine",
    "RedfishMachineArgs",
    "Removal",
    "RemovalArgs",
    "RemovalRecordArgs",
    "Secret",
    "Server",
    "SpotMachine",
    "SpotMachineArgs",
    "SshReachable",
    "cost",
    "initramfs_archive",
]
