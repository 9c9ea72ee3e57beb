"""Reads orders back from a resource's inputs; see `provider.orders`."""

from __future__ import annotations

from provider.fields import SHORT_NAME, Reader
from provider.orders import AddressOrder, MachineOrder, NetworkOrder, Orders


def read(reader: Reader) -> Orders:
    """Reads what `to_wire` gave, and notes what is wrong with it."""
    reader.only("metro", "facilities", "machines", "addresses", "networks")
    orders = Orders(
        metro=reader.optional_text("metro"),
        facilities=reader.texts("facilities", required=False),
        machines=tuple(map(_machines, reader.sections("machines", required=False))),
        addresses=tuple(map(_addresses, reader.sections("addresses", required=False))),
        networks=tuple(map(_network, reader.sections("networks", required=False))),
    )
    if not reader.unknown("metro") and (orders.metro is None) == (not orders.facilities):
        reader.fail("metro", "or `facilities` must be given, and not both")
    return orders


def _machines(reader: Reader) -> MachineOrder:
    reader.only("role", "hostnames", "plan", "operatingSystem", "reservations", "spotMaxPrice", "subnetLength")
    return MachineOrder(
        role=reader.text("role"),
        hostnames=reader.texts("hostnames", pattern=SHORT_NAME, what="a host name"),
        plan=reader.text("plan"),
        operating_system=reader.text("operatingSystem"),
        reservations=reader.texts("reservations", required=False),
        spot_max_price=_number(reader, "spotMaxPrice"),
        subnet_length=_whole(reader, "subnetLength"),
    )


def _addresses(reader: Reader) -> AddressOrder:
    reader.only("name", "quantity")
    return AddressOrder(name=reader.text("name"), quantity=int(reader.number("quantity", minimum=1)))


def _network(reader: Reader) -> NetworkOrder:
    reader.only("name", "vlan", "subnet", "gatewaySize")
    return NetworkOrder(
        name=reader.text("name"),
        vlan=_whole(reader, "vlan"),
        subnet=reader.optional_text("subnet"),
        gateway_size=_whole(reader, "gatewaySize"),
    )


def _number(reader: Reader, key: str) -> float | None:
    return None if reader.values.get(key) is None else reader.number(key)


def _whole(reader: Reader, key: str) -> int | None:
    value = _number(reader, key)
    return None if value is None else int(value)
