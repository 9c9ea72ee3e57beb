"""Is a node what it should be? What is expected of it, the script that checks it, and what that prints.

What is read: Ignition's result file, the platform id and consoles on the kernel's command line, Afterburn's attributes
against the addresses the platform gave, the host name, the OS version against the stream, and what an installed node
says of its installation.
"""

from __future__ import annotations

import hashlib
import ipaddress
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_LINES = [line.strip() for line in Path(__file__).with_name("node_check.sh").read_text().splitlines()]
_SCRIPT = "\n".join(line for line in _LINES if line and not line.startswith("#")) + "\n"
"""Without what is only for its readers."""
DIGEST = hashlib.sha256(_SCRIPT.encode()).hexdigest()[:16]
"""Stands for the script where only a change of it counts."""
_AFTERBURN_WAIT = 120
_STATUSES = frozenset({"passed", "failed", "skipped"})


class CheckOutputError(ValueError):
    """A node answered something that is no check result."""


@dataclass(frozen=True, kw_only=True)
class Expectation:
    """What a node must be; plain values."""

    hostname: str
    """Its full name."""
    metadata_hostname: str
    """The host name the platform's metadata gives."""
    public_ipv4: str
    """As the platform says."""
    private_ipv4: str
    """As the platform says."""
    platform_id: str
    """Ignition's platform id."""
    release: str | None
    """The CoreOS release; None for a node that was left on another one."""
    kernel_arguments: tuple[str, ...]
    """Arguments that must be on the kernel's command line."""
    links: tuple[str, ...] = ()
    """Bonds and VLANs that must be there, as `HostNetwork.links`."""
    fips: bool = False
    """Whether its kernel must be in FIPS mode."""
    ipv6: str | None = None
    """The IPv6 address that it must have, beside a default route; None: of IPv6 nothing is expected."""
    generation: str | None = None
    """Which generation must be installed on its disk; None for a node that runs from memory."""


def script(expectation: Expectation) -> str:
    """The shell script that checks a node: expectations as variables, then the checks."""
    return script_of(variables(expectation))


def script_of(variables: Mapping[str, str]) -> str:
    """The same of the variables."""
    lines = [f"{name}={shlex.quote(value)}" for name, value in variables.items()]
    return "\n".join(lines) + "\n" + _SCRIPT


def variables(expectation: Expectation) -> dict[str, str]:
    """What is expected, as the script's variables."""
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
        # As the kernel writes it: 32 digits.
        **({"EXPECTED_IPV6": ipaddress.IPv6Address(expectation.ipv6).packed.hex()} if expectation.ipv6 else {}),
    }


def parse(output: str) -> list[dict[str, str]]:
    """The checks a node printed. Raises CheckOutputError for anything else."""
    results: list[dict[str, str]] = []
    for line in output.splitlines():
        parts: Sequence[str] = line.split("\t", 2)
        if len(parts) != 3 or parts[1] not in _STATUSES:
            raise CheckOutputError(f"a node check printed '{line}', which is no check result")
        results.append({"name": parts[0], "status": parts[1], "observed": parts[2]})
    if not results:
        raise CheckOutputError("a node check printed nothing")
    return results
