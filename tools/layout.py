"""The paths of a stack's files. Nothing here reads or writes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
"""The project's root, where Pulumi.yaml is."""
_FOLDER = Path(".pulumi", "stacks")
_STATES = f"{_FOLDER}/*"
"""Folder of a project's states in a backend."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The paths of one stack."""

    root: Path
    """The project's root."""
    stack: str
    """The stack's name."""
    pool: str | None = None
    """The worker pool of this stack; None: it is the stack of a cluster."""
    states: Path | None = None
    """Folder for the states of stacks; None: `.state/stacks` below the root. A rehearsal uses a temporary directory."""

    @property
    def cluster(self) -> Layout:
        """The stack of the cluster: itself, or for a pool's stack the one that it belongs to."""
        return replace(self, stack=self.stack.removesuffix(f"-{self.pool}"), pool=None) if self.pool else self

    def of_pool(self, pool: str) -> Layout:
        """The stack of a pool. Call this on the cluster's stack."""
        return replace(self, stack=f"{self.stack}-{pool}", pool=pool)

    @property
    def stack_file(self) -> Path:
        """The committed configuration; for a pool's stack that of its cluster. Never written to."""
        return self.root / "stacks" / f"Pulumi.{self.cluster.stack}.yaml"

    @property
    def lab(self) -> Path:
        """The runtime directory of the lab."""
        return self.root / ".state" / "lab"

    @property
    def state(self) -> Path:
        """The folder of everything that is not committed; mode 0700. A pool's folder is below its cluster's."""
        if self.pool is not None:
            return self.cluster.state / "pools" / self.pool
        return (self.states or self.root / ".state" / "stacks") / self.stack

    @property
    def lock(self) -> Path:
        """Lock file, held (flock) while an engine may be running. It is outside of the state folder, which `down`
        removes."""
        return self.state.with_name(f"{self.stack}.lock")

    @property
    def project(self) -> Path:
        """A generated project directory. The engine writes into its stack file, so that must not be the committed
        one."""
        return self.state / "project"

    @property
    def config(self) -> Path:
        """The copy of the stack file that the engine reads, with the lab's additions."""
        return self.project / f"Pulumi.{self.stack}.yaml"

    @property
    def config_stamp(self) -> Path:
        """A keyed hash of what `config` was made of."""
        return self.state / "config.stamp"

    @property
    def last_up(self) -> Path:
        """A hash of what the last `up` was made of; see last_up.py."""
        return self.state / "last-up"

    @property
    def backend(self) -> Path:
        """The file backend: state, history and locks. A pool shares its cluster's backend, because it reads the outputs
        of the cluster's stack."""
        return self.cluster.state / "backend"

    @property
    def home(self) -> Path:
        """The engine's own home (logs, the selected stack), instead of the one in the user's home."""
        return self.state / "home"

    @property
    def passphrase(self) -> Path:
        """The generated passphrase of the secrets in the state; mode 0600."""
        return self.cluster.state / "passphrase"

    @property
    def running(self) -> Path:
        """Exists while a run is active. If it exists at the start of a run, the last run did not end properly."""
        return self.state / "running.json"

    @property
    def machines(self) -> Path:
        """File with the kind of lab machines in the state."""
        return self.state / "machines"

    @property
    def installer(self) -> Path:
        """File with the lab's installer that made the cluster."""
        return self.state / "installer"

    @property
    def log(self) -> Path:
        """The full text of the last failure, for a closer look."""
        return self.state / "failure.log"

    @property
    def timeline(self) -> Path:
        """What the last `up` did, and when."""
        return self.state / "timeline.json"

    def picture(self, kind: str) -> Path:
        """Default path of a picture of the stack."""
        return self.root / ".state" / "pictures" / f"{self.stack}-{kind}.svg"

    def checkpoints(self) -> dict[str, Path]:
        """All stacks with a state in the same folder, pools included: name to state file."""
        return {file.stem: file for file in sorted(self.cluster.state.parent.glob(f"*/backend/{_STATES}/*.json"))}

    @property
    def pools(self) -> list[str]:
        """The cluster's pools whose stacks have a state."""
        files = sorted(self.backend.glob(f"{_STATES}/{self.stack}-*.json"))
        return [file.stem.removeprefix(f"{self.stack}-") for file in files]

    @property
    def checkpoint(self) -> Path | None:
        """The engine's state file; None if there is none."""
        return next(iter(self.backend.glob(f"{_STATES}/{self.stack}.json")), None)

    def state_file(self, project: str) -> Path:
        """Where the engine writes the state of a project's stack."""
        return self.backend / _FOLDER / project / f"{self.stack}.json"

    @property
    def exists(self) -> bool:
        """Whether the engine has a state for the stack."""
        return self.checkpoint is not None
