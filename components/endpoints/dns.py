"""The cluster's DNS names: permanent ones, and those of the bootstrap machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pulumi

from metal_ipi.components.endpoints.records import (
    Host,
    Record,
    api_records,
    bootstrap_records,
    ingress_records,
    reverse_name,
)
from metal_ipi.provider.types import DnsRecordArgs, DnsRecords, DnsRecordsArgs, RemovalRecordArgs

Records = Sequence[Record[pulumi.Input[str]]]


@dataclass(frozen=True, kw_only=True)
class ClusterDnsArgs:
    """The names of a cluster, and the zones that contain them."""

    domain: str
    """The cluster's domain."""
    zone: str | None = None
    """The DNS zone to write the records to. None: we do not manage the zone, and only report which records are
    needed."""
    ttl: int
    """Time to live of the records, in seconds."""
    control_plane: Mapping[str, pulumi.Input[str]]
    """Address by full node name."""
    workers: Mapping[str, pulumi.Input[str]]
    """Address by full node name."""
    arbiters: Mapping[str, pulumi.Input[str]] = field(default_factory=dict[str, "pulumi.Input[str]"])
    """Address by full node name; arbiters serve neither the API nor ingress."""
    schedulable: bool = False
    """Whether control plane machines run pods of users, besides workers."""
    bootstrap: tuple[str, pulumi.Input[str]] | None = None
    """The bootstrap machine's full name and address; None if there is no such machine."""
    api_address: pulumi.Input[str] | None = None
    """The API's own address. None: the API's names resolve to all machines that serve it."""
    ingress_address: pulumi.Input[str] | None = None
    """The address of `*.apps`. None: it resolves to the machines that take ingress."""
    ipv6: Mapping[str, str] = field(default_factory=dict[str, str])
    """With dual stack, the additional IPv6 addresses by full node name; the key `api.<domain>` is the API's own
    address."""
    reverse_zones: Sequence[str] = ()
    """Reverse zones that we manage, e.g. `100.51.198.in-addr.arpa`. Each gets the PTR records of the addresses in
    it."""


