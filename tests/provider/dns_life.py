"""What every DNS service must do, told once: the tests of each service run it against that service.

A `Zone` is the service as somebody else sees and changes it: by its own means, past the provider.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any, Protocol

import pytest

from metal_ipi.provider.dns_ownership import LABEL
from metal_ipi.provider.dns_services.opening import open_service
from metal_ipi.provider.errors import DnsConflict
from tests.provider.harness import Resource, configured, settings_of

DOMAIN = "lab.facility.test"


class Zone(Protocol):
    """facility.test, as somebody else sees it."""

    config: dict[str, Any]
    """The provider's `dns` section."""

    def values(self, name: str, type_: str) -> set[str]:
        """What is there; texts without quotation marks."""
        ...

    def ttl(self, name: str, type_: str) -> int:
        """The TTL of a set that is there."""
        ...

    def add(self, name: str, type_: str, value: str) -> None:
        """Somebody adds a value by hand."""
        ...

    def remove(self, name: str, type_: str, value: str) -> None:
        """Somebody removes a value by hand."""
        ...

    def everything(self) -> set[tuple[str, str, str]]:
        """Every (name, type, value) of the zone, without its SOA and NS."""
        ...


def a(name: str, *values: str) -> dict[str, Any]:
    return {"name": f"{name}.{DOMAIN}", "type": "A", "values": list(values)}


def inputs(*records: dict[str, Any], ttl: int = 300, **more: Any) -> dict[str, Any]:
    labelled = {f"{record['name']} {record['type']}": record for record in records}
    return {"zone": "facility.test", "domain": DOMAIN, "ttl": ttl, "records": labelled, **more}


async def resource(zone: Zone, name: str = "it", stack: str = "test", **more: Any) -> Resource:
    made = await configured("DnsRecords", name, dns={**zone.config, **more})
    return replace(made, stack=stack)


def markers(zone: Zone) -> set[str]:
    return {value for name, kind, value in zone.everything() if kind == "TXT" and name.startswith(LABEL)}


async def whole_life(zone: Zone) -> None:
    """Create, no-op, change, TTL, drift, delete twice; nothing of ours is left, and nothing else has gone."""
    before = zone.everything()
    it = await resource(zone)
    ipv6 = {**a("api", "2001:db8::1", "2001:db8::3"), "type": "AAAA"}
    first = inputs(a("api", "198.51.100.1", "198.51.100.3"), a("*.apps", "198.51.100.5"), ipv6)
    await it.up(first)
    assert zone.values(f"api.{DOMAIN}", "AAAA") == {"2001:db8::1", "2001:db8::3"}
    assert zone.values(f"api.{DOMAIN}", "A") == {"198.51.100.1", "198.51.100.3"}
    assert zone.values(f"*.apps.{DOMAIN}", "A") == {"198.51.100.5"}
    assert zone.ttl(f"api.{DOMAIN}", "A") == 300
    (marker,) = markers(zone)
    assert marker.startswith("heritage=metal-ipi,owner=metal-ipi/test,resource=it,holds=")
    await it.refresh()
    assert await it.changes(first) == []

    zone.add(f"api.{DOMAIN}", "A", "192.0.2.77")  # somebody else's value in our set stays
    second = inputs(a("api", "198.51.100.1", "198.51.100.7"), a("n", "198.51.100.9"), ipv6)
    assert await it.changes(second) == [
        f'records["*.apps.{DOMAIN} A"]',
        f'records["api.{DOMAIN} A"].values',
        f'records["n.{DOMAIN} A"]',
    ]
    await it.up(second)
    assert zone.values(f"api.{DOMAIN}", "A") == {"198.51.100.1", "198.51.100.7", "192.0.2.77"}
    assert zone.values(f"*.apps.{DOMAIN}", "A") == set()

    longer = {**second, "ttl": 600}
    assert await it.changes(longer) == ["ttl"]
    await it.up(longer)
    assert zone.ttl(f"n.{DOMAIN}", "A") == zone.ttl(f"api.{DOMAIN}", "A") == 600

    zone.remove(f"n.{DOMAIN}", "A", "198.51.100.9")
    await it.refresh()
    assert await it.changes(longer) == [f'records["n.{DOMAIN} A"]']
    await it.up(longer)
    assert zone.values(f"n.{DOMAIN}", "A") == {"198.51.100.9"}

    (marker,) = markers(zone)
    zone.remove(f"{LABEL}.{DOMAIN}", "TXT", marker)
    await it.refresh()
    assert await it.changes(longer) == ["marked"]
    await it.up(longer)
    assert markers(zone) == {marker}

    await it.delete()
    await it.delete()
    assert zone.everything() - before == {(f"api.{DOMAIN}", "A", "192.0.2.77")}
    zone.remove(f"api.{DOMAIN}", "A", "192.0.2.77")
    assert zone.everything() == before


