"""How the API is reached."""

from __future__ import annotations

from typing import Literal

from stacks.sections.base import Section


class DnsRoundRobin(Section):
    """The API's names resolve to all control plane machines."""

    type: Literal["dns-round-robin"] = "dns-round-robin"
