"""Settings that contradict each other for listed servers, on any platform."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from metal_ipi.provider.types import LIVE_ISO_ARGUMENT
from metal_ipi.stacks.platforms.listed import dual_stack, host_networks
from metal_ipi.stacks.platforms.listed.settings import Lend, ListedServers, LocalVm
from metal_ipi.stacks.problems import Found
from metal_ipi.stacks.sections import kernel_arguments
from metal_ipi.stacks.sections.api_address import KubeVip
from metal_ipi.stacks.sections.service_addresses import CloudController, MetalLbBgp

if TYPE_CHECKING:
    from metal_ipi.stacks.model import Settings

# Networks of two addresses (RFC 3021) have no network address and no broadcast address.
_SMALLEST_WITH_ENDS = 31


def conflicts(settings: Settings, platform: ListedServers[Any]) -> Found:
    """All conflicts of listed servers."""
    yield from _counts(settings, platform)
    yield from _disk(settings)
    yield from _unique(settings, platform)
    yield from _network(settings, platform)
    yield from _network_arguments(settings, platform)
    yield from _disk_encryption(settings, platform)
    yield from host_networks.conflicts(settings, platform)
    yield from _inside_the_cluster(settings, platform)
    yield from dual_stack.conflicts(settings, platform)
    yield from _bootstrap(settings, platform)
    yield from _in_place(settings, platform)
    yield from _without_bgp(settings, platform)


def _disk(settings: Settings) -> Found:
    if settings.boot.install is None:
        yield (
            "boot.install",
            "(not set)",
            "servers with a BMC are installed to disk, and no rule says to which disk",
            "set boot.install.device, for instance to {smallest: true}",
        )


def _counts(settings: Settings, platform: ListedServers[Any]) -> Found:
    for path, count, role in (
        ("controlPlane.count", settings.control_plane.count, "control-plane"),
        ("arbiter.count", settings.arbiter.count, "arbiter"),
        ("workers.count", settings.workers.count, "worker"),
    ):
        listed = len([server for server in platform.servers if server.role == role])
        if count != listed:
            yield (
                path,
                str(count),
                f"platform.servers lists {listed} of this role",
                "remove it: the list determines the number",
            )


def _unique(settings: Settings, platform: ListedServers[Any]) -> Found:
    """Names, addresses and other identifiers must be unique among the machines, the gateway and the API's own
    address."""
    bootstrap = platform.bootstrap
    rows = [(f"platform.servers[{index}]", server) for index, server in enumerate(platform.servers)]
    values = [(f"{path}.name", server.name) for path, server in rows]
    values += [(f"{path}.mac", server.mac) for path, server in rows]
    values += [(f"{path}.address", server.address) for path, server in rows]
    values += platform.reached()
    values += [
        (f"{path}.privateAddress", server.private_address)
        for path, server in rows
        if server.private_address is not None and server.private_address != server.address
    ]
    if platform.gateway is not None:
        values.append(("platform.gateway", platform.gateway))
    if isinstance(bootstrap, LocalVm):
        values += [("platform.bootstrap.mac", bootstrap.mac), ("platform.bootstrap.address", bootstrap.address)]
    values += settings.kept_addresses.items()
    seen: dict[str, str] = {}
    for path, value in values:
        if value in seen:
            yield path, value.strip(), f"{seen[value]} is the same", "give each its own"
        seen.setdefault(value, path)


def _network_arguments(settings: Settings, platform: ListedServers[Any]) -> Found:
    """If the settings define the network, kernel arguments must not define it again."""
    if platform.network_boot != "static" and not platform.host_networks:
        return
    said = "platform.networkBoot is static" if platform.network_boot == "static" else "servers have a networkConfig"
    for path, argument in settings.given_kernel_arguments:
        if kernel_arguments.name(argument) in kernel_arguments.NETWORK:
            yield (
                path,
                argument,
                f"{said}: the machine's network comes from the settings, and this contradicts it",
                "remove it, and set platform.gateway, prefix, nameservers and interface, and the server's address;"
                " or set platform.networkBoot to dhcp"
                if platform.network_boot == "static"
                else "remove it",
            )


def _disk_encryption(settings: Settings, platform: ListedServers[Any]) -> Found:
    """An installed system reads its static network from the disk, which Tang is needed to open."""
    encryption = settings.machine_config.disk_encryption
    said = "platform.networkBoot is static" if platform.network_boot == "static" else "servers have a networkConfig"
    if encryption is not None and encryption.tang and (platform.network_boot == "static" or platform.host_networks):
        yield (
            "machineConfig.diskEncryption.tang",
            ", ".join(each.url for each in encryption.tang),
            f"{said}: the network is set up from the disk, so that no Tang server is reached before the disk is open",
            "configure the machines' network by DHCP, or use only the TPM (tpm2)",
        )


def _network(settings: Settings, platform: ListedServers[Any]) -> Found:
    """Addresses must be in one network with the gateway, and a static network must be complete."""
    if platform.network_boot == "static":
        for name, value in (
            ("gateway", platform.gateway),
            ("prefix", platform.prefix),
            ("nameservers", platform.nameservers),
            ("interface", platform.interface),
        ):
            if not value:
                yield (
                    f"platform.{name}",
                    "(not set)",
                    "with networkBoot static machines get it only from this setting",
                    f"set platform.{name}, or networkBoot to dhcp",
                )
    elif platform.interface is not None:
        yield (
            "platform.interface",
            platform.interface,
            "with networkBoot dhcp it has no effect",
            "remove it, or set networkBoot to static",
        )
    network = platform.network
    if network is None:
        return
    places = [(f"platform.servers[{index}].address", server.address) for index, server in enumerate(platform.servers)]
    if isinstance(platform.bootstrap, LocalVm):
        places.append(("platform.bootstrap.address", platform.bootstrap.address))
    ends = (network[0], network[-1]) if network.prefixlen < _SMALLEST_WITH_ENDS else ()
    for path, value in settings.kept_addresses.items():
        if ipaddress.IPv4Address(value) not in ends:
            continue
        yield (
            path,
            value,
            f"it is the network or the broadcast address of {network} (platform.gateway, platform.prefix)",
            "give an address that a single host can have",
        )
    for path, address in [("platform.gateway", str(platform.gateway)), *places]:
        parsed = ipaddress.IPv4Address(address)
        if parsed not in network or parsed in ends:
            yield (
                path,
                address,
                f"no machine of the network {network} (platform.gateway, platform.prefix) can have it",
                "correct it, or gateway and prefix",
            )


def _inside_the_cluster(settings: Settings, platform: ListedServers[Any]) -> Found:
    """No machine can have an address that the cluster uses internally; the installer refuses such networks too
    (openshift/installer, pkg/types/validation/installconfig.go)."""
    taken = settings.install_config.networking.inside
    for path, network in _machine_networks(platform):
        for what, cidr in taken.items():
            if network.overlaps(ipaddress.ip_network(cidr)):
                yield (
                    path,
                    str(network if network.num_addresses > 1 else network.network_address),
                    f"the cluster uses it internally: {what} is {cidr}",
                    "use addresses of another network for the machines",
                )


def _machine_networks(platform: ListedServers[Any]) -> Iterator[tuple[str, ipaddress.IPv4Network]]:
    """The machines' network; or the single addresses, if the network is not known."""
    if platform.network is not None:
        yield "platform.prefix", platform.network
    for index, server in enumerate(platform.servers):
        if platform.network is None:
            yield f"platform.servers[{index}].address", ipaddress.IPv4Network(server.address)
        if server.private_address is not None:
            yield f"platform.servers[{index}].privateAddress", ipaddress.IPv4Network(server.private_address)


