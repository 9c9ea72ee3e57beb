"""Reads the settings of a stack: the only reader of `pulumi.Config`. The tree itself is `stacks.model`.

`load()` reads every `metal-ipi:` key of the stack's configuration at once, validates without touching disk or network,
and raises one SettingsError that lists all problems. Keys are camelCase, as is usual in stack files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pulumi
import pulumi.runtime.config
from pydantic import ValidationError

from metal_ipi.stacks.conflicts import conflicts
from metal_ipi.stacks.model import PLATFORMS, Settings
from metal_ipi.stacks.outdated import current
from metal_ipi.stacks.plain import of_json, unfit
from metal_ipi.stacks.platforms.section import Needed, Tree, at
from metal_ipi.stacks.problems import NAMESPACE, SECRET_NAMES, Problem, SettingsError, describe, problems_of
from metal_ipi.stacks.sections.base import REHEARSAL

__all__ = ["NEEDED", "OKD_PULL_SECRET", "Settings", "SettingsError", "load", "of_tree", "parse"]

# The publicly known pull secret that OKD's documentation gives: it opens nothing, the installer only wants one.
OKD_PULL_SECRET = '{"auths":{"fake":{"auth":"aWQ6cGFzcwo="}}}'  # noqa: S105

_OF_TYPES = (
    ("dns", ("rfc2136", "delegate"), ("server", "tsig.secret")),
    ("dns", ("route53",), ("accessKeyId", "secretAccessKey")),
    ("dns", ("cloudflare",), ("authToken",)),
    ("artifacts", ("ssh",), ("host", "user", "hostKey", "privateKey", "baseUrl")),
    ("artifacts", ("s3",), ("accessKeyId", "secretAccessKey")),
)
"""Section, and what is needed in it where it is of one of these types."""
NEEDED: Sequence[Needed] = (
    *(
        replace(each, when=lambda tree, each=each, kind=kind: _is(tree, "platform", kind) and each.when(tree))
        for kind, section in PLATFORMS.items()
        for each in section.needed
    ),
    *(
        Needed(path=f"{section}.{key}", when=lambda tree, section=section, types=types: _is(tree, section, *types))
        for section, types, keys in _OF_TYPES
        for key in keys
    ),
    Needed(path="boot.streamFile", when=lambda tree: not at(tree, "boot.streamUrl")),
    Needed(path="install.pullSecret", when=lambda tree: at(tree, "install.distribution") != "okd"),
)
"""What a real change needs and a rehearsal does not."""


def _is(tree: Tree, section: str, *types: str) -> bool:
    """Whether a section is of one of these types."""
    return at(tree, f"{section}.type") in types


def _incomplete(tree: dict[str, Any]) -> list[Problem]:
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
        for each in NEEDED
        if each.when(tree) and at(tree, each.path) in (None, "", REHEARSAL)
    ]


def load() -> Settings:
    """Read and validate the running stack's configuration.

    Raises SettingsError with every problem; validation does no I/O and registers no resource.
    """
    given = {**pulumi.runtime.config.get_config_env(), **pulumi.runtime.config.CONFIG.get()}
    values = {key.partition(":")[2]: value for key, value in given.items() if key.startswith(f"{NAMESPACE}:")}
    return of_tree(_tree(values))


def of_tree(tree: dict[str, Any]) -> Settings:
    """Validate settings that stand elsewhere, by their names in a stack file. Raises SettingsError, as `load` does.

    Warns of settings that an earlier version took.
    """
    settings = _not_rehearsed(_validate(tree, pulumi.get_stack()))
    for warning in current(tree)[1]:
        pulumi.log.warn(warning)
    return settings


def _not_rehearsed(settings: Settings) -> Settings:
    """Raises SettingsError where a rehearsal would change something."""
    if settings.rehearsal and not pulumi.runtime.is_dry_run():
        problem = Problem(
            path=f"{NAMESPACE}:rehearsal",
            value="true",
            why="a rehearsal is a preview: missing secrets are stood in for, and this would change something",
            remedy=f"pulumi config rm {NAMESPACE}:rehearsal",
        )
        raise SettingsError(pulumi.get_stack(), [problem])
    return settings


def parse(values: dict[str, str], stack: str) -> Settings:
    """Validate configuration values as the engine hands them over: every value a string, objects as JSON."""
    return _validate(_tree(values), stack)


def _tree(values: dict[str, str]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for key, value in values.items():
        if value in ("", "{}"):  # the defaults in Pulumi.yaml, which mean: not set
            continue
        field = next((info for info in Settings.model_fields.values() if info.alias == key), None)
        if field is None or field.annotation is str:
            tree[key] = value
            continue
        tree[key] = of_json(value)
    return tree


def _validate(tree: dict[str, Any], stack: str) -> Settings:
    if found := problems_of(unfit(tree)):
        raise SettingsError(stack, sorted(found, key=lambda problem: problem.path))
    tree, _ = current(tree)
    problems = [] if tree.get("rehearsal") is True else _incomplete(tree)
    try:
        settings = Settings.model_validate(tree)
    except ValidationError as error:
        problems += describe(error, Settings)
    else:
        problems += conflicts(settings)
        if not problems:
            return settings
    unique = {(problem.path, problem.why): problem for problem in problems}
    raise SettingsError(stack, sorted(unique.values(), key=lambda problem: problem.path))
