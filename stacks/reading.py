"""Reads and checks the settings of a stack of any kind.

All `metal-ipi:` keys of the stack's configuration are read at once, and validated without disk or network access. All
problems are raised as one SettingsError. Keys are camelCase, as is usual in stack files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import pulumi
import pulumi.runtime.config
from pydantic import ValidationError

from metal_ipi.stacks.plain import of_json, unfit
from metal_ipi.stacks.platforms.section import Needed, at
from metal_ipi.stacks.problems import NAMESPACE, SECRET_NAMES, Problem, SettingsError, describe, problems_of
from metal_ipi.stacks.sections.base import REHEARSAL, Section

Model = TypeVar("Model", bound=Section)
Tree = dict[str, Any]


def given() -> dict[str, str]:
    """The running stack's configuration: name → value. All values are texts; objects are JSON."""
    values = {**pulumi.runtime.config.get_config_env(), **pulumi.runtime.config.CONFIG.get()}
    return {key.partition(":")[2]: value for key, value in values.items() if key.startswith(f"{NAMESPACE}:")}


def _as_it_is(tree: Tree) -> tuple[Tree, Sequence[str]]:
    return tree, ()


@dataclass(frozen=True, kw_only=True)
class Kind(Generic[Model]):
    """A kind of stack."""

    model: type[Model]
    """The model of its settings. It has a field `rehearsal`."""
    needed: Sequence[Needed]
    """Settings that are required except in a rehearsal."""
    conflicts: Callable[[Model], Iterable[Problem]]
    """Finds settings that contradict each other."""
    current: Callable[[Tree], tuple[Tree, Sequence[str]]] = _as_it_is
    """Converts a tree of an earlier version to this version; also returns a warning for each change."""

    def load(self) -> Model:
        """Read and validate the running stack's configuration. Raises SettingsError; registers no resource."""
        return self.of_tree(self.tree(given()))

    def of_tree(self, tree: Tree) -> Model:
        """Validate settings from another place, with their names in a stack file. Raises SettingsError, as `load` does.

        Logs a warning for each outdated setting.
        """
        settings = self.validated(tree, pulumi.get_stack())
        _refuse_rehearsed(tree)
        for warning in self.current(tree)[1]:
            pulumi.log.warn(warning)
        return settings

    def parse(self, values: dict[str, str], stack: str) -> Model:
        """Validate configuration values as the engine passes them. Raises SettingsError."""
        return self.validated(self.tree(values), stack)

    def tree(self, values: dict[str, str]) -> Tree:
        """Configuration values as one tree, not validated."""
        tree: Tree = {}
        for key, value in values.items():
            if value in ("", "{}"):  # the defaults in Pulumi.yaml, which stand for «not set»
                continue
            field = next((info for info in self.model.model_fields.values() if info.alias == key), None)
            tree[key] = value if field is None or field.annotation is str else of_json(value)
        return tree

    def validated(self, tree: Tree, stack: str) -> Model:
        """Validate a tree without a running program: logs no warnings, and accepts a rehearsal. Raises
        SettingsError."""
        if found := problems_of(unfit(tree)):
            raise SettingsError(stack, sorted(found, key=lambda problem: problem.path))
        tree, _ = self.current(tree)
        problems = [] if _is_rehearsed(tree) else self._incomplete(tree)
        try:
            settings = self.model.model_validate(tree)
        except ValidationError as error:
            problems += describe(error, self.model)
        else:
            problems += self.conflicts(settings)
            if not problems:
                return settings
        unique = {(problem.path, problem.why): problem for problem in problems}
        raise SettingsError(stack, sorted(unique.values(), key=lambda problem: problem.path))

    def _incomplete(self, tree: Tree) -> list[Problem]:
        """Required settings that are missing. Only a rehearsal may leave them out."""
        return [
            Problem(
                path=f"{NAMESPACE}:{each.path}",
                value="(not set)",
                why=each.why,
                remedy=each.remedy
                or f"pulumi config set {'--secret ' if each.path.split('.')[-1] in SECRET_NAMES else ''}"
                f"--path '{NAMESPACE}:{each.path}' <value>",
            )
            for each in self.needed
            if each.when(tree) and at(tree, each.path) in (None, "", REHEARSAL)
        ]


def _is_rehearsed(tree: Tree) -> bool:
    """Whether it is an offline preview, in which placeholders replace missing secrets."""
    return tree.get("rehearsal") is True


def _refuse_rehearsed(tree: Tree) -> None:
    """Raise SettingsError if a rehearsal would change something."""
    if _is_rehearsed(tree) and not pulumi.runtime.is_dry_run():
        problem = Problem(
            path=f"{NAMESPACE}:rehearsal",
            value="true",
            why="a rehearsal is only a preview, with placeholders for missing secrets, and this command would change "
            "something",
            remedy=f"pulumi config rm {NAMESPACE}:rehearsal",
        )
        raise SettingsError(pulumi.get_stack(), [problem])