async def exchanges(zone: Zone) -> None:
    """A value that one resource gives back while another one of the stack takes it over is there in the end."""
    lasting, passing = await resource(zone, "lasting"), await resource(zone, "passing")
    await lasting.up(inputs(a("api", "198.51.100.1", "198.51.100.3")))
    await passing.up(inputs(a("api", "198.51.100.5"), ephemeral=True))
    for taken, fresh in (("198.51.100.5", "198.51.100.7"), ("198.51.100.7", "198.51.100.9")):
        await asyncio.gather(
            passing.up(inputs(a("api", fresh), ephemeral=True)), lasting.up(inputs(a("api", "198.51.100.1", taken)))
        )
        assert zone.values(f"api.{DOMAIN}", "A") == {"198.51.100.1", taken, fresh}
    await asyncio.gather(lasting.delete(), passing.delete())


async def clashes(zone: Zone) -> None:
    """Values of others, of other stacks, equal ones and aliases are refused before anything changes."""
    zone.add(f"taken.{DOMAIN}", "A", "192.0.2.99")
    zone.add(f"same.{DOMAIN}", "A", "198.51.100.1")
    zone.add(f"alias.{DOMAIN}", "CNAME", "elsewhere.test.")
    theirs = await resource(zone, stack="elsewhere")
    await theirs.up(inputs(a("theirs", "198.51.100.1")))
    before = zone.everything()
    for name, told in (
        ("taken", rf"taken\.{DOMAIN} A is 192\.0\.2\.99 \(its owner is not known\)"),
        ("same", rf"same\.{DOMAIN} A is 198\.51\.100\.1 \(its owner is not known\)"),
        ("alias", rf"alias\.{DOMAIN} is an alias, CNAME elsewhere\.test"),
        ("theirs", rf"theirs\.{DOMAIN} A is 198\.51\.100\.1 \(of stack metal-ipi/elsewhere\)"),
    ):
        with pytest.raises(DnsConflict, match=told):
            await (await resource(zone)).up(inputs(a("fresh", "198.51.100.1"), a(name, "198.51.100.1")))
        assert zone.everything() == before
    # A state of ours that names what another stack holds now does not remove it.
    ours = await resource(zone)
    ours.id, ours.state = "x", {**inputs(a("theirs", "198.51.100.1")), "marked": True}
    await ours.delete()
    assert zone.everything() == before
    await theirs.delete()
    for name, kind, value in (("taken", "A", "192.0.2.99"), ("same", "A", "198.51.100.1")):
        zone.remove(f"{name}.{DOMAIN}", kind, value)
    zone.remove(f"alias.{DOMAIN}", "CNAME", "elsewhere.test.")


