"""Rule: which ports are used, and which networks can reach the machine config server."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from .base import Given, Resource, Rule, listed, mapping, strings
from .machines import INSTALLATION, PROVIDER, STACK

_GATE = "metal-ipi:index:Gate"
_DEFAULT = {"https": 443, "http": 80}
_SECTIONS = ("dns", "artifacts", "bmcs")


def _check(resource: Resource, given: Given) -> Iterator[str]:
    allowed = set(RULE.parameter(given, "allowed"))
    for what, port in sorted(set(_ports(resource))):
        if port not in allowed:
            yield (
                f"{what} uses port {port}, which the facility's firewalls do not allow: use one of"
                f" {', '.join(map(str, sorted(allowed)))}, or add it to the policy configuration (open-ports.allowed)"
            )
    networks: list[str] = []
    if resource.type == _GATE and resource.text("kind") == "machine-config-access":
        networks = strings(mapping(resource.properties.get("spec")).get("networks"))
    elif resource.type == STACK:  # a preview may not know all networks of the gate
        section = mapping(_parsed(given.configuration.get("metal-ipi:machineConfigServer")))
        networks = strings(section.get("allowedNetworks"))
    yield from _too_wide(networks, int(RULE.parameter(given, "widest")))


def _too_wide(networks: list[str], widest: int) -> Iterator[str]:
    for network in networks:
        parsed = ipaddress.ip_network(network, strict=False)
        limit = widest if parsed.version == 4 else 2 * widest
        if parsed.prefixlen < limit:
            yield (
                f"port 22623, which serves the cluster's secrets, would be open to {network}: name the networks of"
                f" your machines in `metal-ipi:machineConfigServer.allowedNetworks`, none wider than /{limit}"
                " (open-ports.widest)"
            )


def _ports(resource: Resource) -> Iterator[tuple[str, int]]:
    properties = resource.properties
    if resource.type == PROVIDER:
        for name in _SECTIONS:
            section = mapping(_parsed(properties.get(name)))
            yield from _of_section(name, section)
    elif resource.type == INSTALLATION and isinstance(properties.get("port"), int | float):
        yield f"SSH to {resource.text('hostname') or resource.name}", int(properties["port"])
    elif resource.type == _GATE:
        for node in map(mapping, listed(mapping(properties.get("spec")).get("nodes"))):
            if isinstance(node.get("port"), int | float):
                yield f"SSH to {node.get('name')}", int(node["port"])


def _of_section(name: str, section: dict[str, Any]) -> Iterator[tuple[str, int]]:
    if name == "bmcs":
        for server, bmc in section.items():
            yield from _of_url(f"the BMC of {server}", mapping(bmc).get("address"))
        return
    if isinstance(section.get("port"), int | float):
        yield f"metal-ipi:{name}", int(section["port"])
    for key in ("baseUrl", "bootBaseUrl", "endpoint"):
        yield from _of_url(f"metal-ipi:{name}.{key}", section.get(key))


def _of_url(what: str, url: Any) -> Iterator[tuple[str, int]]:
    if isinstance(url, str):
        parts = urlsplit(url)
        if port := parts.port or _DEFAULT.get(parts.scheme):
            yield what, port


def _parsed(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) and value.startswith("{") else value


RULE = Rule(
    name="open-ports",
    description="Only known ports are used, and the machine config server is open to the machines' networks only.",
    parameters={
        "allowed": {
            "type": "array",
            "items": {"type": "integer"},
            "default": [22, 53, 80, 443],
            "description": "Ports that the facility's firewalls allow, to services, BMCs and machines.",
        },
        "widest": {
            "type": "integer",
            "default": 8,
            "description": "The shortest prefix of an IPv4 network that may reach port 22623; twice that for IPv6.",
        },
    },
    resource=_check,
)
