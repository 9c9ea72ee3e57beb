"""How far a cluster is when a run begins: what may be made anew, and whether the installer's assets have to be.

Until bootstrap is complete there is no cluster. What machines run by then can be thrown away, and has to be where it
was made from assets that are not good any more. From then on nothing of it is ever made anew by itself. A cluster that
no run saw and that nobody can be asked about may be there all the same: then nothing goes without the user's word.
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
    """The installer's assets are of no use any more, and nobody can say whether there is a cluster."""


@dataclass(frozen=True, kw_only=True)
class Stage:
    """How far a cluster is."""

    formed: bool
    """Whether bootstrap was complete: machines and assets stay as they are from there on."""
    resumed: bool = False
    """Whether an earlier run has begun with the installation, and the cluster is not formed."""
    renewal: tuple[str, ...] = ()
    """Why the installer's assets are made anew by this run, in words that follow «because»; empty: they are not."""
    source: str = ""
    """By what it is known, where an earlier run has begun, that the cluster is not formed."""
    doubt: str = ""
    """Why nobody knows whether the cluster is formed; empty: it is known. While it is not, nothing goes."""
    fingerprint: str = ""
    """What names the assets of a cluster in doubt."""
    schedulable: bool = False
    """Whether the cluster was installed without workers: its control plane takes pods, also beside workers that were
    added."""
    manifests: tuple[str, ...] = ()
    """The names of the user's manifests that were changed since the cluster was made with them."""

    @property
    def disposable(self) -> bool:
        """Whether nothing is lost with what machines run."""
        return not self.formed and not self.doubt


def stage(
    found: PreviousRuns, wanted: Mapping[str, Any], *, time: datetime, ask: Ask, discarded: str | None = None
) -> Stage:
    """How far the cluster is, from what earlier runs left.

    Args:
        wanted: what the installer would be asked for now; secret.
        time: now, with its zone.
        ask: asked only where earlier runs left assets and machines for a control plane, and did not see bootstrap
            complete: the cluster may have been formed after a gate gave up.
        discarded: the fingerprint of assets of which the user says that no cluster was formed with them.

    Raises:
        StageError: The assets have to be made anew, nobody can be asked, and the user did not discard them.
    """
    manifests = tuple(changed_manifests(found.request or wanted, wanted))
    if found.bootstrapped or found.request is None:
        return Stage(formed=found.bootstrapped, manifests=manifests)
    renewal = reasons(was=found.request, now=wanted, assets=found.assets, time=time)
    # With a word before the digits: YAML, and `pulumi config set --path`, take eight digits alone for a number.
    fingerprint = f"assets-{hashlib.sha256(found.assets.encode()).hexdigest()[:8]}"
    if not found.has_control_plane:
        source = "no machine of the control plane was made yet"
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
    """Say what is made anew, and why, before it happens: in a preview as well."""
    if found.renewal:
        pulumi.log.warn(
            f"the installer's assets are made anew, because {'; and because '.join(found.renewal)}. There is no cluster"
            f" yet: {found.source}. With the assets the bootstrap machine is made anew, and every machine that was"
            " configured by the old ones: servers are installed again, machines that run from memory are ordered again"
        )
    if found.formed and found.manifests:
        pulumi.log.warn(
            f"install.manifests: {', '.join(found.manifests)} changed since the cluster was installed, and nothing is"
            " done about it: the installer took the manifests in once. What they are to be now is for the cluster's own"
            " tools, e.g. `oc apply -f`"
        )
    if found.doubt:
        pulumi.log.warn(
            f"whether there is a cluster is not known: no run saw that bootstrap was complete, and {found.doubt}. So"
            " machines that are there stay as they are, also where their settings have changed. If there is no cluster,"
            f" set metal-ipi:install.discard to {found.fingerprint}: then they are made anew where they have to be"
        )


def _refusal(renewal: tuple[str, ...], doubt: str, fingerprint: str) -> str:
    return (
        f"the installer's assets would have to be made anew, because {'; and because '.join(renewal)}. That ends a"
        f" cluster that was formed with the old ones, and whether there is one is not known: no run saw that bootstrap"
        f" was complete, and {doubt}. Nothing was changed. If there is a cluster, have its API answer, and run this"
        f" again: it is kept. If there is none, set metal-ipi:install.discard to {fingerprint}: then the assets are"
        " made anew, and every machine that was configured by the old ones"
    )
