"""What a node must be, as variables of the script that checks it (`provider.node_check`)."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

_AFTERBURN_WAIT = 120


@dataclass(frozen=True, kw_only=True)
class Expectation:
    """What a node must be, as plain values."""

    hostname: str
    """Its full name."""
    metadata_hostname: str
    """The host name in the platform's metadata."""
    public_ipv4: str
    """Its public address according to the platform."""
    private_ipv4: str
    """Its private address according to the platform."""
    platform_id: str
    """Ignition's platform id."""
    release: str | None
    """The CoreOS release. None for a node that was left on another release."""
    kernel_arguments: tuple[str, ...]
    """Arguments that must be on the kernel command line."""
    links: tuple[str, ...] = ()
    """Bonds and VLANs that must exist, in the form of `HostNetwork.links`."""
    fips: bool = False
    """Whether its kernel must be in FIPS mode."""
    ipv6: str | None = None
    """The IPv6 address that it must have, together with a default route. None: IPv6 is not checked."""
    generation: str | None = None
    """The generation that must be installed on its disk. None for a node that runs from memory."""


def variables(expectation: Expectation) -> dict[str, str]:
    """The expectation as the script's variables."""
    return {
        "EXPECTED_HOSTNAME": expectation.hostname,
        "EXPECTED_METADATA_HOSTNAME": expectation.metadata_hostname,
        "EXPECTED_PUBLIC_IPV4": expectation.public_ipv4,
        "EXPECTED_PRIVATE_IPV4": expectation.private_ipv4,
        "EXPECTED_PLATFORM": expectation.platform_id,
        "EXPECTED_RELEASE": expectation.release or "",
        "EXPECTED_KERNEL_ARGUMENTS": " ".join(expectation.kernel_arguments),
        "EXPECTED_GENERATION": expectation.generation or "",
        "AFTERBURN_WAIT": str(_AFTERBURN_WAIT),
        **({"EXPECTED_FIPS": "1"} if expectation.fips else {}),
        **({"EXPECTED_LINKS": " ".join(expectation.links)} if expectation.links else {}),
        # In the kernel's format: 32 hexadecimal digits.
        **({"EXPECTED_IPV6": ipaddress.IPv6Address(expectation.ipv6).packed.hex()} if expectation.ipv6 else {}),
    }
