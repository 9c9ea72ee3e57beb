"""Reads a plan back from the inputs of a resource, and notes what is wrong with them."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any

from provider import order_inputs
from provider.fields import HOST_NAME, IPV4, SHA256, URL, Reader
from provider.preflight.plan import DEFAULT_HASHED_MIB, BootFile, Plan, Server

_ARCHITECTURES = ("x86_64", "aarch64")
_ROLES = ("bootstrap", "control-plane", "worker")
KEYS = (
    "stack", "run", "domain", "architecture", "projectId", "projectName", "organizationId", "lifetimeHours", "orders",
    "servers", "networks", "apiAddress", "zones", "release", "stream", "boot", "hashedMib", "installer", "version",
    "fips", "excused",
)  # fmt: skip


def read(values: Mapping[str, Any]) -> tuple[Plan, Reader]:
    """Reads inputs; what is wrong with them is in the reader."""
    reader = Reader(values)
    reader.only(*KEYS)
    networks = reader.mapping("networks", required=False)
    plan = Plan(
        stack=reader.text("stack"),
        run=reader.optional_text("run"),
        domain=reader.text("domain", pattern=HOST_NAME, what="a domain"),
        architecture=reader.text("architecture", pattern="|".join(_ARCHITECTURES), what="x86_64 or aarch64"),
        project_id=reader.optional_text("projectId"),
        project_name=reader.optional_text("projectName"),
        organization_id=reader.optional_text("organizationId"),
        lifetime_hours=_whole(reader, "lifetimeHours"),
        orders=order_inputs.read(reader.section("orders")) if values.get("orders") is not None else None,
        servers=tuple(map(_server, reader.sections("servers", required=False))),
        networks={name: str(cidr) for name, cidr in networks.items()},
        api_address=reader.optional_text("apiAddress", pattern=IPV4, what="an IPv4 address"),
        zones=reader.texts("zones", required=False, pattern=HOST_NAME, what="a domain"),
        release=reader.optional_text("release"),
        stream=reader.optional_text("stream"),
        boot=tuple(map(_boot_file, reader.sections("boot", required=False))),
        hashed_mib=reader.number("hashedMib", default=DEFAULT_HASHED_MIB),
        installer=reader.optional_text("installer"),
        version=reader.optional_text("version"),
        fips=reader.boolean("fips"),
        excused=reader.texts("excused", required=False),
    )
    for name, cidr in plan.networks.items():
        if not _is_network(cidr):
            reader.fail(f"networks.{name}", "must be a CIDR such as 10.128.0.0/14")
    if plan.orders is not None and (plan.project_id is None) == (plan.project_name is None):
        reader.fail("projectId", "or `projectName` must be given, and not both")
    if plan.project_name is not None and plan.organization_id is None:
        reader.fail("organizationId", "is required with `projectName`")
    return plan, reader


def _boot_file(reader: Reader) -> BootFile:
    reader.only("name", "url", "sha256", "mirrored")
    return BootFile(
        name=reader.text("name"),
        url=reader.text("url", pattern=URL, what="a URL"),
        sha256=reader.text("sha256", pattern=SHA256, what="a SHA-256 in hexadecimal digits"),
        mirrored=reader.optional_text("mirrored", pattern=URL, what="a URL"),
    )


def _server(reader: Reader) -> Server:
    reader.only("name", "role", "live", "bmc", "memoryMib", "cpus")
    server = Server(
        name=reader.text("name"),
        role=reader.text("role", pattern="|".join(_ROLES), what=f"one of {', '.join(_ROLES)}"),
        live=reader.boolean("live"),
        bmc=reader.optional_text("bmc"),
        memory_mib=_whole(reader, "memoryMib"),
        cpus=_whole(reader, "cpus"),
    )
    if server.bmc is None and server.memory_mib is None:
        reader.fail("bmc", "or `memoryMib` must be given: what else tells how much memory it has?")
    return server


def _whole(reader: Reader, key: str) -> int | None:
    return None if reader.values.get(key) is None else int(reader.number(key, minimum=1))


def _is_network(value: str) -> bool:
    try:
        ipaddress.ip_network(value)
    except ValueError:
        return False
    return "/" in value
