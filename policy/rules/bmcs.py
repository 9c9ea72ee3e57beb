"""How BMCs are reached."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from .base import REHEARSAL, Given, Resource, Rule, SecretText, mapping
from .machines import PROVIDER

_UNVERIFIED = ("insecure", "skipVerify", "tlsVerify", "verify", "verifyTls")


def _check(resource: Resource, given: Given) -> Iterator[str]:
    value = resource.properties.get("bmcs")
    if resource.type != PROVIDER or value is None:
        return
    secret = isinstance(value, SecretText)
    found: Any = json.loads(value) if isinstance(value, str) else value
    for name, bmc in sorted(mapping(found).items()):
        yield from (f"the BMC of {name} {problem}" for problem in _problems(mapping(bmc), given, secret=secret))
    for path in _in_clear(given):
        yield (
            f"{path} stands in clear in the stack's configuration: `pulumi config set --secret --path '{path}'`"
            " encrypts it; change the password on the BMC, for others have seen this one"
        )


def _problems(bmc: dict[str, Any], given: Given, *, secret: bool) -> Iterator[str]:
    parts = urlsplit(str(bmc.get("address", "")))
    if parts.username is not None or parts.password is not None:
        yield "has its account in its address: set username and password, as a secret"
    if parts.scheme != "https":
        yield f"is reached over {parts.scheme or 'no protocol'}, which shows its password to the network: use https"
    password = bmc.get("password")
    if not secret and isinstance(password, str) and not isinstance(password, SecretText) and password != REHEARSAL:
        yield "has a password that is not marked as secret: `pulumi config set --secret --path` sets it"
    if any(bmc.get(name) is (name in _UNVERIFIED[:2]) for name in _UNVERIFIED):
        yield "need not prove who it is: give its authority (`platform.bmc.ca`) or pin its certificate (fingerprint)"
    elif not (bmc.get("ca") or bmc.get("fingerprint") or RULE.parameter(given, "systemAuthorities")):
        yield (
            "is trusted by the system's authorities only: give `platform.bmc.ca` or a fingerprint"
            " (verified-bmcs.systemAuthorities)"
        )


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
    description="BMC accounts never stand in clear, and BMCs prove who they are.",
    parameters={
        "systemAuthorities": {
            "type": "boolean",
            "default": True,
            "description": "Whether the system's certificate authorities are enough.",
        }
    },
    resource=_check,
)
