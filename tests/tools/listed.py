"""A project's listing without an API: what `tools.metal` would be told, and what it would delete."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import Any

from tools.metal import Found, MetalApi, Resource, Say

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
PROJECT = "p"


def thing(name: str, **more: Any) -> Resource:
    """A machine, or what `kind` says, of the stack `t` and the cluster `c.test`, just made, unless told otherwise."""
    marks = {"stack": more.pop("stack", "t"), "cluster": more.pop("cluster", "c.test"), **more.pop("marks", {})}
    values: dict[str, Any] = {"kind": "machine", "id": name, "project": PROJECT, "created": NOW, **more}
    return Resource(name=name, marks={} if values["kind"] == "project" else marks, **values)


class Listed(MetalApi):
    """Answers with these things, until they are deleted."""

    def __init__(self, *things: Resource, others: int = 0) -> None:
        super().__init__("token")
        self.things = list(things)
        self._others = others

    def find(self, projects: Collection[str], *, all_projects: bool = False) -> Found:
        return Found(
            resources=tuple(each for each in self.things if each.kind != "project" and each.project in projects),
            projects=tuple(each for each in self.things if each.kind == "project" and all_projects),
            others=dict.fromkeys(projects, self._others),
        )

    def delete(self, resources: Sequence[Resource], say: Say) -> None:
        for each in resources:
            self.things.remove(each)
            say(f"{each}: deleted")

    @property
    def ids(self) -> list[str]:
        """The ids of what is still there."""
        return [each.id for each in self.things]
