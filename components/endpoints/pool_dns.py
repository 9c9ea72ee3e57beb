"""The DNS names of a pool of workers that has a stack of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pulumi

from metal_ipi.components.endpoints.dns import Records, lines, reverse_args, tell, to_args
from metal_ipi.components.endpoints.records import Host, pool_records
from metal_ipi.provider.types import DnsRecords, DnsRecordsArgs


@dataclass(frozen=True, kw_only=True)
class PoolDnsArgs:
    """The names of a pool, and the zones that contain them. Fields with the same names as in `ClusterDnsArgs` mean the
    same."""

    domain: str
    zone: str | None
    ttl: int
    workers: Mapping[str, pulumi.Input[str]]
    """Address by full node name."""
    ipv6: Mapping[str, str] = field(default_factory=dict[str, str])
    reverse_zones: Sequence[str] = ()
    takes_ingress: bool
    """Whether `*.apps` resolves to the machines that may run routers. If not, ingress has an address of its own."""
    beside: str
    """`<project>/<stack>` of the cluster's stack, which also has values in the record set `*.apps`."""


class PoolDns(pulumi.ComponentResource):
    """The records of a pool: one resource for each zone."""

    needed: pulumi.Output[list[str]]
    """All needed records, as lines of a zone file without TTL."""

    def __init__(self, name: str, args: PoolDnsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("metal-ipi:endpoints:PoolDns", name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        hosts = {node: Host(ipv4=address, ipv6=args.ipv6.get(node)) for node, address in args.workers.items()}
        records: Records = pool_records(domain=args.domain, workers=hosts, takes_ingress=args.takes_ingress)
        self.needed = lines(records)
        if args.zone is None:
            tell(self, self.needed)
        else:
            wanted = DnsRecordsArgs(
                zone=args.zone, domain=args.domain, ttl=args.ttl, beside=args.beside, records=to_args(records)
            )
            DnsRecords(f"{name}-pool-records", wanted, child)
        for zone in args.reverse_zones:
            pointers = DnsRecordsArgs(zone=zone, ttl=args.ttl, records=reverse_args(hosts))
            DnsRecords(f"{name}-reverse-records-{zone}", pointers, child)
        self.register_outputs({"domain": args.domain})
