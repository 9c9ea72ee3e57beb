"""A small DNS server for systems without Knot: the same zones, the same signed updates, on dnspython.

Run by the supervisor as `python -m lab.network.dns_fallback --state DIR`. It keeps the zone files that Knot would keep.
"""

from __future__ import annotations

import argparse
import asyncio
import logging

import dns.exception
import dns.flags
import dns.message
import dns.name
import dns.node
import dns.opcode
import dns.rcode
import dns.rdataset
import dns.rdatatype
import dns.rrset
import dns.tsig
import dns.tsigkeyring
import dns.update
import dns.zone
from dns.rdtypes.ANY.CNAME import CNAME
from dns.rdtypes.ANY.TSIG import TSIG

from lab import facts
from lab.layout import Layout, write_private
from lab.network import dns_update, plan
from lab.network.dns import zone_file

_log = logging.getLogger("lab.dns")
_UDP_SIZE = 1232
_CHAIN = 8  # CNAMEs followed within one answer


_BAD_KEY = (dns.message.UnknownTSIGKey, dns.tsig.BadKey, dns.tsig.BadAlgorithm)
_BAD_SIGNATURE = (dns.tsig.BadSignature, dns.tsig.PeerError)


class Server:
    """Answers one message at a time; everything it knows is in `zones`, and on disk after each change."""

    def __init__(self, layout: Layout, known: facts.Facts) -> None:
        self._layout = layout
        self._keys = dns.tsigkeyring.from_text({known.dns.tsig.name: (known.dns.tsig.algorithm, known.dns.tsig.secret)})
        self._zones: dict[dns.name.Name, dns.zone.Zone] = {}
        for name in plan.STATIC_RECORDS:
            origin = dns.name.from_text(name)
            text = zone_file(layout, name).read_text()
            self._zones[origin] = dns.zone.from_text(text, origin=origin, relativize=False)
        self._updatable = {dns.name.from_text(name): name for name in plan.UPDATABLE_ZONES}

    def answer(self, wire: bytes, *, udp: bool) -> bytes | None:
        """The response to `wire`, None to something that deserves none."""
        try:
            query = dns.message.from_wire(wire, keyring=self._keys)
        except _BAD_KEY as error:
            return _unverified(wire, error, dns.rcode.BADKEY)
        except _BAD_SIGNATURE as error:
            return _unverified(wire, error, dns.rcode.BADSIG)
        except dns.tsig.BadTime as error:
            return _unverified(wire, error, dns.rcode.BADTIME)
        except dns.exception.DNSException as error:
            _log.warning("not a DNS message: %s", error)
            return None
        if query.flags & dns.flags.QR or not query.question:
            return None
        response = dns.message.make_response(query)
        try:
            self._fill(query, response, udp=udp)
        except dns_update.Refused as refusal:
            response.set_rcode(refusal.code)
        except Exception:
            _log.exception("cannot answer %s", query.question[0])
            response.set_rcode(dns.rcode.SERVFAIL)
        try:
            return response.to_wire(max_size=_UDP_SIZE if udp else 65535)
        except dns.exception.TooBig:
            response.answer.clear()
            response.authority.clear()
            response.flags |= dns.flags.TC
            return response.to_wire()

    def _fill(self, query: dns.message.Message, response: dns.message.Message, *, udp: bool) -> None:
        question = query.question[0]
        if isinstance(query, dns.update.UpdateMessage):
            self._update(query, question.name)
        elif query.opcode() != dns.opcode.QUERY:
            raise dns_update.Refused(dns.rcode.NOTIMP)
        elif question.rdtype in {dns.rdatatype.AXFR, dns.rdatatype.IXFR}:
            if not query.had_tsig or udp or question.name not in self._updatable:
                raise dns_update.Refused(dns.rcode.REFUSED)
            self._transfer(question.name, response)
        else:
            self._look_up(question.name, question.rdtype, response)

    def _update(self, query: dns.update.UpdateMessage, origin: dns.name.Name) -> None:
        if origin not in self._updatable:
            raise dns_update.Refused(dns.rcode.NOTAUTH)
        if not query.had_tsig:
            raise dns_update.Refused(dns.rcode.REFUSED)
        zone = self._zones[origin]
        if dns_update.apply(zone, query):
            write_private(zone_file(self._layout, self._updatable[origin]), f"{zone.to_text(relativize=False)}\n")

    def _transfer(self, origin: dns.name.Name, response: dns.message.Message) -> None:
        zone = self._zones[origin]
        soa = _rrset(origin, zone.get_rdataset(origin, dns.rdatatype.SOA))
        response.answer.append(soa)
        for name, rdataset in zone.iterate_rdatasets():
            if rdataset.rdtype != dns.rdatatype.SOA:
                response.answer.append(_rrset(name, rdataset))
        response.answer.append(soa)  # again: a transfer begins and ends with it

    def _zone_of(self, name: dns.name.Name) -> dns.zone.Zone:
        while name not in self._zones:
            name = name.parent()
        return self._zones[name]

    def _look_up(self, name: dns.name.Name, kind: dns.rdatatype.RdataType, response: dns.message.Message) -> None:
        for _ in range(_CHAIN):
            zone = self._zone_of(name)
            response.flags |= dns.flags.AA
            node = zone.get_node(name) or _wildcard(zone, name)
            rdatasets = [] if node is None else [each for each in node if kind in {each.rdtype, dns.rdatatype.ANY}]
            alias = None if node is None else _alias(node)
            if rdatasets:
                response.answer.extend(_rrset(name, each) for each in rdatasets)
                return
            if alias is None:
                if node is None and not _has_children(zone, name):
                    response.set_rcode(dns.rcode.NXDOMAIN)
                origin = zone.origin or dns.name.root
                response.authority.append(_rrset(origin, zone.get_rdataset(origin, dns.rdatatype.SOA)))
                return
            response.answer.append(_rrset(name, alias))
            name = next(each.target for each in alias if isinstance(each, CNAME))


