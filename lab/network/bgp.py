"""Configuration and status of the facility's router: plain data between the Metal API and the router.

RouterError     it refused what it was told, or does not answer
"""

from __future__ import annotations

from dataclasses import dataclass

from lab.errors import LabError


class RouterError(LabError):
    """The router refused a configuration, or does not answer."""


@dataclass(frozen=True, kw_only=True)
class Peer:
    """A machine that may announce addresses."""

    name: str
    """The session's id, a UUID."""
    address: str
    """The address from which it speaks BGP."""
    asn: int
    password: str | None
    """The password for TCP's MD5 signatures; no signatures if None."""
    prefixes: tuple[str, ...]
    """The prefixes that it may announce, as a whole or in parts."""
    default_route: bool
    """Whether it is offered one."""


@dataclass(frozen=True, kw_only=True)
class Routes:
    """The configuration of the router."""

    peers: tuple[Peer, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Seen:
    """The state of a peer in the router."""

    states: tuple[str, ...]
    """`up` or `down`, one for each of the facility's routers."""
    learned: tuple[str, ...]
    """The prefixes accepted from it, by either."""
