"""What a cluster's machines are called."""

from __future__ import annotations

from dataclasses import dataclass

from stacks.settings import Settings


@dataclass(frozen=True, kw_only=True)
class Names:
    """Short host names of a cluster's machines."""

    bootstrap: str
    control_plane: tuple[str, ...]
    workers: tuple[str, ...]

    @classmethod
    def of(cls, settings: Settings) -> Names:
        """Names say the role, and are never reused for another one."""
        cluster = settings.cluster_name
        return cls(
            bootstrap=f"{cluster}-bootstrap",
            control_plane=tuple(f"{cluster}-{name}" for name in settings.machines if not name.startswith("worker-")),
            workers=tuple(f"{cluster}-{name}" for name in settings.machines if name.startswith("worker-")),
        )

    @property
    def all(self) -> tuple[str, ...]:
        """Every machine, bootstrap first."""
        return (self.bootstrap, *self.control_plane, *self.workers)