def _unverified(wire: bytes, error: Exception, code: dns.rcode.Rcode) -> bytes:
    """NOTAUTH with an unsigned TSIG that says why (RFC 8945, 5.3.2): a wrong signature is not acted upon."""
    _log.warning("refused: %s", error or type(error).__name__)
    query = dns.message.from_wire(wire, keyring=False)
    response = dns.message.Message(id=query.id)
    response.flags = dns.flags.QR | dns.opcode.to_flags(query.opcode())
    response.set_rcode(dns.rcode.NOTAUTH)
    if query.tsig is not None:
        signed = query.tsig[0]
        if isinstance(signed, TSIG):
            reason = signed.replace(mac=b"", error=int(code), other=b"")
            response.additional.append(dns.rrset.from_rdata(query.tsig.name, 0, reason))
    return response.to_wire()


def _alias(node: dns.node.Node) -> dns.rdataset.Rdataset | None:
    """The CNAME of a name, if it has one."""
    return next((each for each in node if each.rdtype == dns.rdatatype.CNAME), None)


def _rrset(name: dns.name.Name, rdataset: dns.rdataset.Rdataset | None) -> dns.rrset.RRset:
    if rdataset is None:
        raise ValueError(f"{name} has no such records")
    return dns.rrset.from_rdata_list(name, rdataset.ttl, list(rdataset))


def _wildcard(zone: dns.zone.Zone, name: dns.name.Name) -> dns.node.Node | None:
    """The wildcard that covers `name` (RFC 4592): the one right below its closest existing ancestor."""
    while name != zone.origin:
        name = name.parent()
        node = zone.get_node(dns.name.Name((b"*", *name.labels)))
        if node is not None:
            return node
        if zone.get_node(name) is not None or _has_children(zone, name):
            return None
    return None


def _has_children(zone: dns.zone.Zone, name: dns.name.Name) -> bool:
    return any(other != name and other.is_subdomain(name) for other in zone)


class _Udp(asyncio.DatagramProtocol):
    def __init__(self, server: Server) -> None:
        self._server = server
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.DatagramTransport) -> None:  # type: ignore[override]
        self._transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        response = self._server.answer(data, udp=True)
        if response is not None and self._transport is not None:
            self._transport.sendto(response, addr)


async def serve(server: Server, address: str) -> None:
    """Listen on port 53 of `address`, UDP and TCP, until cancelled."""

    async def stream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                length = int.from_bytes(await reader.readexactly(2), "big")
                response = server.answer(await reader.readexactly(length), udp=False)
                if response is None:
                    return
                writer.write(len(response).to_bytes(2, "big") + response)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()

    loop = asyncio.get_running_loop()
    await loop.create_datagram_endpoint(lambda: _Udp(server), local_addr=(address, 53))
    async with await asyncio.start_server(stream, address, 53) as listener:
        await listener.serve_forever()


def main() -> None:
    """Serve until the supervisor ends us; zones are on disk after each change."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--state", required=True)
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    layout = Layout.of(arguments.state)
    asyncio.run(serve(Server(layout, facts.require(layout)), plan.DNS))


if __name__ == "__main__":
    main()
