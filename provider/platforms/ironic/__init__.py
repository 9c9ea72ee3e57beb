"""Servers from Ironic, by openstacksdk.

    connection   a session with its API
    nodes        operations on a node: enrol, claim, deploy, give back
    published    what a server boots: a disc of its own, or the boot tree
    driver       servers that are lent, and the operations for installations

Nothing is ordered: a server is claimed, and may be lent for a while after that.
"""

from __future__ import annotations

from metal_ipi.provider.platforms.ironic.driver import Ironic

__all__ = ["Ironic"]
