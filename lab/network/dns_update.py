"""RFC 2136 on a dnspython zone: what an update asks for, section by section, with the RFC's error codes."""

from __future__ import annotations

import dns.name
import dns.rcode
import dns.rdataclass
import dns.rdataset
import dns.rdatatype
import dns.rrset
import dns.update
import dns.zone
from dns.rdtypes.ANY.SOA import SOA

_OWN = (dns.rdatatype.SOA, dns.rdatatype.NS)


class Refused(Exception):
    """The update is answered with `code` and changes nothing."""

    def __init__(self, code: dns.rcode.Rcode) -> None:
        super().__init__(dns.rcode.to_text(code))
        self.code = code


def apply(zone: dns.zone.Zone, message: dns.update.UpdateMessage) -> bool:
    """Carry out `message` on `zone` (names absolute) or raise Refused; says whether anything changed."""
    for wanted in message.prerequisite:
        _require(zone, wanted)
    for change in message.update:
        if not change.name.is_subdomain(_origin(zone)):
            raise Refused(dns.rcode.NOTZONE)
    before = zone.to_text()
    for change in message.update:
        _change(zone, change)
    if zone.to_text() == before:
        return False
    _raise_serial(zone)
    return True


def _origin(zone: dns.zone.Zone) -> dns.name.Name:
    if zone.origin is None:
        raise ValueError("the zone has no origin")
    return zone.origin


def _existing(zone: dns.zone.Zone, name: dns.name.Name, kind: dns.rdatatype.RdataType) -> dns.rdataset.Rdataset | None:
    return zone.get_rdataset(name, kind)


def _require(zone: dns.zone.Zone, wanted: dns.rrset.RRset) -> None:
    """RFC 2136, 3.2: a prerequisite's class says what it asserts (dnspython keeps it in `deleting`)."""
    name, kind = wanted.name, wanted.rdtype
    if not name.is_subdomain(_origin(zone)):
        raise Refused(dns.rcode.NOTZONE)
    node = zone.get_node(name)
    in_use = node is not None and len(node) > 0
    rrset = None if kind == dns.rdatatype.ANY else _existing(zone, name, kind)
    if wanted.deleting == dns.rdataclass.ANY:  # something must exist
        if kind == dns.rdatatype.ANY and not in_use:
            raise Refused(dns.rcode.NXDOMAIN)
        if kind != dns.rdatatype.ANY and rrset is None:
            raise Refused(dns.rcode.NXRRSET)
    elif wanted.deleting == dns.rdataclass.NONE:  # nothing may exist
        if kind == dns.rdatatype.ANY and in_use:
            raise Refused(dns.rcode.YXDOMAIN)
        if kind != dns.rdatatype.ANY and rrset is not None:
            raise Refused(dns.rcode.YXRRSET)
    elif rrset is None or set(rrset) != set(wanted):  # these very records must exist
        raise Refused(dns.rcode.NXRRSET)


def _change(zone: dns.zone.Zone, change: dns.rrset.RRset) -> None:
    """RFC 2136, 3.4.2: add, delete a set, delete a name, delete single records. The zone's own SOA and NS stay."""
    name, kind = change.name, change.rdtype
    apex = name == _origin(zone)
    if change.deleting == dns.rdataclass.ANY:
        node = zone.get_node(name)
        kinds = [kind] if kind != dns.rdatatype.ANY else [rdataset.rdtype for rdataset in node or ()]
        for each in kinds:
            if not (apex and each in _OWN):
                zone.delete_rdataset(name, each)
    elif change.deleting == dns.rdataclass.NONE:
        rdataset = _existing(zone, name, kind)
        if rdataset is None or (apex and kind in _OWN):
            return
        for record in change:
            rdataset.discard(record)
        if len(rdataset) == 0:
            zone.delete_rdataset(name, kind)
    elif kind != dns.rdatatype.SOA:
        rdataset = zone.find_rdataset(name, kind, create=True)
        for record in change:
            rdataset.add(record, change.ttl)


def _raise_serial(zone: dns.zone.Zone) -> None:
    rdataset = zone.find_rdataset(_origin(zone), dns.rdatatype.SOA)
    (record,) = [each for each in rdataset if isinstance(each, SOA)]
    rdataset.clear()
    rdataset.add(record.replace(serial=record.serial + 1), rdataset.ttl)
