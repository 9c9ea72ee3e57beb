"""Rule: secrets are marked as secret, in the stack's configuration and in the inputs of resources."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from .base import REHEARSAL, Given, Resource, Rule, SecretText, walk
from .machines import STACK

NAMES = re.compile(
    r"password|passwordHash|secret|.*[a-z]Secret|secretAccessKey|.*[a-z]Token|token|privateKey|.*[a-z]PrivateKey"
    r"|hostKeySeed|kubeconfig|kubeadminPassword|md5",
    re.IGNORECASE,
)
"""Names of properties that are always secret."""


def _check(resource: Resource, given: Given) -> Iterator[str]:
    if resource.type == STACK:
        yield from _of_the_configuration(given)
    for path, value in _clear(resource.properties):
        del value
        yield (
            f"{resource.name}: {path} contains a secret that is not marked as one, so it is not encrypted in the "
            "state and is shown in previews: wrap it in pulumi.Output.secret(), or take it from Config.require_secret()"
        )


def _of_the_configuration(given: Given) -> Iterator[str]:
    for key, text in sorted(given.configuration.items()):
        if key in given.secret_keys:
            continue
        for path, _ in _clear({key: _parsed(text)}):
            yield (
                f"{path} is not encrypted in the stack's configuration: `pulumi config set --secret --path '{path}'` "
                "encrypts it; if it was ever pushed, replace it by a new one"
            )


def _clear(value: Any) -> Iterator[tuple[str, str]]:
    """Yields the secrets in a value that are not marked as secret, without placeholders."""
    for path, name, found in walk(value):
        if isinstance(found, SecretText) or not isinstance(found, str) or found in {"", REHEARSAL}:
            continue
        inner = _parsed(found)
        if isinstance(inner, dict | list):
            yield from ((f"{path}.{below}", secret) for below, secret in _clear(inner))
        elif NAMES.fullmatch(re.sub(r"\[\d+\]$", "", name)):
            yield path, found


def _parsed(text: str) -> Any:
    if not text.startswith(("{", "[")):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


RULE = Rule(
    name="secrets-marked",
    description="Passwords, tokens and keys are marked as secret, in the configuration and in inputs of resources.",
    resource=_check,
)
