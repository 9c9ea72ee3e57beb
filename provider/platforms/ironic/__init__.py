"""Servers that are had from Ironic, by openstacksdk.

    connection   a session with its API
    nodes        what becomes of a node: enrolled, claimed, worked on, given back
    published    what a server boots: a disc of its own, or the boot tree
    driver       servers that are lent, and what installations ask of all

Nothing is ordered: a server is claimed, or lent for a while after it was claimed.
"""

from __future__ import annotations

from metal_ipi.provider.platforms.ironic.driver import Ironic

__all__ = ["Ironic"]
