"""Lists and deletes what stacks have in projects of Equinix Metal. The provider does this, because it knows the API."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, cast

from tools.errors import RecoveryFailed
from tools.layout import ROOT

_COMMAND = (sys.executable, "-m", "metal_ipi.provider.leftovers")

Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Resource:
    """A resource in a project that has our tags; or a project."""

    kind: str
    """`machine`, `SSH key`, `reserved address`, `project`, ...: the list is in provider/leftovers/inventory.py."""
    id: str
    name: str
    project: str
    state: str = ""
    created: datetime | None = None
    """Time of its creation; None if the API does not tell."""
    marks: Mapping[str, str] = field(default_factory=dict[str, str])
    """The tags `stack`, `cluster`, and for machines also `name`, `role` and `run`, if it has them."""
    request: str = ""
    """Id of the spot market request that it belongs to; empty if none."""

    def __str__(self) -> str:
        return f"{self.kind} {self.name} ({self.id})"


@dataclass(frozen=True, kw_only=True)
class Found:
    """The result of a listing."""

    resources: tuple[Resource, ...] = ()
    projects: tuple[Resource, ...] = ()
    others: Mapping[str, int] = field(default_factory=dict[str, int])
    """Project to the number of things in it that are not ours."""


class MetalApi:
    """Everything that one API token can reach."""

    def __init__(self, token: str) -> None:
        url = os.environ.get("METAL_API_URL")  # only set by tests
        self._metal = {"authToken": token, **({"endpoint": url} if url else {})}

    def find(self, projects: Collection[str], *, all_projects: bool = False) -> Found:
        """Everything of ours in these projects; with `all_projects` also all projects."""
        out = self._call({"list": sorted(projects), "projects": all_projects})
        answer = cast("dict[str, Any]", json.loads(out))
        return Found(
            resources=tuple(map(_resource, answer["resources"])),
            projects=tuple(map(_resource, answer["projects"])),
            others=answer["others"],
        )

    def delete(self, resources: Sequence[Resource], say: Say) -> None:
        """Deletes resources, each one after those that depend on it; raises RecoveryFailed if one cannot be deleted."""
        if not resources:
            return
        named = {resource.id: resource for resource in resources}
        out = self._call({"delete": [{"kind": each.kind, "id": each.id} for each in resources]})
        over = [cast("dict[str, str]", json.loads(line)) for line in out.splitlines()]
        for item in over:
            say(f"{named[item['id']]}: {'NOT deleted' if item['why'] else 'deleted'}")
        left = [f"{named[item['id']]}: {item['why']}" for item in over if item["why"]]
        if left:
            raise RecoveryFailed(
                f"{len(left)} of {len(resources)} resources could not be deleted",
                why="\n    ".join(left),
                remedy="run the same command again, or delete them in the console",
            )

    def _call(self, request: Mapping[str, Any]) -> str:
        """Runs the provider's command and returns its output. The request contains the token, so it is passed by
        standard input."""
        done = subprocess.run(
            _COMMAND,
            input=json.dumps({"metal": self._metal, **request}),
            capture_output=True,
            check=False,
            cwd=ROOT,
            text=True,
        )
        if done.returncode not in (0, 1) or (done.returncode == 1 and not done.stdout):
            raise RecoveryFailed(
                "cannot find out what remains in the project",
                why=done.stderr.strip() or f"{' '.join(_COMMAND[1:])} ended with status {done.returncode}",
                remedy="correct that, and run the same command again",
            )
        return done.stdout


def _resource(item: dict[str, Any]) -> Resource:
    return Resource(**cast("dict[str, Any]", {**item, "created": _time(item["created"])}))


def _time(value: object) -> datetime | None:
    if not isinstance(value, str):
        return None
    try:
        return datetime.fromisoformat(value.replace("Z", "+00:00"))
    except ValueError:
        return None
