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
        """Names are numbered from 0 and never reused for another role."""
        cluster = settings.cluster_name
        return cls(
            bootstrap=f"{cluster}-bootstrap",
            control_plane=tuple(f"{cluster}-control-plane-{n}" for n in range(settings.control_plane.count)),
            workers=tuple(f"{cluster}-worker-{n}" for n in range(settings.workers.count)),
        )

    @property
    def all(self) -> tuple[str, ...]:
        """Every machine, bootstrap first."""
        return (self.bootstrap, *self.control_plane, *self.workers)
