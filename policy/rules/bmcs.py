"""Rule: BMCs are reached securely."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from .base import REHEARSAL, Given, Resource, Rule, SecretText, mapping
from .machines import PROVIDER

_UNVERIFIED = ("insecure", "skipVerify", "tlsVerify", "verify", "verifyTls")


def _check(resource: Resource, given: Given) -> Iterator[str]:
    if resource.type != PROVIDER:
        return
    for name, bmc in _section(resource, "bmcs"):
        yield from (f"the BMC of {name} {problem}" for problem in _problems(bmc, given))
    for name, server in _section(resource, "ironic", "servers"):
        if server.get("driver") is not None:
            yield from (f"the BMC of {name} {problem}" for problem in _problems_of_enrolled(server, given))
    for path in _in_clear(given):
        yield (
            f"{path} is not encrypted in the stack's configuration: `pulumi config set --secret --path '{path}'` "
            "encrypts it; change the password on the BMC, because others may have seen this one"
        )


def _section(resource: Resource, *path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The servers in a section of the provider's configuration. If the section is secret, their passwords become
    SecretText."""
    first, *further = path
    value = resource.properties.get(first)
    found: Any = json.loads(value) if isinstance(value, str) else value
    for key in further:
        found = mapping(found).get(key)
    for name, server in sorted(mapping(found).items()):
        password = mapping(server).get("password")
        hidden = isinstance(value, SecretText) and isinstance(password, str)
        yield name, {**mapping(server), **({"password": SecretText(password)} if hidden else {})}


def _problems(bmc: dict[str, Any], given: Given) -> Iterator[str]:
    yield from _account(bmc)
    if any(bmc.get(name) is (name in _UNVERIFIED[:2]) for name in _UNVERIFIED):
        yield "is not verified: give its authority (`platform.bmc.ca`) or pin its certificate (fingerprint)"
    elif not (bmc.get("ca") or bmc.get("fingerprint") or RULE.parameter(given, "systemAuthorities")):
        yield (
            "is trusted by the system's authorities only: give `platform.bmc.ca` or a fingerprint"
            " (verified-bmcs.systemAuthorities)"
        )


def _problems_of_enrolled(server: dict[str, Any], given: Given) -> Iterator[str]:
    """Problems of a BMC that Ironic reaches, not this program."""
    ipmi = server.get("driver") == "ipmi"
    yield from _account(server, "ipmi" if ipmi else "https")
    if ipmi and not RULE.parameter(given, "ipmi"):
        yield (
            "is reached by IPMI, which gives a hash of its password to anybody who asks (CVE-2013-4786): use Redfish"
            " (verified-bmcs.ipmi)"
        )
    if server.get("verifyCa") == "false":
        yield "is not verified by Ironic: set `verifyCa` to a file with its authority on the conductors"


def _account(bmc: dict[str, Any], scheme: str = "https") -> Iterator[str]:
    parts = urlsplit(str(bmc.get("address", "")))
    if parts.username is not None or parts.password is not None:
        yield "has its account in its address: set username and password instead, the password as a secret"
    if parts.scheme != scheme:
        yield f"is reached over {parts.scheme or 'no protocol'}, which shows its password to the network: use https"
    password = bmc.get("password")
    if isinstance(password, str) and not isinstance(password, SecretText) and password != REHEARSAL:
        yield "has a password that is not marked as secret: `pulumi config set --secret --path` sets it"


def _in_clear(given: Given) -> Iterator[str]:
    key = "metal-ipi:platform"
    if key in given.secret_keys:
        return
    platform = mapping(json.loads(given.configuration.get(key) or "{}"))
    bmcs = {f"{key}.bmc": platform.get("bmc")}
    for number, server in enumerate(platform.get("servers") or []):
        bmcs[f"{key}.servers[{number}].bmc"] = mapping(server).get("bmc")
    for path, bmc in bmcs.items():
        password = mapping(bmc).get("password")
        if isinstance(password, str) and password != REHEARSAL:
            yield f"{path}.password"


RULE = Rule(
    name="verified-bmcs",
    description="BMC accounts are encrypted, and BMCs are verified.",
    parameters={
        "systemAuthorities": {
            "type": "boolean",
            "default": True,
            "description": "Whether the system's certificate authorities are enough.",
        },
        "ipmi": {
            "type": "boolean",
            "default": True,
            "description": "Whether BMCs may be reached by IPMI, which gives a hash of a password to anybody who asks.",
        },
    },
    resource=_check,
)
