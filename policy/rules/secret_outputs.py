"""Rule: secret outputs of the stack are marked as secret."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .base import Found, Given, Resource, Rule, SecretText, walk
from .machines import STACK
from .secret_values import NAMES


def _check(resources: Sequence[Resource], given: Given) -> Iterator[Found]:
    del given
    for resource in resources:
        if resource.type != STACK:
            continue
        for path, name, value in walk(resource.properties):
            if NAMES.fullmatch(name) and isinstance(value, str) and value and not isinstance(value, SecretText):
                yield Found(
                    f"the output {path} is a secret that is not marked as one: export pulumi.Output.secret(...)",
                    resource.urn,
                )


RULE = Rule(
    name="secret-outputs",
    description="The stack's outputs that are secrets are marked as secret.",
    stack=_check,
)