class ClusterDns(pulumi.ComponentResource):
    """All DNS records of the cluster: for each zone one resource for permanent records and one for the bootstrap
    machine's.

    The zone of the names has two permanent ones, so that a slow worker delays nothing: the names of the API and the
    control plane, without which the cluster cannot form; and ingress and the workers' names.
    """

    records: pulumi.Resource
    """The names of the API and the control plane. This component itself, if we do not manage the zone."""
    ingress_records: pulumi.Resource
    """Ingress and the workers' names. This component itself, if we do not manage the zone."""
    bootstrap_records: pulumi.Resource
    """The bootstrap machine's names. The same as `records` if there is no such machine; this component itself, if we do
    not manage the zone."""
    to_withdraw: list[RemovalRecordArgs]
    """The records to withdraw when the bootstrap machine is removed."""
    api_url: pulumi.Output[str]
    """`https://api.<domain>:6443`."""

    def __init__(self, name: str, args: ClusterDnsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("metal-ipi:endpoints:ClusterDns", name, None, opts)
        temporary = _temporary(args)
        control_plane, workers = _hosts(args, args.control_plane), _hosts(args, args.workers)
        arbiters = _hosts(args, args.arbiters)
        lasting = api_records(
            domain=args.domain, control_plane=control_plane, arbiters=arbiters, api_address=_api(args)
        )
        ingress = ingress_records(
            domain=args.domain,
            control_plane=control_plane,
            workers=workers,
            schedulable=args.schedulable,
            address=args.ingress_address,
        )
        self._lasting = [*lasting, *ingress]
        self.to_withdraw = []
        self.records = self.ingress_records = self.bootstrap_records = self
        if args.zone is None:
            tell(self, lines([*lasting, *temporary]))
        else:
            zone = args.zone
            self.records = self._keep(f"{name}-api-records", args, zone, lasting)
            self.ingress_records = self._keep(f"{name}-ingress-records", args, zone, ingress)
            self.bootstrap_records = self.records
            if temporary:
                self.bootstrap_records = self._keep(f"{name}-bootstrap-records", args, zone, temporary, ephemeral=True)
                self.to_withdraw += _withdrawal(zone, temporary)
        for zone in args.reverse_zones:
            self._reverse(name, args, zone)
        self.api_url = pulumi.Output.from_input(f"https://api.{args.domain}:6443")
        self.register_outputs({"apiUrl": self.api_url})

    @property
    def needed(self) -> pulumi.Output[list[str]]:
        """The permanent records as lines of a zone file without TTL: what must exist, whoever manages the zone."""
        return lines(self._lasting)

    def _keep(
        self, name: str, args: ClusterDnsArgs, zone: str, records: Records, *, ephemeral: bool = False
    ) -> DnsRecords:
        return DnsRecords(
            name,
            DnsRecordsArgs(
                zone=zone,
                domain=args.domain,
                ttl=args.ttl,
                records=to_args(records),
                ephemeral=ephemeral,
            ),
            pulumi.ResourceOptions(parent=self),
        )

    def _reverse(self, name: str, args: ClusterDnsArgs, zone: str) -> None:
        """The records of one reverse zone. Each zone gets all addresses: which ones lie in it is known only when they
        are known."""
        api = _api(args)
        own = {f"api.{args.domain}": api} if api is not None else {}
        parts = [("reverse", {**own, **_hosts(args, {**args.control_plane, **args.arbiters, **args.workers})}, False)]
        if args.bootstrap is not None:
            parts.append(("bootstrap-reverse", _hosts(args, dict([args.bootstrap])), True))
        for part, hosts, ephemeral in parts:
            pointers = reverse_args(hosts)
            DnsRecords(
                f"{name}-{part}-records-{zone}",
                DnsRecordsArgs(zone=zone, ttl=args.ttl, records=pointers, ephemeral=ephemeral),
                pulumi.ResourceOptions(parent=self),
            )
            if ephemeral:
                self.to_withdraw += [
                    RemovalRecordArgs(zone=zone, name=each.name, type=each.type, values=each.values)
                    for each in pointers
                ]


def _hosts(args: ClusterDnsArgs, addresses: Mapping[str, pulumi.Input[str]]) -> dict[str, Host[pulumi.Input[str]]]:
    return {name: Host(ipv4=address, ipv6=args.ipv6.get(name)) for name, address in addresses.items()}


def _api(args: ClusterDnsArgs) -> Host[pulumi.Input[str]] | None:
    name = f"api.{args.domain}"
    return _hosts(args, {name: args.api_address})[name] if args.api_address is not None else None


def _temporary(args: ClusterDnsArgs) -> Records:
    """The bootstrap machine's records; empty if there is no such machine."""
    if args.bootstrap is None:
        return ()
    ((node, host),) = _hosts(args, dict([args.bootstrap])).items()
    own_address = args.api_address is not None
    return bootstrap_records(domain=args.domain, node=node, address=host, api_has_address=own_address)


def to_args(records: Records) -> list[DnsRecordArgs]:
    """Records as inputs of the provider's resource."""
    return [DnsRecordArgs(name=each.name, type=each.type, values=list(each.values)) for each in records]


def reverse_args(hosts: Mapping[str, Host[pulumi.Input[str]]]) -> list[DnsRecordArgs]:
    """The PTR records of all addresses; a reverse zone takes those that lie in it."""
    return [
        DnsRecordArgs(
            name=pulumi.Output.from_input(address).apply(reverse_name), type="PTR", values=[name], label=label
        )
        for name, host in hosts.items()
        for address, label in zip(host.all, (f"{name} PTR", f"{name} PTR IPv6"), strict=False)
    ]


def _withdrawal(zone: str, records: Records) -> list[RemovalRecordArgs]:
    return [
        RemovalRecordArgs(zone=zone, name=record.name, type=record.type, values=list(record.values))
        for record in records
    ]


def lines(records: Records) -> pulumi.Output[list[str]]:
    """Records as lines of a zone file, without TTL."""
    parts = [
        pulumi.Output.from_input(value).apply(lambda text, record=record: f"{record.name}. {record.type} {text}")
        for record in records
        for value in record.values
    ]
    return pulumi.Output.all(*parts).apply(list)


def tell(component: pulumi.Resource, needed: pulumi.Output[list[str]]) -> None:
    """Log the records that whoever manages the zone has to set; the gates wait until the names resolve."""

    def say(found: list[str]) -> None:
        if not pulumi.runtime.is_dry_run():
            pulumi.log.info(
                "this program does not manage the DNS zone; set these records yourself:\n  " + "\n  ".join(found),
                component,
            )

    needed.apply(say)
