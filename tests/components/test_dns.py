"""The cluster's names: which resources keep them, in which zones, and what is withdrawn with the bootstrap machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pulumi

from metal_ipi.components.endpoints.dns import ClusterDns, ClusterDnsArgs
from metal_ipi.components.endpoints.records import reverse_name
from tests.mocks import Recorder, plain, run

_DOMAIN = "lab.facility.test"
_RECORDS = "metal-ipi:index:DnsRecords"
_ANSWERS = {"metal-ipi:endpoints:ClusterDns": lambda args: {}, _RECORDS: lambda args: {}}  # pyright: ignore
_CONTROL_PLANE = {f"cp-{n}.{_DOMAIN}": f"198.51.100.{2 * n + 1}" for n in range(3)}
_WORKERS = {f"w-0.{_DOMAIN}": "203.0.113.9"}


def _made(
    *,
    zone: str | None = "facility.test",
    api_address: str | None = None,
    reverse_zones: Sequence[str] = (),
    ipv6: dict[str, str] | None = None,
) -> tuple[Recorder, dict[str, Any]]:
    def program() -> None:
        dns = ClusterDns(
            "dns",
            ClusterDnsArgs(
                domain=_DOMAIN,
                zone=zone,
                ttl=30,
                control_plane={name: pulumi.Output.from_input(value) for name, value in _CONTROL_PLANE.items()},
                workers=_WORKERS,
                bootstrap=(f"bootstrap.{_DOMAIN}", pulumi.Output.from_input("198.51.100.201")),
                api_address=api_address,
                ipv6=ipv6 or {},
                reverse_zones=reverse_zones,
            ),
        )
        pulumi.export("needed", dns.needed)
        pulumi.export("withdrawn", [record.to_wire() for record in dns.to_withdraw])
        kept = [dns.records, dns.ingress_records, dns.bootstrap_records]
        pulumi.export("itself", [resource is dns for resource in kept])

    recorder = Recorder(_ANSWERS)
    return recorder, run(program, recorder, {})


def _records(recorder: Recorder, name: str) -> dict[str, list[str]]:
    given = plain(recorder.one(name).inputs["records"])
    return {f"{record['name']} {record['type']}": record["values"] for record in given.values()}


def test_one_zone() -> None:
    recorder, outputs = _made()
    kept = {args.name: args.inputs for args in recorder.of(_RECORDS)}
    assert {name: (inputs["zone"], inputs["domain"], inputs["ephemeral"]) for name, inputs in kept.items()} == {
        "dns-api-records": ("facility.test", _DOMAIN, False),
        "dns-bootstrap-records": ("facility.test", _DOMAIN, True),
        "dns-ingress-records": ("facility.test", _DOMAIN, False),
    }
    assert _records(recorder, "dns-bootstrap-records") == {
        f"{name}.{_DOMAIN} A": ["198.51.100.201"] for name in ("api", "api-int", "bootstrap")
    }
    assert [record["name"] for record in outputs["withdrawn"]] == [
        f"{n}.{_DOMAIN}" for n in ("api", "api-int", "bootstrap")
    ]
    assert outputs["itself"] == [False] * 3
    assert f"*.apps.{_DOMAIN}. A 203.0.113.9" in outputs["needed"] and len(outputs["needed"]) == 11


def test_an_address_of_the_apis_own() -> None:
    """Its names resolve to it alone, the bootstrap machine's time included."""
    recorder, _ = _made(api_address="192.0.2.200")
    records = _records(recorder, "dns-api-records")
    assert records[f"api.{_DOMAIN} A"] == records[f"api-int.{_DOMAIN} A"] == ["192.0.2.200"]
    assert _records(recorder, "dns-bootstrap-records") == {f"bootstrap.{_DOMAIN} A": ["198.51.100.201"]}


def test_reverse_zones_get_all_addresses_and_keep_theirs() -> None:
    zones = ("100.51.198.in-addr.arpa", "113.0.203.in-addr.arpa")
    recorder, outputs = _made(api_address="198.51.100.77", reverse_zones=zones)
    for zone in zones:
        assert recorder.one(f"dns-reverse-records-{zone}").inputs["zone"] == zone
        assert _records(recorder, f"dns-reverse-records-{zone}") == {
            "77.100.51.198.in-addr.arpa PTR": [f"api.{_DOMAIN}"],
            **{f"{reverse_name(address)} PTR": [name] for name, address in {**_CONTROL_PLANE, **_WORKERS}.items()},
        }
        temporary = f"dns-bootstrap-reverse-records-{zone}"
        assert recorder.one(temporary).inputs["ephemeral"] is True
        assert _records(recorder, temporary) == {"201.100.51.198.in-addr.arpa PTR": [f"bootstrap.{_DOMAIN}"]}
    pointers = [record for record in outputs["withdrawn"] if record["type"] == "PTR"]
    assert [record["zone"] for record in pointers] == list(zones)


def test_both_families_have_pointers_in_their_zones() -> None:
    zone = "8.b.d.0.1.0.0.2.ip6.arpa"
    names = {
        name: f"2001:db8::{number}" for number, name in enumerate((f"api.{_DOMAIN}", *_CONTROL_PLANE, *_WORKERS), 1)
    }
    recorder, outputs = _made(api_address="198.51.100.77", reverse_zones=[zone], ipv6=names)
    pointers = _records(recorder, f"dns-reverse-records-{zone}")
    assert {each for each in pointers if each.endswith("ip6.arpa PTR")} == {
        f"{reverse_name(address)} PTR" for address in names.values()
    }
    assert f"w-0.{_DOMAIN}. AAAA 2001:db8::5" in outputs["needed"]
    assert f"api.{_DOMAIN}. AAAA 2001:db8::1" in outputs["needed"]


def test_round_robin_gives_the_api_no_reverse_record() -> None:
    zone = "100.51.198.in-addr.arpa"
    recorder, _ = _made(reverse_zones=[zone])
    assert [f"api.{_DOMAIN}"] not in _records(recorder, f"dns-reverse-records-{zone}").values()


def test_nobody_keeps_the_names() -> None:
    recorder, outputs = _made(zone=None)
    assert recorder.of(_RECORDS) == []
    assert outputs["itself"] == [True] * 3 and outputs["withdrawn"] == []
    assert f"api.{_DOMAIN}. A 198.51.100.1" in outputs["needed"]
