"""How the settings of a stack are read and checked, whatever it is a stack of.

Every `metal-ipi:` key of the stack's configuration is read at once and validated without touching disk or network. All
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
    """The running stack's configuration: name → value, every value a text, objects as JSON."""
    values = {**pulumi.runtime.config.get_config_env(), **pulumi.runtime.config.CONFIG.get()}
    return {key.partition(":")[2]: value for key, value in values.items() if key.startswith(f"{NAMESPACE}:")}


def _as_it_is(tree: Tree) -> tuple[Tree, Sequence[str]]:
    return tree, ()


@dataclass(frozen=True, kw_only=True)
class Kind(Generic[Model]):
    """A kind of stack."""

    model: type[Model]
    """Its settings, which have `rehearsal` among them."""
    needed: Sequence[Needed]
    """What a real change needs and a rehearsal does not."""
    conflicts: Callable[[Model], Iterable[Problem]]
    """What cannot go together."""
    current: Callable[[Tree], tuple[Tree, Sequence[str]]] = _as_it_is
    """From a tree of an earlier version to one of this, and a warning for each change."""

    def load(self) -> Model:
        """Read and validate the running stack's configuration. Raises SettingsError; registers no resource."""
        return self.of_tree(self.tree(given()))

    def of_tree(self, tree: Tree) -> Model:
        """Validate settings that stand elsewhere, by their names in a stack file. Raises SettingsError, as `load` does.

        Warns of settings that an earlier version took.
        """
        settings = self.validated(tree, pulumi.get_stack())
        _refuse_rehearsed(tree)
        for warning in self.current(tree)[1]:
            pulumi.log.warn(warning)
        return settings

    def parse(self, values: dict[str, str], stack: str) -> Model:
        """Validate configuration values as the engine hands them over. Raises SettingsError."""
        return self.validated(self.tree(values), stack)

    def tree(self, values: dict[str, str]) -> Tree:
        """Configuration values as one tree, not validated."""
        tree: Tree = {}
        for key, value in values.items():
            if value in ("", "{}"):  # the defaults in Pulumi.yaml, which mean: not set
                continue
            field = next((info for info in self.model.model_fields.values() if info.alias == key), None)
            tree[key] = value if field is None or field.annotation is str else of_json(value)
        return tree

    def validated(self, tree: Tree, stack: str) -> Model:
        """The same wherever no program runs: warns of nothing, and takes a rehearsal."""
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
        """Only a rehearsal may leave out secrets and what only the facility knows."""
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
    """Whether it is an offline preview: missing secrets are stood in for."""
    return tree.get("rehearsal") is True


def _refuse_rehearsed(tree: Tree) -> None:
    """Raises SettingsError where a rehearsal would change something."""
    if _is_rehearsed(tree) and not pulumi.runtime.is_dry_run():
        problem = Problem(
            path=f"{NAMESPACE}:rehearsal",
            value="true",
            why="a rehearsal is a preview: missing secrets are stood in for, and this would change something",
            remedy=f"pulumi config rm {NAMESPACE}:rehearsal",
        )
        raise SettingsError(pulumi.get_stack(), [problem])
