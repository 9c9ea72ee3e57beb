"""The provider resource: which services it uses, and with which credentials."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pulumi

_PACKAGE = "metal-ipi"


@dataclass(frozen=True, kw_only=True)
class ProviderArgs:
    """Which services the provider uses, with credentials. All of it is secret. A change never replaces a resource."""

    metal: pulumi.Input[Mapping[str, Any]] | None = None
    """{"authToken", "endpoint"?}: the Equinix Metal API; `endpoint` defaults to https://api.equinix.com/metal/v1."""
    bmcs: pulumi.Input[Mapping[str, Any]] | None = None
    """Server name to {"address" (https), "username", "password", "ca" (PEM) or "fingerprint" (`sha256:<hex>` of the
    certificate) unless the system trusts it, "systemId"? (where there are several), "bootMethod"? (`pxe`, `uefi-http`,
    `virtual-media` or `live-iso`), "bootMode"? (`bios` or `uefi`), "bootImage"? (URL of an iPXE image, for
    virtual-media), "bootUrl"? (for uefi-http; else what DHCP says), "liveIso"? ({"url", "sha256"} of CoreOS's live ISO,
    for live-iso), "secureBoot"? (`check`, or `ignore`: what boots is signed for its firmware), "cards"? (`check`, or
    `ignore`: the server has its network card, although its BMC does not list it)}."""
    ironic: pulumi.Input[Mapping[str, Any]] | None = None
    """{"endpoint" (https, without `/v1`), "username", "password", "ca"? (PEM), "claimant" (whose claims these are:
    unique among all that share this Ironic), "liveIso": {"url", "sha256"}, "release"? (`keep`, or `remove`: an enrolled
    server that is given back is taken out), "servers": server name to {"driver" (`redfish` or `idrac`), "address",
    "username", "password", "systemId"?, "verifyCa"? (`true`, `false` or a path of the conductors'), "resourceClass"?,
    "conductorGroup"?} of one that is enrolled, or {"node" (name or UUID)} or {"resourceClass", "traits"?} of one that
    Ironic has}."""
    libvirt: pulumi.Input[Mapping[str, Any]] | None = None
    """{"uri"?}: the libvirt that runs virtual machines; default `qemu:///system`."""
    dns: pulumi.Input[Mapping[str, Any]] | None = None
    """One of, each with "zone"?, "propagation"? (`service`, or `authoritative`: all the zone's servers are waited for)
    and "propagationTimeout"? (seconds, 60):
    {"service": "rfc2136", "server", "port"?, "tsig": {"name", "algorithm", "secret" (base64)},
    "delegation"?: {"timeout"?, "parentServers"?}},
    {"service": "route53", "zoneId"?, "region"?, "accessKeyId", "secretAccessKey", "sessionToken"?, "endpoint"?},
    {"service": "cloudflare", "authToken", "zoneId"?, "endpoint"?},
    {"service": "lexicon", "name", "options"}: any other service of dns-lexicon, with its own options."""
    artifacts: pulumi.Input[Mapping[str, Any]] | None = None
    """{"type": "ssh", "host", "port"?, "user", "hostKey", "privateKey", "directory", "baseUrl", "bootBaseUrl",
    "caBundle"?} or
    {"type": "s3", "bucket", "prefix"?, "region", "endpoint"?, "accessKeyId", "secretAccessKey", "baseUrl",
    "bootBaseUrl", "caBundle"?}."""
    registries: pulumi.Input[Mapping[str, Any]] | None = None
    """{"pullSecret" (JSON), "ca"? (PEM)}: the registries of the cluster's images, which Preflight asks."""


class Provider(pulumi.ProviderResource):
    """An explicit provider. Each section is passed as one JSON string, because provider configuration is flat."""

    def __init__(self, name: str, args: ProviderArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        sections = {
            "metal": args.metal,
            "bmcs": args.bmcs,
            "ironic": args.ironic,
            "libvirt": args.libvirt,
            "dns": args.dns,
            "artifacts": args.artifacts,
            "registries": args.registries,
        }
        props = {
            key: pulumi.Output.secret(pulumi.Output.from_input(value)).apply(_section)
            for key, value in sections.items()
            if value is not None
        }
        super().__init__(_PACKAGE, name, props, opts)


def _section(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
