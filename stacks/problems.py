"""Problems of a stack's configuration, described so that a person can correct them.

    SettingsError          all problems of one configuration, found in one pass
        .problems: Problem   path, value, why, remedy

pydantic finds the problems; this module formulates them. It does no I/O.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pydantic import BaseModel, ValidationError
    from pydantic_core import ErrorDetails

NAMESPACE = "metal-ipi"
SECRET_NAMES = frozenset(
    {
        *("authToken", "secret", "privateKey", "pullSecret", "secretAccessKey", "password", "kubeconfig"),
        *("httpProxy", "httpsProxy"),
    }
)
SECRET_SECTIONS = frozenset({"dns.options"})
"""Sections whose keys are free, and whose every value is secret."""
Found = Iterator[tuple[str, str, str, str]]
"""Path, value, why and remedy of each problem."""
_USERINFO = re.compile(r"//[^/\s]*@")
_LONGEST_VALUE = 60
_MOST_SHOWN = 100
_NOT_SET = "(not set)"


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One wrong, missing or unknown value."""

    path: str
    """Its path, as `pulumi config set --path` takes it, e.g. `metal-ipi:platform.metro`."""
    value: str
    """The value that was found, shortened. Secrets are never shown. `(not set)` if there is no value."""
    why: str
    """What is wrong with it."""
    remedy: str
    """What to do."""

    def __str__(self) -> str:
        return f"{self.path} = {self.value}\n      {self.why}\n      -> {self.remedy}"