async def pools(zone: Zone) -> None:
    """Stacks of one facility share a set from the start, and each takes back its own; equal values, and those of other
    stacks, stay clashes."""
    name, beside = "apps", "metal-ipi/test"
    cluster, gpu = await resource(zone), await resource(zone, stack="test-gpu")
    await cluster.up(inputs(a(name, "198.51.100.1")))
    await gpu.up(inputs(a(name, "198.51.100.2"), beside=beside))
    late = await resource(zone, stack="test-late")
    with pytest.raises(DnsConflict, match=r"198\.51\.100\.2 \(of stack metal-ipi/test-gpu\)"):
        await late.up(inputs(a(name, "198.51.100.2"), beside=beside))
    await late.up(inputs(a(name, "198.51.100.3"), beside=beside))
    await cluster.up(inputs(a(name, "198.51.100.1", "198.51.100.4")))
    await gpu.delete()
    assert zone.values(f"apps.{DOMAIN}", "A") == {f"198.51.100.{number}" for number in (1, 3, 4)}
    other = await resource(zone, stack="other-gpu")
    with pytest.raises(DnsConflict, match="already has values that this stack did not set"):
        await other.up(inputs(a(name, "198.51.100.9"), beside="metal-ipi/other"))
    await late.delete()
    await cluster.delete()
    assert not zone.values(f"apps.{DOMAIN}", "A")


async def lost_state(zone: Zone) -> None:
    """With the state gone, the same stack finds what is its own, mends it, and still refuses what is not."""
    before = zone.everything()
    await (await resource(zone)).up(inputs(a("api", "198.51.100.1", "198.51.100.3"), a("n", "198.51.100.5")))
    again = await resource(zone)
    await again.up(inputs(a("api", "198.51.100.1", "198.51.100.7"), a("n", "198.51.100.5")))
    assert zone.values(f"api.{DOMAIN}", "A") == {"198.51.100.1", "198.51.100.7"}
    zone.add(f"api.{DOMAIN}", "A", "192.0.2.77")
    held = zone.everything()
    with pytest.raises(DnsConflict, match=r"192\.0\.2\.77"):
        await (await resource(zone)).up(inputs(a("api", "198.51.100.9")))
    assert zone.everything() == held
    zone.remove(f"api.{DOMAIN}", "A", "192.0.2.77")
    await again.delete()
    assert zone.everything() == before


async def ephemeral(zone: Zone) -> None:
    """Lasting and ephemeral values share sets; the removal withdraws, and neither refresh nor a new TTL brings back."""
    before = zone.everything()
    lasting, passing = await resource(zone, "lasting"), await resource(zone, "passing")
    kept = inputs(a("api", "198.51.100.1"))
    temporary = inputs(a("api", "198.51.100.201"), a("bootstrap", "198.51.100.201"), ephemeral=True)
    await passing.up(temporary)
    await lasting.up(kept)
    assert zone.values(f"api.{DOMAIN}", "A") == {"198.51.100.1", "198.51.100.201"}
    assert len(markers(zone)) == 2
    removal = Resource(passing.harness, "Removal")
    records = [{"zone": "facility.test", **record} for record in temporary["records"].values()]
    await removal.up({"records": records})
    assert zone.values(f"api.{DOMAIN}", "A") == {"198.51.100.1"}
    assert zone.values(f"bootstrap.{DOMAIN}", "A") == set()
    assert len(markers(zone)) == 1
    await passing.refresh()
    assert await passing.changes(temporary) == []
    await passing.up({**temporary, "ttl": 600})
    assert zone.values(f"api.{DOMAIN}", "A") == {"198.51.100.1"}
    await passing.delete()
    await lasting.delete()
    assert zone.everything() == before


async def proven(zone: Zone) -> None:
    """Whether the zone can be written is found out without a trace, and without harm to what is there."""
    zone.add(f"other.{DOMAIN}", "A", "192.0.2.77")
    before = zone.everything()
    service = open_service(settings_of(dns=zone.config).need_dns(), "facility.test")
    await service.prove_writable(f"_probe.{DOMAIN}")
    await service.prove_writable(f"_probe.{DOMAIN}")
    assert zone.everything() == before
    zone.remove(f"other.{DOMAIN}", "A", "192.0.2.77")


Story = Callable[[Zone], Coroutine[Any, Any, None]]
STORIES: tuple[Story, ...] = (whole_life, exchanges, clashes, pools, lost_state, ephemeral, proven)


def named(story: Story) -> str:
    """How pytest shows a story."""
    return getattr(story, "__name__", "")
