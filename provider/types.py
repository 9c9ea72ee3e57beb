"""The resource types of the metal-ipi provider, for programs.

Programs may import only this module of the package. Python names are snake_case; on the wire the same properties are
camelCase. Every resource takes `(name, args, opts)`; the args of `ClusterKeys` are optional. `provider.inputs` explains
which arguments may be outputs of other resources.
"""

from metal_ipi.provider.alike import alike, differences
from metal_ipi.provider.given import Secret
from metal_ipi.provider.ironic_settings import CREATES_RAID, DEPLOY_STEPS
from metal_ipi.provider.ironic_settings import NOT_OF_IPMI as STEPS_NOT_OF_IPMI
from metal_ipi.provider.ironic_settings import WIPING as WIPING_STEPS
from metal_ipi.provider.live_iso import PLAIN_ARGUMENT as LIVE_ISO_ARGUMENT
from metal_ipi.provider.live_iso.initrd import IGNITION as IGNITION_FILE
from metal_ipi.provider.live_iso.initrd import archive as initramfs_archive
from metal_ipi.provider.mirror_files import MirroredFile
from metal_ipi.provider.orders import ANY, CUSTOM_IPXE, NEXT_AVAILABLE, AddressOrder, MachineOrder, NetworkOrder, Orders
from metal_ipi.provider.preflight.plan import LIVE_ISO as LIVE_ISO_FILE
from metal_ipi.provider.preflight.plan import BootFile, MirrorSet, Plan, Server
from metal_ipi.provider.resources.artifacts import Artifacts, ArtifactsArgs
from metal_ipi.provider.resources.cluster_keys import ClusterKeys, ClusterKeysArgs
from metal_ipi.provider.resources.cost import cost
from metal_ipi.provider.resources.credentials import ClusterCredentials
from metal_ipi.provider.resources.dns_records import DnsRecordArgs, DnsRecords, DnsRecordsArgs, RemovalRecordArgs
from metal_ipi.provider.resources.ephemeral_machine import (
    EphemeralMachine,
    EphemeralMachineArgs,
    LentNodeArgs,
    LentServerArgs,
    LocalVmArgs,
)
from metal_ipi.provider.resources.gate import Gate, GateArgs
from metal_ipi.provider.resources.gate_kinds import (
    AddressAnnounced,
    ApiAnswers,
    BootstrapComplete,
    ClusterApiAvailable,
    GateLogs,
    GateNode,
    GateSpec,
    IngressAnswers,
    InstallComplete,
    MachineConfigAccess,
    NodesReady,
    ObjectReady,
    OperatorInstalled,
    SshReachable,
)
from metal_ipi.provider.resources.installation import (
    BEING_INSTALLED,
    ArtifactsPlace,
    Installation,
    InstallationArgs,
    InstalledSystemArgs,
)
from metal_ipi.provider.resources.installation_pool import InstallationPool, InstallationPoolArgs
from metal_ipi.provider.resources.ironic_machine import IronicMachine, IronicMachineArgs
from metal_ipi.provider.resources.lifetime import Lifetime, LifetimeArgs
from metal_ipi.provider.resources.live_system import LiveChecksArgs, LiveFileArgs, LiveSystemArgs, OwnLiveSystemArgs
from metal_ipi.provider.resources.mirror import Mirror, MirrorArgs
from metal_ipi.provider.resources.node_marks import NodeMarks, NodeMarksArgs, NodeMarksOfNode, TaintArgs
from metal_ipi.provider.resources.preflight import Preflight
from metal_ipi.provider.resources.provider import Provider, ProviderArgs
from metal_ipi.provider.resources.redfish_machine import RedfishMachine, RedfishMachineArgs
from metal_ipi.provider.resources.removal import Removal, RemovalArgs
from metal_ipi.provider.resources.service_credentials import ServiceCredentials, ServiceCredentialsArgs
from metal_ipi.provider.resources.spot_machine import SpotMachine, SpotMachineArgs
from metal_ipi.provider.sizes import LOCAL_VM_MIB

__all__ = [
    "ANY",
    "BEING_INSTALLED",
    "CREATES_RAID",
    "CUSTOM_IPXE",
    "DEPLOY_STEPS",
    "IGNITION_FILE",
    "LIVE_ISO_ARGUMENT",
    "LIVE_ISO_FILE",
    "LOCAL_VM_MIB",
    "NEXT_AVAILABLE",
    "STEPS_NOT_OF_IPMI",
    "WIPING_STEPS",
    "AddressAnnounced",
    "AddressOrder",
    "ApiAnswers",
    "Artifacts",
    "ArtifactsArgs",
    "ArtifactsPlace",
    "BootFile",
    "BootstrapComplete",
    "ClusterApiAvailable",
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
    "IngressAnswers",
    "InstallComplete",
    "Installation",
    "InstallationArgs",
    "InstallationPool",
    "InstallationPoolArgs",
    "InstalledSystemArgs",
    "IronicMachine",
    "IronicMachineArgs",
    "LentNodeArgs",
    "LentServerArgs",
    "Lifetime",
    "LifetimeArgs",
    "LiveChecksArgs",
    "LiveFileArgs",
    "LiveSystemArgs",
    "LocalVmArgs",
    "MachineConfigAccess",
    "MachineOrder",
    "Mirror",
    "MirrorArgs",
    "MirrorSet",
    "MirroredFile",
    "NetworkOrder",
    "NodeMarks",
    "NodeMarksArgs",
    "NodeMarksOfNode",
    "NodesReady",
    "ObjectReady",
    "OperatorInstalled",
    "Orders",
    "OwnLiveSystemArgs",
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
    "ServiceCredentials",
    "ServiceCredentialsArgs",
    "SpotMachine",
    "SpotMachineArgs",
    "SshReachable",
    "TaintArgs",
    "alike",
    "cost",
    "differences",
    "initramfs_archive",
]
