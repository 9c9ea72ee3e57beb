"""The facility's addresses and names. Documentation and benchmarking ranges only: none of them is routed anywhere."""

from __future__ import annotations

BRIDGE = "facility0"
GATEWAY = "192.0.2.1"
INFRASTRUCTURE = "192.0.2.0/24"
INFRASTRUCTURE_PREFIX = 24
API = "192.0.2.10"
METADATA = "192.0.2.11"
BOOT = "192.0.2.12"
SOS = "192.0.2.13"
KUBERNETES = "192.0.2.14"
HUB = "192.0.2.15"
DNS = "192.0.2.53"
PROXY = "192.0.2.55"
PROXY_PORT = 3128

BMCS = "192.0.2.64/27"
"""The BMCs of a rack, from the first address on; SERVERS has those of the servers themselves, in the same order."""
SERVERS = "192.0.2.96/27"
WIDE, WIDE_GATEWAY = "198.19.0.0/16", "198.19.0.1"
WIDE_BMCS, WIDE_SERVERS = "198.19.64.0/18", "198.19.128.0/18"
"""The network of a rack for which there is no room in the infrastructure's, on the same bridge; IPv4 only."""
INFRASTRUCTURE_IPV6 = "2001:db8:64::/64"
GATEWAY_IPV6 = "2001:db8:64::1"
SERVERS_IPV6 = "2001:db8:64::60/123"
"""What servers have besides, in the order of SERVERS."""
ELASTIC = "192.0.2.128/26"
"""Elastic addresses, which projects reserve: routed to whoever announces them."""
CLIENTS = "192.0.2.192/26"
"""Clients outside of the facility, in /31 pairs: the facility's side is even."""
BGP_ASN = 65530
BGP_PEERS = ("169.254.255.1", "169.254.255.2")
"""Metal's AS number and its two top-of-rack routers, as every device sees them."""
BGP_MAX_PREFIX = 10
"""Routes that a device may announce; more end its session."""

ZONE = "facility.test"
BOOT_NAME = f"boot.{ZONE}"
KUBERNETES_NAME = f"kubernetes.{ZONE}"
KUBERNETES_PORT = 7443
"""Where machines ask for an API server; the servers themselves have other ports of the same address."""
HUB_NAME = f"hub.{ZONE}"
HUB_PORT = 6443
HUB_BALANCED = "192.0.2.16/28"
"""Addresses for the hub's Services of type LoadBalancer."""
HUB_SERVICES = "10.96.0.0/16"
HUB_PODS = "10.244.0.0/24"
"""Inside of the hub only: it goes out behind its own address."""
REGISTRY_NAME = f"registry.{ZONE}"
REGISTRY_PORT = 5000
REGISTRY = f"{REGISTRY_NAME}:{REGISTRY_PORT}"
MIRROR = "192.0.2.54"
MIRROR_NAME = f"mirror.{ZONE}"
MIRROR_REGISTRY = f"{MIRROR_NAME}:{REGISTRY_PORT}"
"""The site's registry of images, in a lab that is disconnected."""
NAMESERVER = f"ns1.{ZONE}"
METRO = "lb"
FACILITY = "lab1"

TLS_NAMES = {
    "api.equinix.com": API,
    "metadata.packet.net": METADATA,
    "metadata.platformequinix.com": METADATA,
    BOOT_NAME: BOOT,
    MIRROR_NAME: MIRROR,
    REGISTRY_NAME: HUB,
    KUBERNETES_NAME: KUBERNETES,
}
"""Names that get a server certificate, with the address behind each."""
OF_THE_SITE = (BOOT_NAME, MIRROR_NAME)
"""Those whose certificate is of the facility's own authority, which no machine trusts by itself."""

REVERSE_ZONES = (
    "100.51.198.in-addr.arpa",  # 198.51.100.0/24, public addresses of machines
    "113.0.203.in-addr.arpa",  # 203.0.113.0/24, private ones
    "18.198.in-addr.arpa",  # 198.18.0.0/15, what does not fit above
    "19.198.in-addr.arpa",
    "0.0.0.0.4.6.0.0.8.b.d.0.1.0.0.2.ip6.arpa",  # INFRASTRUCTURE_IPV6
)

STATIC_RECORDS: dict[str, tuple[tuple[str, str, str], ...]] = {
    ZONE: (
        ("ns1", "A", DNS),
        ("boot", "A", BOOT),
        ("kubernetes", "A", KUBERNETES),
        ("hub", "A", HUB),
        ("registry", "A", HUB),
        ("proxy", "A", PROXY),
        ("mirror", "A", MIRROR),
    ),
    "equinix.com": (("api", "A", API),),
    "packet.net": (("metadata", "A", METADATA),),
    "platformequinix.com": (("metadata", "A", METADATA), (f"sos.{FACILITY}", "A", SOS), ("sos.lab2", "A", SOS)),
    "2.0.192.in-addr.arpa": (
        ("1", "PTR", f"gateway.{ZONE}."),
        ("10", "PTR", "api.equinix.com."),
        ("11", "PTR", "metadata.packet.net."),
        ("12", "PTR", f"{BOOT_NAME}."),
        ("14", "PTR", f"{KUBERNETES_NAME}."),
        ("15", "PTR", f"{HUB_NAME}."),
        ("53", "PTR", f"{NAMESERVER}."),
        ("55", "PTR", f"proxy.{ZONE}."),
        ("54", "PTR", f"{MIRROR_NAME}."),
    ),
    **{zone: () for zone in REVERSE_ZONES},
    # The root, empty: a name of the outside world does not exist here, and says so at once instead of timing out.
    ".": (),
}
"""Every zone that the DNS serves, with the records it is born with: (owner relative to the zone, type, data)."""

UPDATABLE_ZONES = (ZONE, *REVERSE_ZONES, "2.0.192.in-addr.arpa")
"""Zones that take RFC 2136 updates with the lab's TSIG key."""

_OUTSIDE = ("equinix.com", "packet.net", "platformequinix.com")


def zones(*, disconnected: bool) -> tuple[str, ...]:
    """The zones that are served; in a lab that is disconnected, those of the site, and the empty root."""
    return tuple(zone for zone in STATIC_RECORDS if not (disconnected and zone in _OUTSIDE))


def is_of_the_site(name: str) -> bool:
    """Whether a name that somebody looks up, without its final dot, is one of the site's. Nobody outside has a name of
    one label, or one below localhost (RFC 6761)."""
    return "." not in name or any(f".{name}".endswith(f".{zone}") for zone in (*UPDATABLE_ZONES, "localhost"))
