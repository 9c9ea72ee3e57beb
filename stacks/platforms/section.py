"""What every platform's settings answer to the rest of the settings."""

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
    """A setting that is required except in a rehearsal."""

    path: str
    """Its path."""
    when: Callable[[Tree], bool] = lambda tree: True
    """Whether a tree of settings needs it. The tree is not validated yet."""
    why: str = "it is required; only a rehearsal works without it"
    """The message if it is missing."""
    remedy: str | None = None
    """What to do. None: set it. A remedy of its own may name another setting as an alternative."""


@dataclass(frozen=True, kw_only=True)
class OfMachine:
    """The settings of one machine, besides those of its role and of all machines."""

    accept: Literal["new", "empty", "wipe"] = "new"
    """What may be on its disk. `new`: anything, because the machine is ordered for this cluster."""
    mac: str | None = None
    """The MAC address of the interface that boots. None if the platform boots the machine itself."""
    installation: int = 0
    """A counter: raising it installs the machine again."""
    kernel_arguments: tuple[str, ...] = ()
    """Further kernel arguments."""
    install_device: DeviceRule | None = None
    """The disk to install to. None: the rule for all machines."""
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    """Further labels of its node."""
    taints: tuple[Taint, ...] = ()
    """Further taints of its node."""
    wipe_disks: tuple[DeviceRule, ...] | None = None
    """Other disks to empty. None: the rules for all machines."""


class PlatformSection(Section):
    """A platform's section. The defaults here are for ordered machines; a section with listed machines overrides
    them."""

    needed: ClassVar[tuple[Needed, ...]] = ()
    """Settings below `platform` that are required except in a rehearsal."""

    def machines(self, counts: Mapping[str, int]) -> tuple[str, ...]:
        """The permanent machines, by name within the cluster: control-plane-0, ..., arbiter-0, worker-0, ...

        `counts` is the number of machines of each role.
        """
        return tuple(f"{role}-{number}" for role, count in counts.items() for number in range(count))

    def machines_of(self, names: Iterable[str]) -> tuple[str, ...]:
        """Those of these names that exist."""
        return tuple(names)

    def against_pools(self) -> Found:
        """Settings that prevent workers in stacks of their own."""
        yield from ()

    def narrowed(self, machines: frozenset[str], pool: str | None) -> Self:
        """The section of a stack that has only these machines: a pool's stack, or the cluster's own stack."""
        return self

    def of_machine(self, name: str) -> OfMachine:
        """The settings of a machine (`worker-0`)."""
        return OfMachine()

    def given_kernel_arguments(self) -> Iterator[tuple[str, Sequence[str]]]:
        """The kernel arguments in the section: (path, arguments)."""
        yield from ()

    @property
    def live_iso_machines(self) -> tuple[str, ...]:
        """The machines that boot CoreOS's live ISO."""
        return ()


def at(tree: Any, path: str) -> Any:
    """The value at a path of a tree that is not validated; None if there is none."""
    value: Any = tree
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def items(value: Any) -> list[Any]:
    """The value if it is a list; otherwise an empty list."""
    return value if isinstance(value, list) else []
