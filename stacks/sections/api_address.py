"""How the API is reached, and ingress: what the cluster serves to its users (`*.apps`)."""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from metal_ipi.stacks.sections.base import IPv4, IPv6, Section, matching, wrong

KUBE_VIP_IMAGE = "ghcr.io/kube-vip/kube-vip:v0.9.2"
_BROADCAST = ipaddress.IPv4Address("255.255.255.255")


def _of_one_host(value: str) -> str:
    address = ipaddress.ip_address(value)
    kinds = {
        "the unspecified address": address.is_unspecified,
        "a loopback address": address.is_loopback,
        "a link-local address": address.is_link_local,
        "a multicast address": address.is_multicast,
        "the broadcast address": address == _BROADCAST,
    }
    kind = next((kind for kind, so in kinds.items() if so), None)
    if kind is not None:
        raise wrong(f"it is {kind}, which no machine can have", "give an address that a single host can have")
    return value


def _pinned(value: str) -> str:
    if not re.fullmatch(r"[\w./:@-]+", value, re.ASCII):
        raise wrong("it is not a name of an image", f"write it as podman does: {KUBE_VIP_IMAGE}")
    if not re.fullmatch(r"\S+@sha256:[0-9a-f]{64}|[^\s@]+:(?!latest$)[\w.-]+", value):
        raise wrong("it is not pinned", f"name a version or a digest: {KUBE_VIP_IMAGE} or <image>@sha256:<digest>")
    return value


def _cidr(value: str) -> str:
    try:
        ipaddress.ip_network(value)
    except ValueError as error:
        raise wrong(f"'{value}' is not a network: {error}", "write a CIDR such as 10.64.0.0/24") from None
    return value


_Interface = Annotated[
    str,
    matching(
        r"[A-Za-z0-9_.-]{1,15}",
        "it is not a name of an interface",
        "give it as `ip link` on the machines shows it, e.g. bond0.10",
    ),
]
HostIPv4 = Annotated[IPv4, AfterValidator(_of_one_host)]
"""An IPv4 address at which a single host can be reached."""
HostIPv6 = Annotated[IPv6, AfterValidator(_of_one_host)]
"""An IPv6 address at which a single host can be reached."""


class DnsRoundRobin(Section):
    """The API's names resolve to all control plane machines."""

    type: Literal["dns-round-robin"] = "dns-round-robin"


class KubeVip(Section):
    """An address that control plane machines announce while their API servers answer."""

    type: Literal["kube-vip"] = "kube-vip"
    mode: Literal["bgp", "arp"] = Field(
        default="bgp",
        description=(
            "bgp: each control plane machine announces it as a route; arp: one machine at a time answers for "
            "it, in a network that contains all of them and the clients (or their router)"
        ),
    )
    address: HostIPv4 | None = Field(
        default=None,
        description=(
            "an IPv4 address that your network routes to the machine that announces it; not set: the platform "
            "reserves one (only bgp)"
        ),
    )
    interface: _Interface | None = Field(
        default=None,
        description=(
            "with arp: the machines' network interface to answer on; not set: that of the default route. If "
            "OpenShift has attached it to a bridge such as br-ex, the bridge answers"
        ),
    )
    image: Annotated[str, AfterValidator(_pinned)] = Field(
        default=KUBE_VIP_IMAGE, description="kube-vip's image, pinned by tag or, better, by digest"
    )
    hold_seconds: int = Field(
        default=3, ge=3, le=180, description="seconds without a message after which a machine counts as lost"
    )
    keepalive_seconds: int = Field(
        default=1, ge=1, le=60, description="seconds between two such messages; at most a third of holdSeconds"
    )

    @model_validator(mode="after")
    def _mode(self) -> KubeVip:
        if self.mode == "arp" and self.address is None:
            raise wrong(
                "it is needed with mode arp: a platform's reserved addresses are routed, and not resolved by ARP",
                "give an address of the network that the machines share, and that nothing else uses",
                at="address",
            )
        if self.mode == "bgp" and self.interface is not None:
            raise wrong("with mode bgp the address is on no network's interface", "remove it", at="interface")
        return self

    @model_validator(mode="after")
    def _several_keepalives(self) -> KubeVip:
        if 3 * self.keepalive_seconds > self.hold_seconds:
            raise wrong(
                f"it is more than a third of holdSeconds ({self.hold_seconds})",
                "lower it, or raise holdSeconds: a single lost message must not count as a lost machine",
                at="keepaliveSeconds",
            )
        return self


class MachineConfigServer(Section):
    """Who may fetch the machines' configuration (22623, 22624). It contains secrets, and the server does not
    authenticate clients."""

    allowed_networks: tuple[Annotated[str, AfterValidator(_cidr)], ...] = Field(
        default=(),
        strict=False,
        description=(
            "networks (CIDR) that get access in addition to the cluster's own machines, e.g. that of a load balancer"
        ),
    )


class ExternalApi(Section):
    """A load balancer of your facility."""

    type: Literal["external"] = "external"
    address: HostIPv4 = Field(
        description=(
            "its IPv4 address; it must forward port 6443, and port 22623 from inside only, to those of the "
            "bootstrap machine and the control plane machines that answer /readyz and /healthz"
        )
    )
    ipv6_address: HostIPv6 | None = Field(
        default=None, description="with dual stack: its IPv6 address; not set: the API has only an IPv4 address"
    )


class PlatformApi(Section):
    """An address that OpenShift's platform baremetal announces: static pods move it (VRRP) to a node with an API
    server."""

    type: Literal["platform"] = "platform"
    address: HostIPv4 = Field(
        description=(
            "a free IPv4 address of the machines' network (platform.gateway, platform.prefix); needs "
            "ingressAddress.type platform"
        )
    )


class DnsIngress(Section):
    """`*.apps` resolves to all machines that may run routers: the workers, or the control plane if there are none."""

    type: Literal["dns"] = "dns"


class KubeVipIngress(KubeVip):
    """An address that machines announce while a router is ready on them."""

    mode: Literal["bgp", "arp"] = Field(
        default="bgp",
        description=(
            "bgp: each machine with a router announces it as a route; arp: one machine at a time answers for "
            "it, in a network that contains all of them; only without workers"
        ),
    )


class ExternalIngress(Section):
    """A load balancer of your facility."""

    type: Literal["external"] = "external"
    address: HostIPv4 = Field(
        description=(
            "its IPv4 address; it must forward ports 80 and 443 to those workers (without workers: control "
            "plane machines) that answer /healthz/ready on port 1936"
        )
    )


class PlatformIngress(Section):
    """An address that OpenShift's platform baremetal announces: static pods move it (VRRP) to a node with a router."""

    type: Literal["platform"] = "platform"
    address: HostIPv4 = Field(
        description=(
            "a free IPv4 address of the machines' network, different from the API's; needs apiAddress.type platform"
        )
    )
