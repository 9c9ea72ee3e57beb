"""How far a cluster is when a run begins: what may be made anew, and whether the installer's assets have to be.

Until bootstrap is complete there is no cluster. What machines run by then can be thrown away, and has to be where it
was made from assets that are not good any more. From then on nothing of it is ever made anew by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pulumi

from components.install.earlier import Earlier
from components.install.renewal import reasons

Ask = Callable[[str], bool]
"""Takes an administrator's kubeconfig; answers whether the cluster says that its bootstrap is complete."""


@dataclass(frozen=True, kw_only=True)
class Stage:
    """How far a cluster is."""

    formed: bool
    """Whether bootstrap was complete: machines and assets stay as they are from there on."""
    resumed: bool = False
    """Whether an earlier run has begun with the installation, and the cluster is not formed."""
    renewal: tuple[str, ...] = ()
    """Why the installer's assets are made anew by this run, in words that follow «because»; empty: they are not."""


def stage(found: Earlier, wanted: Mapping[str, Any], *, time: datetime, ask: Ask) -> Stage:
    """How far the cluster is, from what earlier runs left.

    Args:
        wanted: what the installer would be asked for now; secret.
        time: now, with its zone.
        ask: asked only where earlier runs left assets and did not see bootstrap complete: the cluster may have been
            formed after a gate gave up.
    """
    if found.bootstrapped or found.request is None:
        return Stage(formed=found.bootstrapped)
    if ask(found.assets):
        return Stage(formed=True)
    renewal = reasons(was=found.request, now=wanted, assets=found.assets, time=time)
    return Stage(formed=False, resumed=True, renewal=renewal)


def tell(found: Stage) -> None:
    """Say what is made anew, and why, before it happens: in a preview as well."""
    if found.renewal:
        pulumi.log.warn(
            f"the installer's assets are made anew, because {'; and because '.join(found.renewal)}. No earlier run saw"
            " that bootstrap was complete, and the cluster's API does not say so either, or does not answer. If there"
            " is a cluster all the same, stop this run, and have its API answer first. With the assets the bootstrap"
            " machine is made anew, and every machine that was configured by the old ones: servers are installed again,"
            " machines that run from memory are ordered again"
        )
