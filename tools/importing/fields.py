"""All fields that install-config.yaml and agent-config.yaml can have, and what each is converted to.

Sources, all in openshift/installer 4.19: data/data/install.openshift.io_installconfigs.yaml; and in pkg/types:
installconfig.go, machinepools.go, baremetal/platform.go, agent/agent_config_type.go. A test compares this list with
them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from metal_ipi.stacks import becomes
from tools.settings_reference import named, values

Kind = Literal["text", "number", "flag", "texts", "any", "section"]
"""The required type in YAML. `any` includes everything below; `section` is not a field, but has fields below it."""


@dataclass(frozen=True, kw_only=True)
class Field:
    """A field, and what it is converted to."""

    kind: Kind = "text"
    setting: str = ""
    """The setting that gets the value unchanged; `[]` stands for a list index."""
    same: tuple[object, ...] = ()
    """Values that need no setting, because they mean what this program does anyway."""
    why: str = ""
    """Why it is not converted; empty if a function of this package converts it."""
    remedy: str = ""
    """What to do instead."""


_PROVISIONING = Field(
    same=("Disabled", False),
    why="there is no provisioning network: servers boot in their own network, or from a disc that the BMC attaches",
    remedy="nothing, or choose platform.bmc.bootMethod",
)
_POOL: Mapping[str, Field] = {
    "name": Field(same=("master", "arbiter", "worker"), why="only the pools of control plane and workers are supported",
                  remedy="make it with the cluster's own tools, once it is installed"),
    "replicas": Field(kind="number"),
    "architecture": Field(),
    "hyperthreading": Field(),
    "platform": Field(kind="any", why="the machines are described in platform.servers", remedy="describe them there"),
    "fencing": Field(kind="any", why="two control plane machines that fence each other are not supported",
                     remedy="install one, two with an arbiter, or three to five"),
}  # fmt: skip
HINTS: Mapping[str, str] = {
    **{name: name for name in ("deviceName", "hctl", "model", "vendor", "wwn", "wwnWithExtension")},
    **{name: name for name in ("wwnVendorExtension", "rotational")},
    **{"serialNumber": "serial", "minSizeGigabytes": "minSize"},
}
"""Root device hint to the name of the same rule in our disk rules."""
_HINT_KINDS: Mapping[str, Kind] = {"rotational": "flag", "minSizeGigabytes": "number"}
_BMC: Mapping[str, Field] = {
    **dict.fromkeys(("address", "username", "password"), Field()),
    "disableCertificateVerification": Field(
        kind="flag",
        same=(False,),
        why="credentials are sent to the BMC, so its certificate is always verified",
        remedy="set platform.bmc.ca to the authority of its certificate, or `fingerprint` in the server's bmc to that "
        "of the certificate",
    ),
}
_OF_HOSTS: Mapping[str, Field] = {
    **{f"bmc.{name}": field for name, field in _BMC.items()},
    **{f"rootDeviceHints.{name}": Field(kind=_HINT_KINDS.get(name, "text")) for name in HINTS},
    "role": Field(),
    "networkConfig": Field(kind="any"),
}
_NAME = Field(
    why="the names of machines follow from cluster and role: <cluster>-control-plane-0",
    remedy="nothing to do; platform.servers has the hosts of a role in the order of the file",
)
_IMAGE = Field(
    why="machines boot the files that CoreOS's stream metadata name",
    remedy="set boot.streamUrl or boot.streamFile; name files of yours in a stream document of yours",
)
_OTHER_CLOUD = Field(kind="any", why="only bare metal is supported", remedy="use the installer for such a cluster")
_REFUSED = "on bare metal the installer refuses it, or it has no effect"
_PLATFORM: Mapping[str, Field] = {
    **dict.fromkeys(("libvirtURI", "externalBridge", "externalMACAddress", "apiVIP", "ingressVIP"), Field()),
    **{f"bootstrapExternalStatic{name}": Field() for name in ("IP", "Gateway", "DNS")},
    **dict.fromkeys(("bootstrapOSImage", "clusterOSImage"), _IMAGE),
    **dict.fromkeys(("bootstrapProvisioningIP", "clusterProvisioningIP", "provisioningHostIP"), _PROVISIONING),
    **{
        f"provisioning{name}": _PROVISIONING
        for name in ("Bridge", "DHCPRange", "MACAddress", "Network", "NetworkCIDR", "NetworkInterface")
    },
    "provisioningDHCPExternal": replace(_PROVISIONING, kind="flag"),
    "additionalNTPServers": Field(kind="texts"),
    "defaultMachinePlatform": Field(kind="any", why="it has no effect on bare metal", remedy="nothing to do"),
    "apiVIPs": Field(kind="texts"),
    "ingressVIPs": Field(kind="texts"),
    "loadBalancer.type": Field(),
    "hosts[].name": _NAME,
    "hosts[].bootMACAddress": Field(),
    "hosts[].bootMode": Field(),
    "hosts[].hardwareProfile": Field(same=("default", "unknown"), why="hardware profiles only chose a disk",
                                     remedy="set the server's installDevice"),
    **{f"hosts[].{name}": field for name, field in _OF_HOSTS.items()},
}  # fmt: skip


def _becomes() -> Iterator[tuple[str, Field]]:
    """Yields the installer fields that correspond to exactly one setting: the reverse of `becomes`."""
    kinds: Mapping[str, Kind] = {"whole number": "number", "`true` or `false`": "flag"}
    for setting, field in values():
        found, words = becomes.of(setting), named(field.annotation)
        if len(found) == 1 and setting not in _TAKEN_BY_FUNCTIONS:
            kind: Kind = "texts" if words.startswith("list of") else kinds.get(words, "text")
            yield found[0], Field(kind=kind, setting=setting)


_TAKEN_BY_FUNCTIONS = (
    *(
        "platform.gateway",
        "platform.prefix",
        "platform.bootstrap",
        "controlPlane.count",
        "arbiter.count",
        "workers.count",
    ),
    *("install.pullSecret", "ssh.authorizedKeys", "baseDomain"),
    *(f"{becomes.SITE}.proxy.{name}" for name in ("httpProxy", "httpsProxy")),
)
_SOURCES = {"source": Field(), "mirrors": Field(kind="texts")}
_OLD = Field(why="the field that has replaced it is set as well, and is used", remedy="nothing to do")
INSTALL_CONFIG: dict[str, Field] = {
    **dict(_becomes()),
    "apiVersion": Field(
        same=("v1", "v1beta3", "v1beta4"),
        why="the installer has no such version",
        remedy="nothing to do, if it is one of v1",
    ),
    "kind": Field(same=("InstallConfig",), why="the installer does not read it", remedy="nothing to do"),
    **dict.fromkeys(("baseDomain", "pullSecret", "sshKey", "proxy.httpProxy", "proxy.httpsProxy"), Field()),
    **{f"arbiter.{name}": field for name, field in _POOL.items()},
    "bootstrapInPlace.installationDisk": Field(same=(becomes.NO_DISK,)),
    **{f"controlPlane.{name}": field for name, field in _POOL.items()},
    **{f"compute[].{name}": field for name, field in _POOL.items()},
    "publish": Field(same=("External",), why=_REFUSED, remedy="nothing to do"),
    "credentialsMode": Field(why=_REFUSED, remedy="nothing to do"),
    "operatorPublishingStrategy": Field(kind="any", why=_REFUSED, remedy="nothing to do"),
    **{f"imageContentSources[].{name}": field for name, field in _SOURCES.items()},
    "networking.machineNetwork[].cidr": Field(),
    **dict.fromkeys(("networking.machineCIDR", "networking.type", "networking.serviceCIDR"), _OLD),
    "networking.clusterNetwork[].hostSubnetLength": replace(_OLD, kind="number"),
    "networking.clusterNetworks[].cidr": _OLD,
    **{
        f"networking.clusterNetworks[].{name}": replace(_OLD, kind="number")
        for name in ("hostPrefix", "hostSubnetLength")
    },
    "networking.clusterNetworkMTU": Field(
        kind="number",
        why="the installer accepts it on AWS only",
        remedy="give it as a manifest of the network operator (install.manifests)",
    ),
    **{f"platform.baremetal.{name}": field for name, field in _PLATFORM.items()},
    "platform.none": Field(kind="any", why="the installer reads nothing in it", remedy="nothing to do"),
    **{
        f"platform.{name}": _OTHER_CLOUD
        for name in ("aws", "azure", "gcp", "ibmcloud", "nutanix", "openstack", "ovirt", "powervs", "vsphere")
    },
}
INSTALL_CONFIG["featureSet"] = replace(INSTALL_CONFIG["featureSet"], same=("Default",))
AGENT_CONFIG: dict[str, Field] = {
    "apiVersion": Field(
        same=("v1beta1", "v1alpha1"),
        why="the installer has no such version",
        remedy="nothing to do, if it is one of v1beta1",
    ),
    "kind": Field(same=("AgentConfig",), why="the installer does not read it", remedy="nothing to do"),
    "metadata.name": Field(),
    "metadata.namespace": Field(why="there is no such namespace here", remedy="nothing to do"),
    "additionalNTPSources": Field(kind="texts"),
    "rendezvousIP": Field(),
    "bootArtifactsBaseURL": Field(),
    "minimalISO": Field(
        kind="flag",
        same=(False,),
        why="there is no ISO to attach by hand; a BMC gets a disc of about 100 MB",
        remedy="nothing to do; or set platform.bmc.bootMethod: live-iso",
    ),
    "hosts[].hostname": _NAME,
    "hosts[].interfaces[].name": Field(),
    "hosts[].interfaces[].macAddress": Field(),
    **{f"hosts[].{name}": field for name, field in _OF_HOSTS.items()},
    **{f"hosts[].BMC.{name}": field for name, field in _BMC.items()},
}
"""The installer's Go types give `bmc` no JSON name, so it reads both spellings."""