def _bootstrap(settings: Settings, platform: ListedServers[Any]) -> Found:
    bootstrap = platform.bootstrap
    if isinstance(bootstrap, LocalVm):
        yield from _local_vm(settings, platform, bootstrap)
    elif isinstance(bootstrap, Lend):
        yield from _lend(platform, bootstrap)


def _lend(platform: ListedServers[Any], bootstrap: Lend) -> Found:
    workers = [server.name for server in platform.of_role("worker")]
    if not workers:
        yield (
            "platform.bootstrap.type",
            "lend",
            "there is no worker whose server could be lent",
            "list a worker in platform.servers, or set type to local-vm",
        )
    elif bootstrap.server not in workers:
        yield (
            "platform.bootstrap.server",
            bootstrap.server,
            "it is not a worker of platform.servers",
            f"name one of: {', '.join(workers)}",
        )


def _local_vm(settings: Settings, platform: ListedServers[Any], bootstrap: LocalVm) -> Found:
    """A virtual machine gets its network, and what to boot, only from DHCP or from its boot image."""
    if settings.boot.architecture != "x86_64":
        yield (
            "platform.bootstrap.type",
            "local-vm",
            f"the virtual machine is an x86_64 one, and boot.architecture is {settings.boot.architecture}",
            "set it to lend, and server to a worker",
        )
    static = platform.network_boot == "static"
    if static and bootstrap.boot_image is None:
        yield (
            "platform.bootstrap.bootImage",
            "(not set)",
            "with networkBoot static no DHCP leads the virtual machine to its script",
            "set it to the path of an iPXE image (ISO) that sets the network, see docs/redfish.md",
        )
    if static and bootstrap.interface is None:
        yield (
            "platform.bootstrap.interface",
            "(not set)",
            "with networkBoot static the virtual machine gets it only from this setting",
            "set it to the name of its network card, enp1s0 for CoreOS on libvirt",
        )
    if not static and bootstrap.interface is not None:
        yield (
            "platform.bootstrap.interface",
            bootstrap.interface,
            "with networkBoot dhcp it has no effect",
            "remove it, or set networkBoot to static",
        )


