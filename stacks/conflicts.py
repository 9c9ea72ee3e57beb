"""Settings that are valid one by one, but contradict each other. All conflicts are reported, not only the first."""

from __future__ import annotations

import ipaddress
from itertools import chain

from metal_ipi.stacks import day_two_conflicts, sizes
from metal_ipi.stacks.cluster_api.refused import not_through_hubs
from metal_ipi.stacks.model import Settings
from metal_ipi.stacks.platforms.registry import facility
from metal_ipi.stacks.pools import conflicts as pools
from metal_ipi.stacks.problems import Found, Problem, problems_of
from metal_ipi.stacks.sections import kernel_arguments
from metal_ipi.stacks.sections.api_address import ExternalApi, KubeVip, PlatformApi, PlatformIngress
from metal_ipi.stacks.sections.service_addresses import (
    OPENSHIFT_CATALOG,
    MetalLbBgp,
    MetalLbL2,
    pools_that_hold,
)

_LONGEST_NAME = 63
_WHOSE = {"apiAddress": "API's", "ingressAddress": "routers'"}
_ONE_FAMILY = "the cluster has only IPv4 (installConfig.networking)"


def conflicts(settings: Settings) -> list[Problem]:
    """All conflicts between settings that are valid one by one."""
    found = (
        *(_names(settings), _service_addresses(settings), _consent(settings), _fips(settings)),
        *(_install_config(settings), _machine_config(settings), sizes.conflicts(settings)),
        *(_addresses(settings), _announced_ingress(settings), _platform(settings), _external(settings)),
        *(_live_checks(settings), not_through_hubs(settings), pools.conflicts(settings)),
    )
    site = facility(settings)
    return problems_of(chain(*found, site.conflicts(), day_two_conflicts.conflicts(settings, site)))


def _names(settings: Settings) -> Found:
    """Check the length of host names.

    The kubelet labels its node with the host name (kubernetes.io/hostname). The API limits labels to 63 characters
    (kubernetes, apimachinery pkg/util/validation), the kernel limits host names to 64.
    """
    names = (settings.full(f"{settings.cluster_name}-{machine}") for machine in ("bootstrap", *settings.machines))
    longest = max(names, key=len)
    if len(longest) > _LONGEST_NAME:
        yield (
            "clusterName",
            settings.cluster_name,
            f"the machine name {longest} has {len(longest)} characters, and a node's name can have at most "
            f"{_LONGEST_NAME}",
            "shorten clusterName, which machine names contain twice, or baseDomain",
        )


