"""The section of the settings on service addresses: what is taken, and how each mistake is told."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import Field, ValidationError

from metal_ipi.stacks.problems import Problem, describe
from metal_ipi.stacks.sections.base import Section
from metal_ipi.stacks.sections.service_addresses import (
    CloudController,
    MetalLbBgp,
    MetalLbL2,
    NoServiceAddresses,
    ServiceAddresses,
)
from tests.stacks.answers import tells

BLOCK = {"name": "public", "addresses": ["203.0.113.240/28"]}


class Root(Section):
    """Where the section stands."""

    service_addresses: ServiceAddresses = Field(default_factory=NoServiceAddresses, description="service addresses")


def read(section: dict[str, Any]) -> Any:
    return Root.model_validate({"serviceAddresses": section}).service_addresses


def problems(section: dict[str, Any]) -> list[Problem]:
    with pytest.raises(ValidationError) as caught:
        read(section)
    return describe(caught.value, Root)


def bgp(*pools: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "metallb-bgp", "pools": list(pools), **more}


def test_every_kind() -> None:
    assert Root.model_validate({}).service_addresses == NoServiceAddresses()
    assert read({"type": "none"}) == NoServiceAddresses()
    assert read({"type": "cloud-controller"}) == CloudController()
    routed = read(bgp(BLOCK, {"name": "reserved", "reserve": 8, "autoAssign": False, "aggregationLength": 29}))
    assert isinstance(routed, MetalLbBgp)
    assert [pool.addresses for pool in routed.pools] == [("203.0.113.240/28",), ()]
    assert (routed.pools[1].reserve, routed.pools[1].auto_assign, routed.peers_per_node) == (8, False, 2)
    near = read({"type": "metallb-l2", "pools": [BLOCK], "interfaces": ["bond0"], "install": False})
    assert isinstance(near, MetalLbL2)
    assert (near.interfaces, near.install) == (("bond0",), False)


def test_ranges_of_both_kinds() -> None:
    addresses = ["192.0.2.1-192.0.2.9", "2001:db8::/124", "2001:db8:1::1 - 2001:db8:1::9"]
    assert read(bgp({"name": "a", "addresses": addresses})).pools[0].addresses == tuple(addresses)


@pytest.mark.parametrize(
    ("section", "path", "why", "remedy"),
    [
        (
            {"type": "metallb"},
            ".type",
            "must be one of the existing types",
            "'metallb-bgp', 'metallb-l2', 'cloud-controller'",
        ),
        (bgp(), ".pools", "there is no pool", "'none'"),
        (bgp({"name": "a"}), ".pools[0]", "exactly one of addresses and reserve", "set addresses to what is routed"),
        (bgp({**BLOCK, "reserve": 8}), ".pools[0]", "exactly one of addresses and reserve", "or reserve to a number"),
        (
            bgp({"name": "a", "reserve": 3}),
            ".pools[0].reserve",
            "there are no blocks of this size",
            "take one of 1, 2, 4",
        ),
        (bgp({"name": "a", "reserve": True}), ".pools[0].reserve", "valid integer", "how many elastic addresses"),
        (bgp({**BLOCK, "name": "A b"}), ".pools[0].name", "a pool cannot have this name", "up to 63 of a-z"),
        (bgp({**BLOCK, "autoassign": True}), ".pools[0].autoassign", "no such setting", "did you mean 'autoAssign'?"),
        (bgp(BLOCK, holdTime=2), ".holdTime", "greater than or equal to 3", "at least 3"),
        (bgp(BLOCK, peersPerNode=0), ".peersPerNode", "greater than or equal to 1", "how many peer addresses"),
        (bgp(BLOCK, catalog="Red Hat"), ".catalog", "match pattern", "redhat-operators on OpenShift"),
        (bgp({**BLOCK, "aggregationLength": 24}), ".pools[0].aggregationLength", "a block of length 28", "28 or more"),
        (
            bgp({"name": "a", "reserve": 4, "aggregationLength": 29}),
            ".pools[0].aggregationLength",
            "a block of length 30",
            "30 or more",
        ),
        (bgp(BLOCK, {**BLOCK, "addresses": ["192.0.2.0/30"]}), ".pools", "two pools are called 'public'", "of its own"),
        (
            bgp(BLOCK, {"name": "b", "addresses": ["203.0.113.250-203.0.113.251"]}),
            ".pools",
            "203.0.113.250-203.0.113.251 of pool 'b' and 203.0.113.240/28 of pool 'public' overlap",
            "list each address once",
        ),
        (
            bgp(*({"name": f"p{n}", "addresses": [f"192.0.2.{n}/32"], "aggregationLength": 32} for n in range(11))),
            ".pools",
            "more than 10 prefixes",
            "join pools",
        ),
        ({"type": "metallb-l2", "pools": [{"name": "a"}]}, ".pools[0].addresses", "it is empty", "nothing else uses"),
        (
            {"type": "metallb-l2", "pools": [{"name": "a", "reserve": 8}]},
            ".pools[0].reserve",
            "no such setting",
            "",
        ),
        ({"type": "metallb-l2", "pools": [BLOCK], "interfaces": ["a/b"]}, ".interfaces[0]", "not a name", "bond0"),
        ({"type": "cloud-controller", "pools": []}, ".pools", "no such setting", ""),
    ],
)
def test_mistakes(section: dict[str, Any], path: str, why: str, remedy: str) -> None:
    assert tells(problems(section), f"serviceAddresses{path}", why, remedy)


@pytest.mark.parametrize(
    ("addresses", "why", "remedy"),
    [
        ("203.0.113.241", "it is one address", "write it as 203.0.113.241/32"),
        ("2001:db8::1", "it is one address", "write it as 2001:db8::1/128"),
        ("203.0.113.241/28", "has host bits set", "192.0.2.0/28"),
        ("203.0.113.9-203.0.113.1", "first", "192.0.2.1-192.0.2.9"),
        ("203.0.113.9-2001:db8::1", "not of the same family", "192.0.2.1-192.0.2.9"),
        ("public", "does not appear to be an IPv4 or IPv6", "192.0.2.0/28"),
        ("", "does not appear to be an IPv4 or IPv6", "192.0.2.0/28"),
    ],
)
def test_addresses_that_are_none(addresses: str, why: str, remedy: str) -> None:
    found = problems(bgp({"name": "a", "addresses": ["192.0.2.0/30", addresses]}))
    assert tells(found, "serviceAddresses.pools[0].addresses[1]", why, remedy)