def _in_place(settings: Settings, platform: ListedServers[Any]) -> Found:
    """Without a bootstrap machine the only server bootstraps itself."""
    if not platform.in_place:
        return
    if [server.role for server in platform.servers] != ["control-plane"]:
        yield (
            "platform.bootstrap.type",
            "none",
            "only a single node bootstraps itself, and platform.servers lists"
            f" {', '.join(server.name for server in platform.servers)}",
            "list one control plane machine and nothing else, or set type to lend, and server to a worker",
        )
    for name, otherwise in (("apiAddress", "dns-round-robin"), ("ingressAddress", "dns")):
        section = settings.api_address if name == "apiAddress" else settings.ingress_address
        if not isinstance(section, KubeVip):
            continue
        yield (
            f"{name}.type",
            "kube-vip",
            "with platform.bootstrap.type none the API is at the node's own address, before and after its "
            "installation; nothing could take over another address",
            f"set it to {otherwise}",
        )


def _without_bgp(settings: Settings, platform: ListedServers[Any]) -> Found:
    """Listed servers have no API that offers BGP peers or reserved addresses."""
    services = settings.service_addresses
    for name, section in (("apiAddress", settings.api_address), ("ingressAddress", settings.ingress_address)):
        if isinstance(section, KubeVip) and section.mode == "bgp" and not platform.in_place:
            yield (
                f"{name}.mode",
                "bgp",
                f"platform {settings.platform.type} has neither BGP peers nor addresses to reserve",
                f"set it to arp, and {name}.address to a free address of the machines' network",
            )
    if isinstance(services, MetalLbBgp):
        yield (
            "serviceAddresses.type",
            services.type,
            f"platform {settings.platform.type} has neither BGP peers nor addresses to reserve",
            "set it to metallb-l2, with pools of addresses of your own",
        )
    if isinstance(services, CloudController):
        yield (
            "serviceAddresses.type",
            services.type,
            f"platform {settings.platform.type} has no cloud controller",
            "set it to metallb-l2, with pools of addresses of your own, or to none",
        )


def live_iso(settings: Settings, platform: ListedServers[Any], *, by: str = "", otherwise: str = "") -> Found:
    """Find kernel arguments that a boot loader of the live ISO would change.

    `by` says which setting chose the live ISO, `otherwise` completes the remedy.
    """
    for argument in settings.boot.kernel_arguments if platform.live_iso_machines else ():
        if not re.fullmatch(LIVE_ISO_ARGUMENT, argument):
            yield (
                "boot.kernelArguments",
                argument,
                f"the boot loaders of CoreOS's live ISO{by} would not pass it on unchanged",
                f"use letters, digits and _ . / : = , + @ % ~ - only{otherwise}",
            )
