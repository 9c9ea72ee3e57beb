"""What a system is told of the VLANs on its bond."""

from __future__ import annotations

import configparser
from functools import partial

import pytest

from metal_ipi.components.boot.bond import VlanInterface, bond_files
from metal_ipi.components.machines.equinix_metal import VlanSpec
from metal_ipi.provider.types import MachineOrder, NetworkOrder
from tests import golden

_VLANS = [
    VlanInterface(name="storage", vlan=1100, address="10.66.0.7/28"),
    VlanInterface(name="backup", vlan=3999, address="10.99.0.7/24"),
]


def test_the_keyfiles_of_a_machine() -> None:
    files = bond_files(_VLANS, ("en*", "eth*"))
    golden.check("bond-keyfiles.txt", "".join(f"==> {file.path} {file.mode:o}\n{file.text}" for file in files))
    for file in files:
        read = configparser.ConfigParser(strict=True, interpolation=None, delimiters="=")
        read.read_string(file.text)
        assert read["connection"]["id"] in file.path
        # IFNAMSIZ holds 15 characters and a zero.
        assert len(read["connection"].get("interface-name", "")) <= 15


def _spec() -> VlanSpec:
    return VlanSpec(
        order=NetworkOrder(name="storage", vlan=1100, gateway_size=16),
        text="",
        roles=("worker",),
        first={"control-plane": 2, "worker": 6},
    )


@pytest.mark.parametrize(
    ("role", "number", "address"),
    [
        ("control-plane", 0, "10.66.0.18/28"),
        ("control-plane", 2, "10.66.0.20/28"),
        ("worker", 0, "10.66.0.22/28"),
        ("worker", 8, "10.66.0.30/28"),
    ],
)
def test_machines_have_addresses_by_their_numbers(role: str, number: int, address: str) -> None:
    assert _spec().address("10.66.0.16/28", role, number) == address  # pyright: ignore[reportArgumentType]


def test_a_machine_has_the_reservation_of_its_place() -> None:
    order = partial(MachineOrder, role="worker", hostnames=("w-0", "w-1"), plan="p", operating_system="custom_ipxe")
    assert order().reservation("w-1") is None
    assert order(reservations=("next-available",)).reservation("w-1") == "next-available"
    assert order(reservations=("a", "b")).reservation("w-1") == "b"
