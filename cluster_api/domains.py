"""Failure domains: groups of servers that may fail together; a control plane is spread over several of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

Domains = Mapping[str, Sequence[str]]
"""The names of servers, by the name of their domain."""


def of(facility: Mapping[str, Any]) -> Domains:
    """The failure domains of a MetalIpiCluster."""
    return {each["name"]: each["servers"] for each in facility["spec"].get("failureDomains") or ()}


def problems(facility: Mapping[str, Any], listed: Collection[str]) -> list[str]:
    """All problems of failure domains; `listed` are the names of the servers in the settings."""
    domains = facility["spec"].get("failureDomains") or ()
    places = [(server, each["name"]) for each in domains for server in each["servers"]]
    names = Counter(each["name"] for each in domains)
    homes = Counter(server for server, _ in places)
    return [
        *(f"spec.failureDomains has {name} {count} times: list it once" for name, count in names.items() if count > 1),
        *(f"server {server} is in {count} domains: list it in one" for server, count in homes.items() if count > 1),
        *(
            f"spec.failureDomains names server {server} in {name}, which settings.platform.servers does not list"
            for server, name in places
            if server not in listed
        ),
    ]


def home(domains: Domains, server: str) -> str | None:
    """The domain of a server; None: it is in none."""
    return next((name for name, servers in domains.items() if server in servers), None)


def next_for(domains: Domains, servers: Collection[str], used: Sequence[str]) -> str | None:
    """The domain for one more machine: the one with the fewest that has room. None: there are no domains, or no room.

    Args:
        servers: those that such a machine may have.
        used: the domains of the machines that there are.
    """
    count = Counter(used)
    room = [name for name, each in domains.items() if count[name] < len(set(each) & set(servers))]
    return min(room, key=lambda name: (count[name], name), default=None)
