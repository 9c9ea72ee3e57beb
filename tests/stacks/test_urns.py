"""URNs are forever: a resource whose type, name or parents change is replaced, so a change must be seen and meant."""

from __future__ import annotations

import pytest

from stacks.program import main
from tests import golden
from tests.mocks import Recorder, run
from tests.stacks.answers import ANSWERS, CALLS, settings

_SERVICES = {"type": "metallb-bgp", "pools": [{"name": "elastic", "reserve": 4}]}


@pytest.mark.parametrize("stack", ["da11", "lab", "rack7"])
def test_urns_of_the_committed_stacks(stack: str) -> None:
    recorder = Recorder(ANSWERS)
    run(main, recorder, settings(stack), stack=stack, preview=True)
    urns = sorted(recorder.urn(args.name) for args in recorder.resources)
    golden.check(f"urns-{stack}.txt", "".join(f"{urn}\n" for urn in urns))


def test_urns_of_service_addresses() -> None:
    recorder = Recorder(ANSWERS, CALLS)
    run(main, recorder, settings("da11", workers={"count": 1}, serviceAddresses=_SERVICES), stack="da11")
    urns = sorted(recorder.urn(args.name) for args in recorder.resources if "service-addresses" in args.name)
    golden.check("urns-service-addresses.txt", "".join(f"{urn}\n" for urn in urns))
