"""RFC 2136 on a zone, without a network: prerequisites, changes, and what must not change."""

from __future__ import annotations

import dns.message
import dns.name
import dns.rcode
import dns.update
import dns.zone
import pytest

from lab.network import dns_update
from lab.network.dns import render_zone

ORIGIN = dns.name.from_text("facility.test")


def zone() -> dns.zone.Zone:
    return dns.zone.from_text(render_zone("facility.test"), origin=ORIGIN, relativize=False)


def received(message: dns.update.UpdateMessage) -> dns.update.UpdateMessage:
    """`message` as a server gets it."""
    parsed = dns.message.from_wire(message.to_wire())
    assert isinstance(parsed, dns.update.UpdateMessage)
    return parsed


def serial(of: dns.zone.Zone) -> int:
    return of.get_soa().serial


def addresses(of: dns.zone.Zone, owner: str) -> list[str]:
    rdataset = of.get_rdataset(dns.name.from_text(owner, ORIGIN), "A")
    return sorted(str(record) for record in rdataset or ())


def test_changes_raise_the_serial_and_repeats_do_not() -> None:
    here = zone()
    message = dns.update.Update("facility.test")
    message.add("api.lab", 5, "A", "198.51.100.3")
    message.add("api.lab", 5, "A", "198.51.100.5")
    assert dns_update.apply(here, received(message))
    assert (addresses(here, "api.lab"), serial(here)) == (["198.51.100.3", "198.51.100.5"], 2)
    assert not dns_update.apply(here, received(message))
    assert serial(here) == 2


def test_single_records_sets_and_names_are_deleted() -> None:
    here = zone()
    message = dns.update.Update("facility.test")
    for last in (3, 5):
        message.add("api.lab", 5, "A", f"198.51.100.{last}")
    message.add("gone.lab", 5, "TXT", "x")
    dns_update.apply(here, received(message))
    message = dns.update.Update("facility.test")
    message.delete("api.lab", "A", "198.51.100.3")
    message.delete("gone.lab")
    dns_update.apply(here, received(message))
    assert addresses(here, "api.lab") == ["198.51.100.5"]
    assert here.get_rdataset(dns.name.from_text("gone.lab", ORIGIN), "TXT") is None
    message = dns.update.Update("facility.test")
    message.delete("api.lab", "A")
    dns_update.apply(here, received(message))
    assert addresses(here, "api.lab") == []


def test_the_zones_own_records_stay() -> None:
    here = zone()
    message = dns.update.Update("facility.test")
    message.delete("@")
    message.delete("@", "SOA")
    message.delete("@", "NS", "ns1.facility.test.")
    dns_update.apply(here, received(message))
    assert here.get_rdataset(ORIGIN, "NS") is not None
    assert serial(here) == 1


@pytest.mark.parametrize(
    ("prerequisite", "code"),
    [
        (lambda m: m.absent("boot"), dns.rcode.YXDOMAIN),
        (lambda m: m.absent("boot", "A"), dns.rcode.YXRRSET),
        (lambda m: m.present("missing"), dns.rcode.NXDOMAIN),
        (lambda m: m.present("boot", "TXT"), dns.rcode.NXRRSET),
        (lambda m: m.present("boot", "A", "198.51.100.9"), dns.rcode.NXRRSET),
    ],
)
def test_a_failed_prerequisite_changes_nothing(prerequisite: object, code: dns.rcode.Rcode) -> None:
    here = zone()
    message = dns.update.Update("facility.test")
    assert callable(prerequisite)
    prerequisite(message)
    message.add("new", 5, "A", "198.51.100.3")
    with pytest.raises(dns_update.Refused) as refusal:
        dns_update.apply(here, received(message))
    assert refusal.value.code == code
    assert addresses(here, "new") == []


def test_met_prerequisites_let_changes_through() -> None:
    here = zone()
    message = dns.update.Update("facility.test")
    message.present("boot", "A", "192.0.2.12")
    message.absent("new", "A")
    message.add("new", 5, "A", "198.51.100.3")
    assert dns_update.apply(here, received(message))
    assert addresses(here, "new") == ["198.51.100.3"]
