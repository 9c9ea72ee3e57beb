"""Where the files of a stack live. Nothing here reads or writes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
"""The project's root, where Pulumi.yaml is."""
_STATES = ".pulumi/stacks/*"
"""Where a backend has the states of a project."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The paths of one stack."""

    root: Path
    """The project's root."""
    stack: str
    """The stack's name."""
    pool: str | None = None
    """The pool of workers that it has; None: it is no pool's stack."""
    states: Path | None = None
    """Where stacks keep their state; None: `.state/stacks` below the root. A rehearsal uses a temporary directory."""

    @property
    def cluster(self) -> Layout:
        """The cluster's stack: of a pool's the one that it belongs to, else itself."""
        return replace(self, stack=self.stack.removesuffix(f"-{self.pool}"), pool=None) if self.pool else self

    def of_pool(self, pool: str) -> Layout:
        """The stack of a pool; the cluster's is told so."""
        return replace(self, stack=f"{self.stack}-{pool}", pool=pool)

    @property
    def stack_file(self) -> Path:
        """The committed configuration, of a pool that of its cluster; never written to."""
        return self.root / "stacks" / f"Pulumi.{self.cluster.stack}.yaml"

    @property
    def lab(self) -> Path:
        """The runtime directory of the lab."""
        return self.root / ".state" / "lab"

    @property
    def state(self) -> Path:
        """Everything of this stack that is not committed; mode 0700. That of a pool is below its cluster's."""
        if self.pool is not None:
            return self.cluster.state / "pools" / self.pool
        return (self.states or self.root / ".state" / "stacks") / self.stack

    @property
    def lock(self) -> Path:
        """Held (flock) while an engine may be running; beside the state, which `down` removes."""
        return self.state.with_name(f"{self.stack}.lock")

    @property
    def project(self) -> Path:
        """A generated project directory: the engine writes into its stack file, and must not into the committed one."""
        return self.state / "project"

    @property
    def config(self) -> Path:
        """The copy of the stack file that the engine reads, with what the lab adds."""
        return self.project / f"Pulumi.{self.stack}.yaml"

    @property
    def backend(self) -> Path:
        """The file backend: state, history and locks. A pool's stack reads outputs of its cluster's: both share it."""
        return self.cluster.state / "backend"

    @property
    def home(self) -> Path:
        """The engine's own home (logs, the selected stack), so that nothing is left in the user's."""
        return self.state / "home"

    @property
    def passphrase(self) -> Path:
        """The generated passphrase of the secrets in the state; mode 0600."""
        return self.cluster.state / "passphrase"

    @property
    def running(self) -> Path:
        """Exists while a run is under way; found at the start of a run, it says that the last one did not end well."""
        return self.state / "running.json"

    @property
    def machines(self) -> Path:
        """Which kind of lab machines the state's resources are."""
        return self.state / "machines"

    @property
    def installer(self) -> Path:
        """Which installer of the lab made the state's cluster."""
        return self.state / "installer"

    @property
    def log(self) -> Path:
        """The full text of the last failure, for whoever has to look deeper."""
        return self.state / "failure.log"

    @property
    def timeline(self) -> Path:
        """What the last `up` did, and when."""
        return self.state / "timeline.json"

    def picture(self, kind: str) -> Path:
        """Where a picture of the stack is put when nobody names a file."""
        return self.root / ".state" / "pictures" / f"{self.stack}-{kind}.svg"

    def checkpoints(self) -> dict[str, Path]:
        """The stacks that have their state beside this one's, with its files; those of pools among them."""
        return {file.stem: file for file in sorted(self.cluster.state.parent.glob(f"*/backend/{_STATES}/*.json"))}

    @property
    def pools(self) -> list[str]:
        """The pools of the cluster whose stacks have a state."""
        files = sorted(self.backend.glob(f"{_STATES}/{self.stack}-*.json"))
        return [file.stem.removeprefix(f"{self.stack}-") for file in files]

    @property
    def checkpoint(self) -> Path | None:
        """The file that the engine keeps the state in; None where it has none."""
        return next(iter(self.backend.glob(f"{_STATES}/{self.stack}.json")), None)

    @property
    def exists(self) -> bool:
        """Whether the engine has a state for the stack."""
        return self.checkpoint is not None
