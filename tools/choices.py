"""Decides which lab a stack gets (machines and installer): from its state, the command line or the stack file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tools import stackfile
from tools.errors import StackError
from tools.facility import INSTALLERS, KINDS, Wanted
from tools.layout import Layout


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The command line's options for a lab stack."""

    machines: str | None = None
    """The kind of machines; None: not given."""
    installer: str | None = None
    """The installer; None: not given."""


def lab(layout: Layout, asked: Asked, document: stackfile.Tree) -> Wanted | None:
    """The lab that a stack gets; None for the stack of a real facility."""
    kind = stackfile.lab_machines(document)
    if kind is None:
        return None
    return Wanted(
        machines=machines(layout, kind, asked, document),
        installer=installer(layout, asked, document),
        rack=None if stackfile.is_hub(document) else stackfile.rack(document),
        kube_vip=stackfile.announces(document),
        metallb=stackfile.uses_metallb(document),
        day_two=stackfile.has_day_two(document),
        small_kubernetes=stackfile.wants_small_kubernetes(document),
        proxy=stackfile.has_proxy(document),
        disconnected=stackfile.is_disconnected(document),
    )


def machines(layout: Layout, wanted: str, asked: Asked, document: stackfile.Tree) -> str:
    """The kind of machines: that of the existing state, else from the command line, else from the stack file."""
    chosen = asked.machines or wanted
    if chosen not in KINDS:
        raise StackError(
            f"there are no lab machines of kind '{chosen}'",
            why="MACHINES, or metal-ipi:lab.machines in the stack file, names them",
            remedy=f"use one of {', '.join(KINDS)}",
        )
    if found := stackfile.obstacle(document, chosen):
        raise StackError(f"stack '{layout.stack}' cannot have {chosen} machines", why=found.why, remedy=found.remedy)
    existing = _existing(layout, layout.machines)
    if existing and asked.machines not in {None, existing}:
        raise StackError(
            f"the stack's machines are {existing} ones, not {asked.machines}",
            why="resources cannot move between kinds of machines",
            remedy="run `make down` first, or do not set MACHINES",
        )
    return existing or chosen


def installer(layout: Layout, asked: Asked, document: stackfile.Tree) -> str:
    """The installer: that of the existing state, else from the command line, else from the stack file."""
    chosen = asked.installer or stackfile.lab_installer(document)
    if chosen not in INSTALLERS:
        raise StackError(
            f"there is no installer '{chosen}' in the lab",
            why="INSTALLER, or metal-ipi:lab.installer in the stack file, names it",
            remedy=f"use one of {', '.join(INSTALLERS)}",
        )
    existing = _existing(layout, layout.installer)
    if existing and asked.installer not in {None, existing}:
        raise StackError(
            f"the stack's cluster was made by the {existing} installer, not by the {asked.installer} one",
            why="the installer of an installed cluster cannot change",
            remedy="run `make down` first, or do not set INSTALLER",
        )
    return existing or chosen


def _existing(layout: Layout, file: Path) -> str | None:
    """What an earlier `up` has stored in a file; None if the stack does not exist."""
    return file.read_text().strip() if layout.exists and file.exists() else None
