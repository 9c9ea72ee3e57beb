"""The cluster's names in DNS: those that last, and the bootstrap machine's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi

from components.endpoints.records import Record, api_records, bootstrap_records, ingress_records
from provider.types import DnsRecordArgs, DnsRecords, DnsRecordsArgs, RemovalRecordArgs


@dataclass(frozen=True, kw_only=True)
class ClusterDnsArgs:
    """Whose names, and where they are kept."""

    domain: str
    """The cluster's domain."""
    zone: str
    """The zone the records stand in."""
    ttl: int
    """Seconds that resolvers may keep an answer."""
    control_plane: Mapping[str, pulumi.Input[str]]
    """Address by full node name."""
    workers: Mapping[str, pulumi.Input[str]]
    """Address by full node name."""
    bootstrap: tuple[str, pulumi.Input[str]]
    """The bootstrap machine's full name and address."""


class ClusterDns(pulumi.ComponentResource):
    """All records of the cluster: one resource for those that last, one for those of the bootstrap machine."""

    api_url: pulumi.Output[str]
    """`https://api.<domain>:6443`, once its name resolves."""

    def __init__(self, name: str, args: ClusterDnsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("metal-ipi:endpoints:ClusterDns", name, None, opts)
        node, address = args.bootstrap
        temporary = bootstrap_records(domain=args.domain, node=node, address=address)
        lasting = api_records(domain=args.domain, control_plane=args.control_plane)
        ingress = ingress_records(domain=args.domain, control_plane=args.control_plane, workers=args.workers)
        self.records: pulumi.Resource = DnsRecords(
            f"{name}-api-records",
            DnsRecordsArgs(zone=args.zone, ttl=args.ttl, records=_arguments(lasting, alongside=temporary)),
            pulumi.ResourceOptions(parent=self),
        )
        self.ingress_records: pulumi.Resource = DnsRecords(
            f"{name}-ingress-records",
            DnsRecordsArgs(zone=args.zone, ttl=args.ttl, records=_arguments(ingress)),
            pulumi.ResourceOptions(parent=self),
        )
        self.bootstrap_records: pulumi.Resource = DnsRecords(
            f"{name}-bootstrap-records",
            DnsRecordsArgs(zone=args.zone, ttl=args.ttl, records=_arguments(temporary), ephemeral=True),
            pulumi.ResourceOptions(parent=self),
        )
        self.to_withdraw = [
            RemovalRecordArgs(zone=args.zone, name=record.name, type=record.type, values=list(record.values))
            for record in temporary
        ]
        """What to withdraw when the bootstrap machine goes."""
        self.api_url = pulumi.Output.from_input(f"https://api.{args.domain}:6443")
        self.register_outputs({"apiUrl": self.api_url})


def _arguments(
    records: Sequence[Record[pulumi.Input[str]]], alongside: Sequence[Record[pulumi.Input[str]]] = ()
) -> list[DnsRecordArgs]:
    others = {(record.name, record.type): list(record.values) for record in alongside}
    return [
        DnsRecordArgs(
            name=record.name,
            type=record.type,
            values=list(record.values),
            alongside=others.get((record.name, record.type)),
        )
        for record in records
    ]
