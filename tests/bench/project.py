"""A copy of the project: its stacks, its lab and its `.state` are the bench's own."""

from __future__ import annotations

import json
import re
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any, cast

import yaml

from tests.end_to_end.project import copy

ROOT = Path(__file__).resolve().parents[2]
_OURS = re.compile(r"MAKE.*|MFLAGS|STACK|MACHINES|FIGURES|PULUMI_.*|METAL_.*|SSL_CERT_.*|REQUESTS_CA_BUNDLE")

_FEW = 500
"""OpenShift's default, 10.128.0.0/14 by /23, has room for 512 nodes (installer, pkg/types/defaults)."""
_LARGE_NETWORK = {"cidr": "10.128.0.0/12", "hostPrefix": 23}


def ignore_own_variables(environment: MutableMapping[str, str]) -> None:
    """Take out what the caller's shell and make would tell the commands that are measured."""
    for name in [name for name in environment if _OURS.fullmatch(name)]:
        del environment[name]


class ProjectCopy:
    """The copy, and the stacks that are measured in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        copy(ROOT, root)
        self._python = str(root / ".venv" / "bin" / "python")

    def tools(self, command: str, stack: str, machines: str | None = None) -> list[str]:
        """The command line of one of the driver's commands, as the Makefile calls it."""
        chosen = ["--machines", machines] if machines else []
        return [self._python, "-m", "tools", command, "--stack", stack, *chosen]

    def resize(self, template: str, workers: int, per_stack: int | None = None) -> str:
        """Write the stack file `template` with another number of workers, and so many a stack; returns the new stack's
        name."""
        document = cast("dict[str, Any]", yaml.safe_load(self._stack_file(template).read_text()))
        split = {} if per_stack is None else {"perStack": per_stack}
        document["config"]["metal-ipi:workers"] = {"count": workers, **split}
        if workers > _FEW:
            networking = document["config"].setdefault("metal-ipi:installConfig", {}).setdefault("networking", {})
            networking["clusterNetwork"] = [_LARGE_NETWORK]
        name = f"{template}-{workers}" + ("" if per_stack is None else f"-by-{per_stack}")
        self._stack_file(name).write_text(yaml.safe_dump(document, sort_keys=False))
        return name

    def states(self, stack: str) -> dict[str, tuple[int, int]]:
        """Of a facility's stacks, by name: how many resources each has besides itself, and how many bytes the engine
        writes at each step."""
        folder = self.root / ".state" / "stacks" / stack / "backend" / ".pulumi" / "stacks" / "metal-ipi"
        texts = {file.stem: file.read_bytes() for file in sorted(folder.glob("*.json"))}
        return {
            name: (len(json.loads(text)["checkpoint"]["latest"]["resources"]) - 1, len(text))
            for name, text in texts.items()
        }

    def state(self, stack: str) -> tuple[int, int]:
        """The same of all stacks of a facility together."""
        every = self.states(stack).values()
        return sum(resources for resources, _ in every), sum(size for _, size in every)

    @property
    def lab(self) -> Path:
        """The lab's state."""
        return self.root / ".state" / "lab"

    def in_lab(self, *arguments: str) -> list[str]:
        """The command line that has Python run something inside the lab's namespaces."""
        return [self._python, "-m", "lab", "run", "--state", str(self.lab), "--", self._python, *arguments]

    def lab_down(self) -> list[str]:
        """The command line that ends the lab without regard to what a stack has in it."""
        return [self._python, "-m", "lab", "down", "--state", str(self.lab)]

    def size(self, stack: str) -> int:
        """How many machines a stack orders, the bootstrap machine included."""
        config = yaml.safe_load(self._stack_file(stack).read_text())["config"]
        return 1 + config["metal-ipi:controlPlane"]["count"] + config["metal-ipi:workers"]["count"]

    def machines(self, stack: str) -> str:
        """What kind of machines a lab stack that is up really has."""
        return (self.root / ".state" / "stacks" / stack / "machines").read_text().strip()

    def _stack_file(self, stack: str) -> Path:
        return self.root / "stacks" / f"Pulumi.{stack}.yaml"
