"""The field of install-config.yaml to which each setting is written. `stacks.assets.config` passes the settings on."""

from __future__ import annotations

from collections.abc import Mapping

from metal_ipi.components.install import install_config

NO_DISK = install_config.NO_DISK
"""The disk in a single node's bootstrapInPlace."""
SITE = "installConfig"
"""The section whose settings have the installer's own names."""
_SIZES = ("controlPlane.replicas", "arbiter.replicas", "compute[].replicas")
FIELDS: Mapping[str, tuple[str, ...]] = {
    "clusterName": ("metadata.name",),
    "baseDomain": ("baseDomain",),
    "platform.gateway": ("networking.machineNetwork[].cidr",),
    "platform.prefix": ("networking.machineNetwork[].cidr",),
    "platform.ipv6.network": ("networking.machineNetwork[].cidr",),
    "platform.bootstrap": ("bootstrapInPlace",),
    "platform.servers": (*_SIZES, "platform.baremetal.hosts[]"),
    "apiAddress: platform.address": ("platform.baremetal.apiVIPs",),
    "ingressAddress: platform.address": ("platform.baremetal.ingressVIPs",),
    "controlPlane.count": _SIZES[:1],
    "arbiter.count": _SIZES[1:2],
    "workers.count": _SIZES[2:],
    "boot.architecture": ("controlPlane.architecture", "arbiter.architecture", "compute[].architecture"),
    "install.pullSecret": ("pullSecret",),
    "install.fips": ("fips",),
    "ssh.authorizedKeys": ("sshKey",),
}
"""Settings that have our own names. `apiAddress: platform.address` is the setting `address` of type `platform`. `[]`
stands for the items of a list."""


def of(setting: str, kind: str = "") -> tuple[str, ...]:
    """The fields of install-config.yaml for a setting (`workers.count`), in a section of type `kind`; empty for most
    settings."""
    if kind and (found := FIELDS.get(setting.replace(".", f": {kind}.", 1))):
        return found
    section, _, name = setting.partition(".")
    return (name,) if section == SITE and name != "other" else FIELDS.get(setting, ())