def _live_checks(settings: Settings) -> Found:
    if settings.preflight.live is not None and settings.boot.install is None:
        yield (
            "preflight.live",
            "set",
            "these checks run before machines are installed to disk, and boot.install is not set",
            "set boot.install, or leave it out",
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
    """Conflicts with FIPS mode. Source: openshift/installer, pkg/types/validation/installconfig.go; openshift/os,
    40rhcos-fips/rhcos-fips.sh."""
    for index, key in enumerate(settings.ssh.authorized_keys if settings.install.fips else ()):
        kind = key.split()[0]
        if not kind.startswith("ecdsa-sha2-nistp") and kind != "ssh-rsa":
            yield (
                f"ssh.authorizedKeys[{index}]",
                kind,
                "with install.fips the machines accept no key of this type",
                "give an ECDSA key (`ssh-keygen -t ecdsa`) or an RSA key",
            )
    for path, argument in settings.given_kernel_arguments:
        if kernel_arguments.name(argument) == "fips":
            yield (
                path,
                argument,
                "CoreOS sets this argument, and all else that FIPS mode needs, at its first boot",
                "remove it, and set install.fips",
            )


def _install_config(settings: Settings) -> Found:
    config, api = settings.install_config, settings.api_address
    if isinstance(api, ExternalApi) and api.ipv6_address is not None and not config.networking.has_ipv6:
        yield "apiAddress.ipv6Address", api.ipv6_address, _ONE_FAMILY, "remove it"
    for path, value, why, remedy in config.contradictions():
        yield f"installConfig.{path}", value, why, remedy
    count = len(settings.machines)
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
    for path, roles in settings.machine_config.given_roles:
        if "arbiter" in roles and not settings.arbiter.count:
            yield f"machineConfig.{path}", ", ".join(roles), "there is no arbiter", "take it out"
    if storage is None or settings.boot.install is None:
        return
    machines = [name for name in settings.machines if storage.roles is None or name.rpartition("-")[0] in storage.roles]
    if taken := [name for name in machines if settings.install_device(name).device_name == storage.device]:
        yield (
            "machineConfig.containerStorage.device",
            storage.device,
            f"the operating system of {', '.join(taken)} is installed to this disk",
            "name another disk",
        )


def _announced_ingress(settings: Settings) -> Found:
    """Limits of kube-vip for ingress: with ARP it needs a lease, for which only the control plane has credentials; with
    BGP a peer accepts only one session from a machine."""
    api, ingress, workers = settings.api_address, settings.ingress_address, settings.workers.count
    if not isinstance(ingress, KubeVip):
        return
    all_workers = sum(name.startswith("worker-") for name in settings.machines)
    if ingress.mode == "arp" and all_workers:
        yield (
            "ingressAddress.mode",
            "arp",
            f"the {all_workers} workers run the routers, and have no credentials for the lease that elects the "
            "machine that answers",
            "set ingressAddress.type to platform or external",
        )
    taken = {
        "serviceAddresses.type is metallb-bgp": isinstance(settings.service_addresses, MetalLbBgp),
        "apiAddress.mode is bgp, and there are no workers": isinstance(api, KubeVip)
        and api.mode == "bgp"
        and not workers,
    }
    for why, so in taken.items():
        if ingress.mode == "bgp" and so:
            yield (
                "ingressAddress.mode",
                "bgp",
                f"{why}: the same machines would have two sessions with the same peers, and a peer accepts one from "
                "each",
                "set ingressAddress.type to external or dns",
            )


def _addresses(settings: Settings) -> Found:
    """Source: openshift/installer, pkg/types/validation/installconfig.go, validateAPIAndIngressVIPs."""
    api, ingress = settings.api_address, settings.ingress_address
    address, external = getattr(ingress, "address", None), [each.type == "external" for each in (api, ingress)]
    # Two external addresses may belong to the same load balancer; and for listed servers the platform's own conflicts
    # report equal addresses.
    both_told = all(external) or (not any(external) and facility(settings).hosts)
    if address is not None and address == getattr(api, "address", None) and not both_told:
        yield (
            "ingressAddress.address",
            address,
            f"it is the API's address (apiAddress.address): {api.type} and {ingress.type} would both use it",
            "give another one",
        )
    if isinstance(api, PlatformApi) != isinstance(ingress, PlatformIngress):
        this, other = (
            ("apiAddress", "ingressAddress") if isinstance(api, PlatformApi) else ("ingressAddress", "apiAddress")
        )
        yield (
            f"{other}.type",
            (ingress if isinstance(api, PlatformApi) else api).type,
            f"{this}.type is platform, and OpenShift's platform baremetal manages either both addresses or none",
            f"set it to platform, too, and {other}.address to another free address of the machines' network",
        )


def _platform(settings: Settings) -> Found:
    """The requirements of OpenShift's platform baremetal. Source: openshift/installer,
    pkg/types/validation/installconfig.go, pkg/types/baremetal/validation, pkg/types/conversion."""
    if settings.platform_vips is None:
        return
    site = facility(settings)
    if site.in_place:
        yield (
            "apiAddress.type",
            "platform",
            "a single node that bootstraps itself uses platform none (bootstrapInPlace), and its API is at its own "
            "address",
            "set it to dns-round-robin, and ingressAddress.type to dns",
        )
    if not site.hosts:
        yield (
            "apiAddress.type",
            "platform",
            f"platform {settings.platform.type} gives each machine an address of a network of its own, and VRRP moves"
            " an address within one network",
            "set it to kube-vip, and ingressAddress.type to dns or external",
        )
    elif not site.machine_networks:
        yield (
            "platform.prefix",
            "(not set)",
            "the addresses of API and ingress must be in the machines' network, which is not set",
            "set platform.gateway and platform.prefix",
        )
    networks = [ipaddress.IPv4Network(each) for each in site.machine_networks if ":" not in each]
    for path, address in settings.named_addresses.items():
        if networks and not any(ipaddress.IPv4Address(address) in network for network in networks):
            yield (
                path,
                address,
                f"it is in none of the machines' networks ({', '.join(map(str, networks))}), which the installer "
                "requires",
                "use a free address of one of them",
            )
    yield from _capabilities(settings, "OpenShift's platform baremetal", "baremetal", "MachineAPI")


def _capabilities(settings: Settings, what: str, *needed: str) -> Found:
    given = settings.install_config.capabilities
    for name in needed:
        if given is not None and settings.lacks(name):
            yield (
                "installConfig.capabilities",
                ", ".join(given.additional_enabled_capabilities) or given.baseline_capability_set,
                f"{what} needs the capability {name}",
                "add it to additionalEnabledCapabilities",
            )


def _external(settings: Settings) -> Found:
    """The requirements of OpenShift's platform external. Sources: openshift/installer,
    pkg/types/validation/installconfig.go; kubernetes, staging/src/k8s.io/cloud-provider (the taint)."""
    config = settings.install_config
    if config.platform is None:
        return
    path, external = "installConfig.platform.external", config.platform.external
    others = {
        "apiAddress.type is platform, which uses the installer's platform baremetal": settings.platform_vips
        is not None,
        "a single node that bootstraps itself uses the installer's platform none": facility(settings).in_place,
    }
    for why, so in others.items():
        if so:
            yield path, external.platform_name, why, "remove it, or change that"
    yield from _capabilities(settings, path, "CloudCredential")
    if not external.cloud_controller_manager:
        return
    path = f"{path}.cloudControllerManager"
    if not settings.install.manifests:
        yield (
            path,
            external.cloud_controller_manager,
            "nodes would keep the taint node.cloudprovider.kubernetes.io/uninitialized, and most pods would not run "
            "on them: metal-ipi has no cloud controller manager that removes it",
            "add the manifests of such a manager to install.manifests, or remove this setting",
        )
    yield from _capabilities(settings, path, "CloudControllerManager")


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
            "without workers the control plane would announce service addresses, and it announces the API's address "
            "already (kube-vip): a peer accepts one session from a machine, not two",
            "set workers.count to 1 or more, or apiAddress.type to dns-round-robin or external",
        )
    for where, address in settings.named_addresses.items():
        for path, value in pools_that_hold(services.pools, address):
            yield (
                f"serviceAddresses.{path}",
                value,
                f"it holds {address}, the {_WHOSE[where.partition('.')[0]]} address ({where}): a service could get it",
                "exclude it, for instance by ranges before and after it",
            )
    for number, pool in enumerate(services.pools if not settings.install_config.networking.has_ipv6 else ()):
        for place, value in enumerate(pool.addresses):
            if ":" in value:
                path = f"serviceAddresses.pools[{number}].addresses[{place}]"
                yield path, value, f"no service could get an address of it: {_ONE_FAMILY}", "take it out"
    if services.install and settings.install.distribution == "okd" and services.catalog == OPENSHIFT_CATALOG:
        yield (
            "serviceAddresses.catalog",
            services.catalog,
            "OKD has no such catalogue, so the operator would never be installed",
            "set it to community-operators, or set install to false if MetalLB is installed already",
        )
