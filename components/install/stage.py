"""How far a cluster is when a run begins: which machines may be made again, and whether the assets have to be.

Before bootstrap is complete there is no cluster. Until then machines may be made again, and must be if their assets are
no longer valid. After that nothing is made again automatically. It may also be unknown whether a cluster was formed, if
no run saw it and nothing answers: then nothing is made again without the user's consent.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pulumi

from metal_ipi.components.install.asking import Answer
from metal_ipi.components.install.previous_runs import PreviousRuns
from metal_ipi.components.install.renewal import changed_manifests, reasons

Ask = Callable[[PreviousRuns], Answer]
"""Asks the cluster that earlier runs began with whether it was formed."""


class StageError(ValueError):
    """The installer's assets can no longer be used, and it is unknown whether there is a cluster."""


@dataclass(frozen=True, kw_only=True)
class Stage:
    """How far a cluster is."""

    formed: bool
    """Whether bootstrap was complete. From then on machines and assets are never made again automatically."""
    resumed: bool = False
    """Whether an earlier run began the installation, and the cluster is not formed yet."""
    renewal: tuple[str, ...] = ()
    """Reasons why this run creates the assets again, each completing a sentence with «because». Empty: it does not."""
    source: str = ""
    """How it is known that the cluster is not formed, if an earlier run began the installation."""
    doubt: str = ""
    """Why it is unknown whether the cluster is formed. Empty: it is known. In doubt, nothing is made again."""
    fingerprint: str = ""
    """The fingerprint of the assets of a cluster in doubt, for the setting install.discard."""
    schedulable: bool = False
    """Whether the cluster was installed without workers: its control plane runs pods, even after workers were added."""
    manifests: tuple[str, ...] = ()
    """The names of the user's manifests that changed since the cluster was created."""

    @property
    def disposable(self) -> bool:
        """Whether machines may be replaced without losing a cluster."""
        return not self.formed and not self.doubt


def stage(
    found: PreviousRuns, wanted: Mapping[str, Any], *, time: datetime, ask: Ask, discarded: str | None = None
) -> Stage:
    """Determine how far the cluster is, from what earlier runs left in the state.

    Args:
        wanted: the driver's request of this run; secret.
        time: the current time, with time zone.
        ask: called only if earlier runs left assets and control plane machines, and did not see bootstrap complete: the
            cluster may have been formed after a gate timed out.
        discarded: the fingerprint of assets; the user states that no cluster was formed with them.

    Raises:
        StageError: The assets must be created again, it is unknown whether there is a cluster, and the user did not
            discard them.
    """
    manifests = tuple(changed_manifests(found.request or wanted, wanted))
    if found.bootstrapped or found.request is None:
        return Stage(formed=found.bootstrapped, manifests=manifests)
    renewal = reasons(was=found.request, now=wanted, assets=found.assets, time=time)
    # The prefix keeps it a text: YAML, and `pulumi config set --path`, read eight digits alone as a number.
    fingerprint = f"assets-{hashlib.sha256(found.assets.encode()).hexdigest()[:8]}"
    if not found.has_control_plane:
        source = "no control plane machine was made yet"
    elif discarded == fingerprint:
        source = "install.discard says so"
    else:
        answer = ask(found)
        if answer.formed:
            return Stage(formed=True, manifests=manifests)
        if answer.formed is None:
            if renewal:
                raise StageError(_refusal(renewal, answer.text, fingerprint))
            return Stage(formed=False, doubt=answer.text, fingerprint=fingerprint)
        source = answer.text
    return Stage(formed=False, resumed=True, renewal=renewal, source=source)


def tell(found: Stage) -> None:
    """Log what is made again, and why, before it happens; in previews as well."""
    if found.renewal:
        pulumi.log.warn(
            f"the installer's assets are made anew, because {'; and because '.join(found.renewal)}. There is no cluster"
            f" yet: {found.source}. The bootstrap machine and every machine with the old configuration are replaced, "
            "too: servers are installed again, machines that run from memory are ordered again"
        )
    if found.formed and found.manifests:
        pulumi.log.warn(
            f"install.manifests: {', '.join(found.manifests)} changed since the cluster was installed, which has no "
            "effect: the installer applied the manifests once. Change the objects in the cluster, e.g. with `oc apply "
            "-f`"
        )
    if found.doubt:
        pulumi.log.warn(
            f"it is not known whether there is a cluster: no run saw that bootstrap was complete, and {found.doubt}. "
            "So existing machines stay as they are, even if their settings have changed. If there is no cluster, set "
            f"metal-ipi:install.discard to {found.fingerprint}: then machines are replaced where necessary"
        )


def _refusal(renewal: tuple[str, ...], doubt: str, fingerprint: str) -> str:
    return (
        f"the installer's assets would have to be made anew, because {'; and because '.join(renewal)}. That would "
        "destroy a cluster that was formed with the old ones, and it is not known whether there is one: no run saw "
        f"that bootstrap was complete, and {doubt}. Nothing was changed. If there is a cluster, make its API answer, "
        "and run the same command again: the cluster is kept. If there is none, set metal-ipi:install.discard to "
        f"{fingerprint}: then the assets and every machine with the old configuration are made anew"
    )
