"""What a cluster's machines are called."""

from __future__ import annotations

from dataclasses import dataclass

from stacks.model import Settings
from stacks.sections.service_addresses import BgpPool

API_ADDRESS = "api-address"
"""The name of the API's reserved address."""
POOLS = "service-addresses"
"""What the names of reserved blocks of service addresses begin with."""


def pool_name(pool: BgpPool) -> str:
    """The name of a pool's reserved block."""
    return f"{POOLS}-{pool.name}"


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