class SettingsError(ValueError):
    """The configuration cannot be used; contains all problems that were found."""

    def __init__(self, stack: str, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        count = "1 problem" if len(self.problems) == 1 else f"{len(self.problems)} problems"
        lines = [f"  {number}. {problem}" for number, problem in enumerate(self.problems[:_MOST_SHOWN], start=1)]
        if len(self.problems) > _MOST_SHOWN:
            lines.append(f"  and {len(self.problems) - _MOST_SHOWN} more")
        super().__init__(
            f"the configuration of stack '{stack}' (stacks/Pulumi.{stack}.yaml) has {count}; nothing was changed\n"
            + "\n".join(lines)
        )


def problems_of(found: Found) -> list[Problem]:
    """Problems with their full paths in the configuration."""
    return [
        Problem(path=f"{NAMESPACE}:{path}", value=value, why=why, remedy=remedy) for path, value, why, remedy in found
    ]


def describe(error: ValidationError, root: type[BaseModel]) -> list[Problem]:
    """Formulate every problem of a pydantic error, sorted by path."""
    problems = [_problem(details, root) for details in error.errors(include_url=False)]
    return sorted(problems, key=lambda problem: problem.path)


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that is most similar to `name`; None if no name is similar."""
    folded = {candidate.lower().replace("_", "").replace("-", ""): candidate for candidate in known}
    matches = difflib.get_close_matches(name.lower().replace("_", "").replace("-", ""), list(folded), n=1, cutoff=0.6)
    return folded[matches[0]] if matches else None


def _problem(details: ErrorDetails, root: type[BaseModel]) -> Problem:
    location = _without_union_tags(details["loc"], root)
    path = _path(location)
    kind = details["type"]
    value = details["input"]
    context: dict[str, Any] = details.get("ctx", {})
    if kind == "missing":
        return Problem(
            path=path,
            value=_NOT_SET,
            why="it is required",
            remedy=f"pulumi config set {_secret_flag(location)}--path '{path}' <value>",
        )
    if kind == "extra_forbidden":
        known = _known_names(root, details["loc"][:-1])
        guess = nearest(str(location[-1]), known)
        remedy = f"did you mean '{guess}'?" if guess else f"remove it; possible here: {', '.join(sorted(known))}"
        return Problem(path=path, value=_shown(value, location, root), why="there is no such setting", remedy=remedy)
    if kind in {"union_tag_not_found", "union_tag_invalid"}:
        tags = context.get("expected_tags") or ", ".join(f"'{tag}'" for tag in sorted(_tags(root, location)))
        return Problem(
            path=f"{path}.type",
            value=_shown(context.get("tag", _NOT_SET), (*location, "type"), root),
            why="it must be one of the existing types",
            remedy=f"set it to one of: {tags}",
        )
    if kind == "string_type" and isinstance(value, (int, float)):
        remedy = "write it in quotes: without them YAML reads it as a number or a boolean, and may change it"
        return Problem(path=path, value=_shown(value, location, root), why="it should be a text", remedy=remedy)
    for part in str(context.get("at", "")).split(".") if context.get("at") else ():
        location = (*location, part)
        value = value.get(part, _NOT_SET) if isinstance(value, dict) else _NOT_SET
    why = details["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
    if details["msg"].startswith("Input should be "):
        why = f"it should be {why}"
    return Problem(
        path=_path(location),
        value=_shown(value, location, root),
        why=why,
        remedy=str(context.get("remedy") or _hint(root, details["loc"]) or "correct the value"),
    )


def _path(location: Sequence[int | str]) -> str:
    path = ""
    for part in location:
        path += f"[{part}]" if isinstance(part, int) else (f".{part}" if path else part)
    return f"{NAMESPACE}:{path}"


def _secret_flag(location: Sequence[int | str]) -> str:
    return "--secret " if location and location[-1] in SECRET_NAMES else ""


def _shown(value: object, location: Sequence[int | str], root: type[BaseModel]) -> str:
    """A value as a message may show it. Only plain values of known settings are shown: a misspelt name may have a
    secret value."""
    if any(part in SECRET_NAMES for part in location):
        return "[secret]"
    models, field = _walk(root, location)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: ..." for key in value) + "}"
    nested = isinstance(value, list) and any(isinstance(item, (dict, list)) for item in value)
    if field is None or models or nested:
        return "[not shown]"
    text = value if isinstance(value, str) and value.isprintable() else json.dumps(value, default=str)
    text = _USERINFO.sub("//[secret]@", text)
    return text if len(text) <= _LONGEST_VALUE else text[: _LONGEST_VALUE - 3] + "..."


def _fields(model: type[BaseModel]) -> dict[str, Any]:
    return {info.alias or name: info for name, info in model.model_fields.items()}


def _models(annotation: object) -> list[type[BaseModel]]:
    """Every model class in an annotation: `A | B | None`, `Annotated[...]`, `tuple[A, ...]`."""
    from typing import get_args

    from pydantic import BaseModel

    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for argument in get_args(annotation) for model in _models(argument)]


def _walk(root: type[BaseModel], location: Sequence[int | str]) -> tuple[list[type[BaseModel]], Any]:
    """The models that are possible at `location`, and the field that leads there (None at the root).

    If pydantic names the chosen member of a union, only that member is returned.
    """
    models: list[type[BaseModel]] = [root]
    field: Any = None
    for part in location:
        if isinstance(part, int):
            continue
        chosen = [model for model in models if _tag(model) == part and part not in _fields(model)]
        if len(models) > 1 and chosen:
            models = chosen
            continue
        found = [fields[part] for fields in map(_fields, models) if part in fields]
        if not found:
            return [], None
        field = found[0]
        models = [model for item in found for model in _models(item.annotation)]
    return models, field


def _known_names(root: type[BaseModel], location: Sequence[int | str]) -> set[str]:
    models, _ = _walk(root, location)
    return {name for model in models for name in _fields(model)}


def _tags(root: type[BaseModel], location: Sequence[int | str]) -> set[str]:
    """The possible values of `type` at `location`."""
    models, _ = _walk(root, location)
    return {tag for model in models if (tag := _tag(model)) is not None}


def _tag(model: type[BaseModel]) -> str | None:
    """The value of `type` that selects a member of a union."""
    field = _fields(model).get("type")
    return None if field is None else str(field.default)


def _hint(root: type[BaseModel], location: Sequence[int | str]) -> str | None:
    _, field = _walk(root, location)
    if field is None:
        return None
    return f"correct it; the setting's description: {field.description}" if field.description else None


def _without_union_tags(location: Sequence[int | str], root: type[BaseModel]) -> tuple[int | str, ...]:
    """Remove the tags of discriminated unions, which pydantic puts into the path; the configuration has no such
    level."""
    result: list[int | str] = []
    for part in location:
        if part in _tags(root, result) and part not in _known_names(root, result):
            continue
        result.append(part)
    return tuple(result)
