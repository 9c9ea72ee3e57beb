"""What cannot go together although each setting by itself is right. All conflicts are told, not only the first."""

from __future__ import annotations

from itertools import chain

from metal_ipi.stacks import day_two_conflicts
from metal_ipi.stacks.cluster_api.refused import not_through_hubs
from metal_ipi.stacks.model import Settings
from metal_ipi.stacks.platforms.registry import facility
from metal_ipi.stacks.problems import Found, Problem, problems_of
from metal_ipi.stacks.sections import kernel_arguments
from metal_ipi.stacks.sections.api_address import DnsRoundRobin, ExternalApi, KubeVip
from metal_ipi.stacks.sections.service_addresses import (
    OPENSHIFT_CATALOG,
    MetalLbBgp,
    MetalLbL2,
    pools_that_hold,
)

_LONGEST_NAME = 63
_ONE_FAMILY = "the cluster has IPv4 alone (installConfig.networking)"
_EVERY_RELEASES, _MORE_SINCE = 3, 18
"""The largest control plane of all releases, and the first 4.x that has larger ones."""


def conflicts(settings: Settings) -> list[Problem]:
    """All conflicts of settings that are valid one by one."""
    found = (
        *(_names(settings), _service_addresses(settings), _consent(settings), _fips(settings)),
        *(_install_config(settings), _machine_config(settings), _size(settings), not_through_hubs(settings)),
    )
    site = facility(settings)
    return problems_of(chain(*found, site.conflicts(), day_two_conflicts.conflicts(settings, site)))


def _names(settings: Settings) -> Found:
    """The kubelet labels its node with the host name (kubernetes.io/hostname), and the API takes no longer label
    (kubernetes, apimachinery pkg/util/validation); the kernel takes host names of up to 64 characters."""
    names = (settings.full(f"{settings.cluster_name}-{machine}") for machine in ("bootstrap", *settings.machines))
    longest = max(names, key=len)
    if len(longest) > _LONGEST_NAME:
        yield (
            "clusterName",
            settings.cluster_name,
            f"a machine would be called {longest}, which has {len(longest)} characters, and a node's name has up to"
            f" {_LONGEST_NAME}",
            "shorten clusterName, which machines' names have twice, or baseDomain",
        )


def _size(settings: Settings) -> Found:
    """Source: openshift/installer's PR 9154, and openshift-docs' 85895, both of 4.18."""
    count, release = settings.control_plane.count, settings.openshift_version
    if count > _EVERY_RELEASES and int(release.split(".")[1]) < _MORE_SINCE:
        yield (
            "controlPlane.count",
            str(count),
            f"OpenShift has larger control planes than 3 from 4.{_MORE_SINCE} on, and openshiftVersion is {release}",
            "have 3",
        )


def _consent(settings: Settings) -> Found:
    known = [name for name in settings.machines if not name.startswith("worker-")]
    for index, name in enumerate(settings.reprovision.consent):
        if name.removeprefix(f"{settings.cluster_name}-") not in known:
            yield (
                f"reprovision.consent[{index}]",
                name,
                "there is no such control plane machine",
                f"name one of: {', '.join(known)} (workers need no consent)",
            )


def _fips(settings: Settings) -> Found:
    """Source: openshift/installer, pkg/types/validation/installconfig.go; openshift/os, 40rhcos-fips/rhcos-fips.sh."""
    for index, key in enumerate(settings.ssh.authorized_keys if settings.install.fips else ()):
        kind = key.split()[0]
        if not kind.startswith("ecdsa-sha2-nistp") and kind != "ssh-rsa":
            yield (
                f"ssh.authorizedKeys[{index}]",
                kind,
                "with install.fips the machines take no key of this type",
                "give an ECDSA key (`ssh-keygen -t ecdsa`) or an RSA key",
            )
    for path, argument in settings.given_kernel_arguments:
        if kernel_arguments.name(argument) == "fips":
            yield (
                path,
                argument,
                "an installed CoreOS sets it by itself, with what belongs to it, at its first boot",
                "remove it, and set install.fips",
            )


def _install_config(settings: Settings) -> Found:
    config, api = settings.install_config, settings.api_address
    if isinstance(api, ExternalApi) and api.ipv6_address is not None and not config.networking.has_ipv6:
        yield "apiAddress.ipv6Address", api.ipv6_address, _ONE_FAMILY, "remove it"
    for path, value, why, remedy in config.contradictions():
        yield f"installConfig.{path}", value, why, remedy
    count = settings.control_plane.count + settings.workers.count
    if config.networking.nodes < count:
        yield (
            "installConfig.networking.clusterNetwork",
            ", ".join(f"{each.cidr} by /{each.host_prefix}" for each in config.networking.cluster_network),
            f"it has room for {config.networking.nodes} nodes, and there are {count}",
            "give a larger network, or a longer hostPrefix",
        )


def _machine_config(settings: Settings) -> Found:
    encryption, storage = settings.machine_config.disk_encryption, settings.machine_config.container_storage
    if encryption is not None and settings.boot.install is None:
        yield (
            "machineConfig.diskEncryption",
            "given",
            "machines without a disk run from memory, and have no root file system to encrypt",
            "set boot.install, or remove it",
        )
    if storage is None or settings.boot.install is None:
        return
    machines = [name for name in settings.machines if name.rpartition("-")[0] in storage.roles]
    if taken := [name for name in machines if settings.install_device(name).device_name == storage.device]:
        yield (
            "machineConfig.containerStorage.device",
            storage.device,
            f"the system of {', '.join(taken)} is installed to it",
            "name another disk",
        )


def _service_addresses(settings: Settings) -> Found:
    services, api = settings.service_addresses, settings.api_address
    if not isinstance(services, MetalLbBgp | MetalLbL2):
        return
    if (
        isinstance(services, MetalLbBgp)
        and isinstance(api, KubeVip)
        and api.mode == "bgp"
        and settings.workers.count == 0
    ):
        yield (
            "serviceAddresses.type",
            services.type,
            "without workers the control plane would announce service addresses, and it announces the API's address"
            " already (kube-vip): a peer takes one session from a machine, not two",
            "set workers.count to 1 or more, or apiAddress.type to dns-round-robin or external",
        )
    address = None if isinstance(api, DnsRoundRobin) else api.address
    for number, pool in enumerate(services.pools if not settings.install_config.networking.has_ipv6 else ()):
        for place, value in enumerate(pool.addresses):
            if ":" in value:
                path = f"serviceAddresses.pools[{number}].addresses[{place}]"
                yield path, value, f"no service could have it: {_ONE_FAMILY}", "take it out"
    for path, value in pools_that_hold(services.pools, address):
        yield (
            f"serviceAddresses.{path}",
            value,
            f"it holds {address}, the API's address (apiAddress.address): a service could be given it",
            "leave it out, for instance by giving ranges before and after it",
        )
    if services.install and settings.install.distribution == "okd" and services.catalog == OPENSHIFT_CATALOG:
        yield (
            "serviceAddresses.catalog",
            services.catalog,
            "OKD has no such catalogue, and the operator would be waited for in vain",
            "set it to community-operators, or install to false where MetalLB is there already",
        )
