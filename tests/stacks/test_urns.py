"""URNs are forever: a resource whose type, name or parents change is replaced, so a change must be seen and meant."""

from __future__ import annotations

import pytest

from tests import golden
from tests.stacks.answers import declared

_SERVICES = {"type": "metallb-bgp", "pools": [{"name": "elastic", "reserve": 4}]}


@pytest.mark.parametrize(
    "stack", ["arbiter", "baremetal", "da11", "disconnected", "fips", "five", "lab", "proxy", "rack7", "storage"]
)
def test_urns_of_the_committed_stacks(stack: str) -> None:
    recorder = declared(stack, preview=True)
    urns = sorted(recorder.urn(args.name) for args in recorder.resources)
    golden.check(f"urns-{stack}.txt", "".join(f"{urn}\n" for urn in urns))


def test_urns_of_service_addresses() -> None:
    recorder = declared(workers={"count": 1}, serviceAddresses=_SERVICES)
    urns = sorted(recorder.urn(args.name) for args in recorder.resources if "service-addresses" in args.name)
    golden.check("urns-service-addresses.txt", "".join(f"{urn}\n" for urn in urns))
