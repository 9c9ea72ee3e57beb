"""From a hub's settings to the arguments of the components on it."""

from __future__ import annotations

import pulumi

from metal_ipi.components.provisioning import contract
from metal_ipi.components.provisioning.contract import IronicArgs
from metal_ipi.stacks.hub import sections
from metal_ipi.stacks.hub.sections import HubSettings
from metal_ipi.stacks.sections.base import REHEARSAL, revealed

_NO_IMAGE = "rehearsal.invalid/image"


def arguments(settings: HubSettings) -> IronicArgs:
    """The arguments of the provisioning service."""
    given = settings.provisioning
    kubeconfig = settings.hub.kubeconfig.get_secret_value() if settings.hub.kubeconfig else ""
    return IronicArgs(
        kubeconfig="" if kubeconfig == REHEARSAL else kubeconfig,
        namespace=given.namespace,
        images=contract.Images(
            ironic=given.images.ironic or _NO_IMAGE,
            database=given.images.database or _NO_IMAGE,
            files=given.images.files or _NO_IMAGE,
            dhcp=given.images.dhcp or _NO_IMAGE,
        ),
        access=_access(given),
        tls=_tls(given),
        rotation=given.rotation,
        conductors=given.conductors,
        conductor_group=given.conductor_group,
        drivers=given.drivers,
        automated_cleaning=given.automated_cleaning,
        database=_database(given),
        image_cache=_image_cache(given.image_cache),
        dhcp=_dhcp(given.dhcp),
        ramdisk=contract.Ramdisk(**dict(given.ramdisk)),
        ca=given.ca or "",
        plain_boot_files=given.plain_boot_files,
        pin_release=given.pin_release,
        extra=given.extra_config,
        log_level=given.log_level,
        metrics=contract.Metrics(**dict(given.metrics)) if given.metrics else None,
        operator=contract.Operator(**dict(given.operator)) if given.operator else None,
    )


def _access(given: sections.Provisioning) -> contract.NodePorts | contract.LoadBalancer:
    access = given.access
    if isinstance(access, sections.AtLoadBalancer):
        return contract.LoadBalancer(address=access.address, files=access.files, annotations=access.annotations)
    address = access.address or f"{REHEARSAL}.invalid"
    return contract.NodePorts(address=address, api=access.api, files=access.files, images=access.images)


def _tls(given: sections.Provisioning) -> contract.MadeTls | contract.GivenTls:
    tls = given.tls
    if isinstance(tls, sections.GivenTls):
        key = pulumi.Output.secret(revealed(tls.private_key))
        return contract.GivenTls(ca=tls.ca, certificate=tls.certificate, private_key=key)
    return contract.MadeTls(valid_days=tls.valid_days, renew_before_days=tls.renew_before_days)


def _database(given: sections.Provisioning) -> contract.OwnDatabase | contract.GivenDatabase:
    database = given.database
    if isinstance(database, sections.OwnDatabase):
        return contract.OwnDatabase(storage=database.storage, storage_class=database.storage_class)
    return contract.GivenDatabase(
        host=database.host,
        port=database.port,
        name=database.name,
        username=database.username,
        password=pulumi.Output.secret(revealed(database.password)),
        ca=database.ca,
    )


def _image_cache(given: sections.ImageCache | None) -> contract.ImageCache | None:
    if given is None:
        return None
    images = [contract.CachedImage(name=each.name, url=each.url, sha256=each.sha256) for each in given.images]
    return contract.ImageCache(
        images=images, storage=given.storage, storage_class=given.storage_class, ca=given.ca or ""
    )


def _dhcp(given: sections.Dhcp | None) -> contract.Dhcp | None:
    if given is None:
        return None
    return contract.Dhcp(
        interface=given.interface,
        ranges=[each.replace("-", ",") for each in given.ranges],
        gateway=given.gateway,
        nameservers=given.nameservers,
        lease_seconds=given.lease_seconds,
    )
