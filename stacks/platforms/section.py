"""What the settings of every platform answer, and the rest of the settings asks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Self

from metal_ipi.stacks.problems import Found
from metal_ipi.stacks.sections.base import Section
from metal_ipi.stacks.sections.devices import DeviceRule
from metal_ipi.stacks.sections.node_marks import Taint

Tree = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Needed:
    """A setting that only a rehearsal can do without."""

    path: str
    """Where it stands."""
    when: Callable[[Tree], bool] = lambda tree: True
    """Whether a tree of settings needs it; the tree is not validated yet."""
    why: str = "only a rehearsal can do without it"
    """What is wrong without it."""
    remedy: str | None = None
    """What to do; None: set it. Where it is given, another setting may take its place."""


@dataclass(frozen=True, kw_only=True)
class OfMachine:
    """What the section says of one machine, besides what is said of its role or of all."""

    accept: Literal["new", "empty", "wipe"] = "new"
    """What may be on it. `new`: it is ordered for this cluster, and holds nothing of anybody else."""
    mac: str | None = None
    """Of the interface that boots; None where the platform boots the machine by itself."""
    installation: int = 0
    """Raised to have it installed again."""
    kernel_arguments: tuple[str, ...] = ()
    """Further kernel arguments."""
    install_device: DeviceRule | None = None
    """The disk to install to; None: as for all."""
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    """Further labels of its node."""
    taints: tuple[Taint, ...] = ()
    """Further taints of its node."""
    wipe_disks: tuple[DeviceRule, ...] | None = None
    """Other disks to empty; None: as for all."""


class PlatformSection(Section):
    """A platform's section. What stands here is true of machines that are ordered; a section that lists its machines
    says otherwise."""

    needed: ClassVar[tuple[Needed, ...]] = ()
    """What only a rehearsal can do without, below `platform`."""

    def machines(self, counts: Mapping[str, int]) -> tuple[str, ...]:
        """The machines that last, by name within the cluster: control-plane-0, ..., arbiter-0, worker-0, ...

        `counts` says how many there are of each role.
        """
        return tuple(f"{role}-{number}" for role, count in counts.items() for number in range(count))

    def machines_of(self, names: Iterable[str]) -> tuple[str, ...]:
        """Those of these machines that there are."""
        return tuple(names)

    def against_pools(self) -> Found:
        """What keeps workers from being in stacks of their own."""
        yield from ()

    def narrowed(self, machines: frozenset[str], pool: str | None) -> Self:
        """The section of a stack that has these machines alone: those of a pool, or of the cluster's own stack."""
        return self

    def of_machine(self, name: str) -> OfMachine:
        """What the section says of a machine (`worker-0`)."""
        return OfMachine()

    def given_kernel_arguments(self) -> Iterator[tuple[str, Sequence[str]]]:
        """The kernel arguments that it sets: path, arguments."""
        yield from ()

    @property
    def live_iso_machines(self) -> tuple[str, ...]:
        """The machines that boot CoreOS's live ISO."""
        return ()


def at(tree: Any, path: str) -> Any:
    """The value at a path of a tree that is not validated; None where there is none."""
    value: Any = tree
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def items(value: Any) -> list[Any]:
    """A list, or nothing where it is none."""
    return value if isinstance(value, list) else []
