"""MachineConfigs that many sites need, made from settings: time servers, encrypted disks, extensions, a disk for
containers.

Each is the same as Butane's result for its own options (coreos/butane, config/openshift); tests/conformance compares
them. They use Ignition's specification 3.2, which all supported releases accept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from metal_ipi.components.boot.ignition import data_url
from metal_ipi.components.machines.node import POOLS, Role

_CHRONY = """\
{servers}
driftfile /var/lib/chrony/drift
makestep 1.0 3
rtcsync
logdir /var/log/chrony
"""
_CONTAINERS = "var-lib-containers"
_MOUNT = """\
[Unit]
Requires=systemd-fsck@dev-disk-by\\x2dpartlabel-var\\x2dlib\\x2dcontainers.service
After=systemd-fsck@dev-disk-by\\x2dpartlabel-var\\x2dlib\\x2dcontainers.service

[Mount]
Where=/var/lib/containers
What=/dev/disk/by-partlabel/var-lib-containers
Type=xfs
Options=defaults,prjquota

[Install]
RequiredBy=local-fs.target"""


@dataclass(frozen=True, kw_only=True)
class Tang:
    """A Tang server, which an encrypted disk needs to be opened."""

    url: str
    thumbprint: str


@dataclass(frozen=True, kw_only=True)
class DiskEncryption:
    """How root disks are encrypted. They open if `threshold` of the TPM and the Tang servers are available."""

    roles: Sequence[Role]
    tpm2: bool
    tang: Sequence[Tang]
    threshold: int
    fips: bool
    """Whether to use a cipher that FIPS allows."""


@dataclass(frozen=True, kw_only=True)
class ContainerStorage:
    """The disk for /var/lib/containers; `device` is a path below /dev/disk."""

    roles: Sequence[Role]
    device: str


@dataclass(frozen=True, kw_only=True)
class MachineConfigs:
    """What nodes of these roles (`control-plane`, `worker`) have from their first boot on."""

    roles: Sequence[Role]
    """The roles that get time servers and extensions."""
    ntp_servers: Sequence[str] = ()
    extensions: Sequence[str] = ()
    disk_encryption: DiskEncryption | None = None
    container_storage: ContainerStorage | None = None


def manifests(wanted: MachineConfigs) -> dict[str, str]:
    """The manifests by file name: one for each pool and feature."""
    return {
        f"99-{pool}-{what}.yaml": yaml.safe_dump(_machine_config(pool, what, spec))
        for what, roles, spec in _specs(wanted)
        for pool in (POOLS[role] for role in roles)
    }


def _specs(wanted: MachineConfigs) -> Iterator[tuple[str, Sequence[Role], Mapping[str, Any]]]:
    if wanted.ntp_servers:
        text = _CHRONY.format(servers="\n".join(f"server {each} iburst" for each in wanted.ntp_servers))
        file = {"path": "/etc/chrony.conf", "mode": 0o644, "overwrite": True, "contents": {"source": data_url(text)}}
        yield "chrony", wanted.roles, _ignition(storage={"files": [file]})
    if wanted.extensions:
        yield "extensions", wanted.roles, {"extensions": list(wanted.extensions), **_ignition()}
    if wanted.disk_encryption is not None:
        yield "disk-encryption", wanted.disk_encryption.roles, _encrypted(wanted.disk_encryption)
    if wanted.container_storage is not None:
        yield "container-storage", wanted.container_storage.roles, _for_containers(wanted.container_storage)


def _encrypted(wanted: DiskEncryption) -> Mapping[str, Any]:
    """Ignition creates the root file system again, on an encrypted volume, at the first boot from disk."""
    tang = [{"url": each.url, "thumbprint": each.thumbprint} for each in wanted.tang]
    volume: dict[str, Any] = {
        "name": "root",
        "label": "luks-root",
        "device": "/dev/disk/by-partlabel/root",
        "wipeVolume": True,
        "clevis": {"tpm2": wanted.tpm2, "threshold": wanted.threshold, **({"tang": tang} if tang else {})},
        **({"options": ["--cipher", "aes-cbc-essiv:sha256"]} if wanted.fips else {}),
    }
    root = {"device": "/dev/mapper/root", "format": "xfs", "label": "root", "wipeFilesystem": True}
    return _ignition(storage={"luks": [volume], "filesystems": [root]})


def _for_containers(wanted: ContainerStorage) -> Mapping[str, Any]:
    """One partition over the whole disk. Nothing is wiped: Ignition accepts only an empty disk, or its own
    partition."""
    partition = {"label": _CONTAINERS, "number": 1, "sizeMiB": 0, "startMiB": 0}
    filesystem = {
        "device": f"/dev/disk/by-partlabel/{_CONTAINERS}",
        "path": "/var/lib/containers",
        "format": "xfs",
        "mountOptions": ["defaults", "prjquota"],
    }
    return _ignition(
        storage={
            "disks": [{"device": wanted.device, "wipeTable": False, "partitions": [partition]}],
            "filesystems": [filesystem],
        },
        systemd={"units": [{"name": f"{_CONTAINERS}.mount", "enabled": True, "contents": _MOUNT}]},
    )


def _ignition(**config: Any) -> Mapping[str, Any]:
    return {"config": {"ignition": {"version": "3.2.0"}, **config}}


def _machine_config(pool: str, what: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "MachineConfig",
        "metadata": {
            "name": f"99-{pool}-{what}",
            "labels": {"machineconfiguration.openshift.io/role": pool},
        },
        "spec": dict(spec),
    }
