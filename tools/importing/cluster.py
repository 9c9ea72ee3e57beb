"""Converts the fields of install-config.yaml that concern the whole cluster."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass

from tools.importing.taking import Place, Taking

_DEFAULT_REPLICAS = 3
"""Default number of machines in a pool; for arbiters the default is 0 (openshift/installer,
pkg/types/defaults/machinepools.go)."""
_ARCHITECTURES = {"amd64": "x86_64", "arm64": "aarch64"}
_NO_IPV4 = "clusters with IPv6 only are not supported"
# The kernel arguments of the installer's own MachineConfig for this
# (pkg/asset/machines/machineconfig/hyperthreading.go).
_WITHOUT_HYPERTHREADING = ["nosmt", "smt-enabled=off"]


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """Number of machines per role, and the fields that say so."""

    control_plane: int
    arbiters: int
    workers: int
    places: dict[str, Place]


def take(taking: Taking, install: Place, agent: Place | None) -> Sizes:
    """Converts the fields of the whole cluster. Returns the sizes, because a list of servers also determines them."""
    domain, secret = install.below("baseDomain"), install.below("pullSecret")
    if domain.text:
        taking.put("baseDomain", domain.text.rstrip("."), domain)
    if secret.text:
        taking.secret("install.pullSecret", secret)
    keys = install.below("sshKey")
    if keys.text:
        lines = [line.strip() for line in keys.text.splitlines()]
        taking.put("ssh.authorizedKeys", [line for line in lines if line and not line.startswith("#")], keys)
    _proxy(taking, install.below("proxy"))
    _networks(taking, install.below("networking"))
    _time(taking, install, agent)
    for number, each in enumerate(install.below("imageContentSources").items):
        for name in ("source", "mirrors"):
            place = each.below(name)
            if place.value:
                taking.put(f"installConfig.imageDigestSources[{number}].{name}", place.value, place)
    return _pools(taking, install)


def _time(taking: Taking, install: Place, agent: Place | None) -> None:
    places = [install.below("platform").below("baremetal").below("additionalNTPServers")]
    places += [] if agent is None else [agent.below("additionalNTPSources")]
    given = [place for place in places if place.value]
    servers = dict.fromkeys(str(server) for place in given for server in place.value)
    if servers:
        taking.put("machineConfig.ntpServers", list(servers), *given)
        taking.tell(
            given[0], "nodes use only these time servers, and no longer CoreOS's own", "add those that are missing"
        )


def _proxy(taking: Taking, proxy: Place) -> None:
    for name in ("httpProxy", "httpsProxy"):
        place = proxy.below(name)
        if not place.text:
            continue
        if "@" in place.text:
            taking.secret(f"installConfig.proxy.{name}", place)
        else:
            taking.put(f"installConfig.proxy.{name}", place.text, place)


def _networks(taking: Taking, networking: Place) -> None:
    """Converts the networks. Obsolete field names are mapped to today's, as in openshift/installer,
    pkg/types/conversion/installconfig.go."""
    to = "installConfig.networking"
    kind = _given(networking, "networkType", "type")
    if kind is not None:
        plain = kind.text
        taking.put(f"{to}.networkType", "OVNKubernetes" if plain.lower() == "ovnkubernetes" else plain, kind)
    pods = _given(networking, "clusterNetwork", "clusterNetworks")
    for number, each in enumerate(pods.items if pods is not None else []):
        cidr, prefix, length = each.below("cidr"), each.below("hostPrefix"), each.below("hostSubnetLength")
        if cidr.text:
            taking.put(f"{to}.clusterNetwork[{number}].cidr", cidr.text, cidr)
        if prefix.value:
            taking.put(f"{to}.clusterNetwork[{number}].hostPrefix", prefix.value, prefix)
        elif length.value:
            bits = 128 if ":" in cidr.text else 32
            taking.put(f"{to}.clusterNetwork[{number}].hostPrefix", bits - length.value, length)
    services, old = networking.below("serviceNetwork"), networking.below("serviceCIDR")
    if not services.value and old.text:
        taking.put(f"{to}.serviceNetwork", [old.text], old)


def _given(place: Place, *names: str) -> Place | None:
    """The first of the named fields that has a value; None if none has."""
    return next((found for name in names if (found := place.below(name)).value), None)


def _pools(taking: Taking, install: Place) -> Sizes:
    """Converts the machine pools of all roles. `Taking.rest` reports the fields of other pools."""
    compute = install.below("compute").items
    workers = next((pool for pool in compute if pool.below("name").text in ("", "worker")), None)
    pools = {"controlPlane": install.below("controlPlane"), "arbiter": install.below("arbiter")}
    pools |= {} if workers is None else {"workers": workers}
    architectures: list[str] = []
    for section, pool in pools.items():
        place, threads = pool.below("architecture"), pool.below("hyperthreading")
        if threads.text == "Disabled":
            taking.put(f"{section}.kernelArguments", _WITHOUT_HYPERTHREADING, threads)
        elif threads.text == "Enabled":
            taking.done(threads)
        ours = _ARCHITECTURES.get(place.text)
        if place.text and ours is None:
            taking.tell(place, "only amd64 and arm64 are supported", "use the installer for such a cluster")
        elif ours is not None and architectures and ours != architectures[0]:
            taking.tell(place, "all machines are of one architecture", "install a cluster of one, add others later")
        elif ours is not None:
            architectures.append(ours)
            taking.put("boot.architecture", ours, place)
    counts = {section: pool.below("replicas") for section, pool in pools.items()}
    count = {section: place.value for section, place in counts.items() if place.value is not None}
    return Sizes(
        control_plane=count.get("controlPlane", _DEFAULT_REPLICAS),
        arbiters=count.get("arbiter", 0),
        workers=count.get("workers", _DEFAULT_REPLICAS),
        places={section: place for section, place in counts.items() if place.value is not None},
    )


def addresses(taking: Taking, baremetal: Place) -> None:
    """Converts how the API and the ingress are reached. Platform none has no fields for that."""
    api, ingress = _given(baremetal, "apiVIPs", "apiVIP"), _given(baremetal, "ingressVIPs", "ingressVIP")
    balancer = baremetal.below("loadBalancer").below("type")
    if api is None:
        taking.choose(
            "apiAddress.type",
            "dns-round-robin",
            "the API's names point to all control plane machines; set external and its address for a load balancer of"
            " yours, or kube-vip, mode arp and a free address",
        )
        return
    if balancer.text != "UserManaged":
        taking.done(balancer)
    if ingress is not None:
        kind, place = ("external", balancer) if balancer.text == "UserManaged" else ("platform", api)
        taking.put("ingressAddress.type", kind, *([place] if kind == "external" else [ingress]))
        taking.put("apiAddress.type", kind, place)
        _address(taking, "ingressAddress", ingress)
    elif balancer.text == "UserManaged":
        taking.put("apiAddress.type", "external", balancer)
    else:
        taking.put("apiAddress.type", "kube-vip", api)
        taking.put("apiAddress.mode", "arp")
    _address(taking, "apiAddress", api)


def _address(taking: Taking, section: str, vips: Place) -> None:
    first, *others = vips.value if isinstance(vips.value, list) else [vips.text]
    taking.put(f"{section}.address", str(first), vips)
    if others and taking.settings[section]["type"] == "external" and section == "apiAddress":
        taking.put("apiAddress.ipv6Address", str(others[0]), vips)
    elif others:
        taking.tell(vips, f"only an IPv4 address is supported there: only {first} is converted")


def machine_network(taking: Taking, networking: Place, prefix: int | None, gateway: str) -> None:
    """Checks the machine networks against the gateway and prefix, which may come from single hosts."""
    listed = [each.below("cidr") for each in networking.below("machineNetwork").items]
    places = [place for place in (listed or [networking.below("machineCIDR")]) if place.text]
    for place in places:
        try:
            network = ipaddress.ip_network(place.text, strict=False)
        except ValueError:
            taking.tell(place, "it is not a network", "set platform.gateway and platform.prefix")
            continue
        if network.version == 6 and _first_ipv4(places) is None:
            taking.tell(place, _NO_IPV4, "add the machines' IPv4 network, and import again")
        elif network.version == 6 and place == next(each for each in places if ":" in each.text):
            taking.put("platform.ipv6.network", str(network), place)
        elif place != _first_ipv4(places):
            taking.tell(place, "all machines are in one network", "set platform.gateway and platform.prefix to one")
        elif not gateway:
            taking.put("platform.prefix", network.prefixlen, place)
            taking.tell(place, "its prefix length is converted; the rest follows from the gateway, and the files have "
                "no gateway for all machines", "set platform.gateway, if the machines have a common one")  # fmt: skip
        elif prefix is None:
            taking.put("platform.prefix", network.prefixlen, place)
        elif _is_in(gateway, prefix, network):
            taking.done(place)
        else:
            taking.tell(place, f"platform.gateway and platform.prefix have other values: {gateway}/{prefix}",
                        "nothing, or correct them")  # fmt: skip


def _is_in(gateway: str, prefix: int, network: ipaddress.IPv4Network | ipaddress.IPv6Network) -> bool:
    """Whether it is the network of the gateway. An invalid gateway is reported with the settings."""
    try:
        return ipaddress.IPv4Network(f"{gateway}/{prefix}", strict=False) == network
    except ValueError:
        return False


def _first_ipv4(places: Sequence[Place]) -> Place | None:
    return next((place for place in places if ":" not in place.text), None)
