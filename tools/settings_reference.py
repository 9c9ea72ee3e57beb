"""`python -m tools.settings_reference`: writes docs/settings.md and docs/hub-settings.md from the settings' models."""

from __future__ import annotations

import inspect
import json
import re
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from metal_ipi.stacks import becomes
from metal_ipi.stacks.hub.sections import HubSettings
from metal_ipi.stacks.hub.settings import HUB
from metal_ipi.stacks.problems import NAMESPACE
from metal_ipi.stacks.sections.devices import DeviceRule
from metal_ipi.stacks.settings import NEEDED, Settings
from tools.layout import ROOT

DOCUMENT = Path("docs") / "settings.md"
HUB_DOCUMENT = Path("docs") / "hub-settings.md"
_SHARED: dict[type[BaseModel], str] = {DeviceRule: "A rule for disks"}
"""Models that several settings use: model to the heading under which it is described once."""
_WORDS: dict[object, str] = {str: "text", int: "whole number", float: "number", bool: "`true` or `false`"}
_UNITS = {
    **{unit: unit for unit in ("seconds", "hours", "MiB", "GiB", "percent")},
    "USD per hour": "USD per hour",
}
_HEAD = """\
# Every setting

Written by `python -m tools.settings_reference` from the models in `stacks/`; a test fails when it is not up to date.

A stack is a file `stacks/Pulumi.<stack>.yaml`; its settings stand below `config`. Sections are objects there
(`metal-ipi:workers: {count: 3}`), and `pulumi config set --path 'metal-ipi:workers.count' 3` writes the same. `[]`
in a path stands for each item of a list. Nothing is converted: a number in quotes is refused, and so is a setting that
is not listed here. Problems are told all at once, each with path, value, reason and remedy, before anything is changed.

- **required**: `yes`; or `up`: a rehearsal (`make preview` of a stack that is not up here) does without it, `up` needs
  it unless the description names what may stand in its place.
- **→**: the field of install-config.yaml that the setting becomes; settings without an arrow become none.
- **secret**: set it with `pulumi config set --secret --path`; it is encrypted in the file and in the state, and never
  shown.
"""
_HUB_HEAD = """\
# Every setting of a hub

Written by `python -m tools.settings_reference` from the models in `stacks/hub`; a test fails when it is not up to date.

A stack file with the section `metal-ipi:provisioning` is the one of a hub ([Ironic as a service](provisioning.md)).
How a stack file is read, and what the columns say, is told in [Every setting](settings.md).
"""


@dataclass(frozen=True, kw_only=True)
class _Row:
    """One row of a table: a setting."""

    path: str
    kind: str
    default: str
    required: str
    text: str

    def __str__(self) -> str:
        cells = (f"`{NAMESPACE}:{self.path}`", self.kind, self.default, self.required, self.text)
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def document() -> str:
    """The text of docs/settings.md."""
    scalars = [_row(name, field, Settings) for name, field in _fields(Settings) if not _models(field.annotation)]
    parts = [_HEAD, "## The cluster", "", *_table(scalars), ""]
    for name, field in _fields(Settings):
        if _models(field.annotation):
            parts += [f"## {name}", "", _introduction(field), "", *_section(name, field, 3)]
    for model, title in _SHARED.items():
        rows = [_row(f"…{name}", field, model) for name, field in _fields(model)]
        parts += [f"## {title}", "", _doc(model), "", "The path is that of the setting that takes the rule.", ""]
        parts += [*_table(rows), ""]
    return "\n".join(parts).rstrip() + "\n"


def hub_document() -> str:
    """The text of docs/hub-settings.md."""
    parts = [_HUB_HEAD]
    for name, field in _fields(HubSettings):
        if _models(field.annotation) and name != "lab":
            parts += [f"## {name}", "", _introduction(field), "", *_section(name, field, 3)]
    return "\n".join(parts).rstrip() + "\n"


def values(model: type[BaseModel] = Settings, before: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """Yields path and field of every setting that has a value. A shared model counts as one value."""
    for name, field in _fields(model):
        path, models = f"{before}{name}", _models(field.annotation)
        if not _opened(models):
            yield path, field
        for inner in _opened(models):
            yield from values(inner, f"{path}{_items(field)}.")


def paths() -> Iterator[str]:
    """Yields the paths of all settings."""
    return (path for path, _ in values())


def _section(path: str, field: FieldInfo, level: int) -> Iterator[str]:
    """The table of a section and of its subsections, or one table per kind of the section."""
    models = _models(field.annotation)
    inner: list[tuple[str, FieldInfo]] = []
    for model in models:
        if len(models) > 1:
            yield from (f"{'#' * level} {path}: {_kind(model)}", "", f"`type: {_kind(model)}`. {_doc(model)}", "")
        rows, inner = _rows(f"{path}{_items(field)}.", model)
        if rows:
            yield from (*_table(rows), "")
        for deeper, union in inner:
            yield from _section(deeper, union, level + 1)


def _introduction(field: FieldInfo) -> str:
    words = _escaped(field.description or "")
    text = f"{words[:1].upper()}{words[1:]}."
    if len(_models(field.annotation)) > 1:
        default = _default_kind(field)
        text += (
            f" Its `type` says which kind it is; not set: `{default}`." if default else " Required, with its `type`."
        )
    return text


def _rows(before: str, model: type[BaseModel]) -> tuple[list[_Row], list[tuple[str, FieldInfo]]]:
    """The rows of a model and of the plain models in it, and the unions in it, which get sections of their own."""
    rows: list[_Row] = []
    unions: list[tuple[str, FieldInfo]] = []
    for name, field in _fields(model):
        path, models = f"{before}{name}", _models(field.annotation)
        opened = _opened(models)
        if name == "type" and _literals(field.annotation):
            continue  # the heading of its table says it
        rows.append(_row(path, field, model))
        if len(opened) > 1:
            unions.append((path, field))
        elif opened:
            more, deeper = _rows(f"{path}{_items(field)}.", opened[0])
            rows += more
            unions += deeper
    return rows, unions


def _row(path: str, field: FieldInfo, model: type[BaseModel]) -> _Row:
    needed = "up" if path in {each.path for each in (*NEEDED, *HUB.needed) if each.remedy is None} else "no"
    return _Row(
        path=path,
        kind=_type(field, path, model),
        default=_default(field),
        required="yes" if field.is_required() else needed,
        text=_escaped(field.description or "") + "".join(f" → `{each}`" for each in becomes.of(path, _kind(model))),
    )


def _table(rows: list[_Row]) -> list[str]:
    return ["| setting | type | default | required | what it is |", "|---|---|---|---|---|", *map(str, rows)]


# --- types ---------------------------------------------------------------------------------------------------------


def _type(field: FieldInfo, path: str, model: type[BaseModel]) -> str:
    text = named(field.annotation)
    if text.endswith("number"):
        unit = _unit(field, path, model)
        text += f" ({unit})" if unit else ""
        limits = _limits(field)
        text += f", {limits}" if limits else ""
    return text


def named(annotation: object) -> str:
    """The allowed values of a type annotation, in words."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return named(arguments[0])
    if origin is Literal:
        return " or ".join(f"`{json.dumps(each) if not isinstance(each, str) else each}`" for each in arguments)
    if origin is tuple or origin is list:
        return f"list of {named(arguments[0])}"
    if origin is dict:
        return "object"
    if origin in (Union, types.UnionType):
        parts = [each for each in arguments if each is not type(None)]
        return " or ".join(dict.fromkeys(map(named, parts)))
    if isinstance(annotation, type) and issubclass(annotation, SecretStr):
        return "secret text"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        title = _SHARED.get(annotation)
        return f"[rule](#{_anchor(title)})" if title else "object"
    return _WORDS.get(annotation, "any value")


def _unit(field: FieldInfo, path: str, model: type[BaseModel]) -> str:
    """The unit of a number: from the description, the name, or the description of the section."""
    name = path.rpartition(".")[2]
    for text in (field.description or "", re.sub(r"(?<=[a-z])([A-Z][a-z]+)$", r" \1", name).lower(), _doc(model)):
        for word, unit in _UNITS.items():
            if re.search(rf"\b{word}\b", text):
                return unit
    return ""


def _limits(field: FieldInfo) -> str:
    found: dict[str, Any] = {}
    for item in field.metadata:
        for bound in ("ge", "gt", "le"):
            if hasattr(item, bound):
                found[bound] = getattr(item, bound)
    if "ge" in found and "le" in found:
        return f"{found['ge']} to {found['le']}"
    if "ge" in found:
        return f"{found['ge']} or more"
    return f"more than {found['gt']}" if "gt" in found else ""


def _as_written(value: object) -> object:
    """The form of a section in a stack file."""
    assert isinstance(value, BaseModel)
    return value.model_dump(by_alias=True)


def _default(field: FieldInfo) -> str:
    value: Any = field.get_default(call_default_factory=True, validated_data={})
    if value is None or value is PydanticUndefined or isinstance(value, BaseModel):
        return "-"
    value = list(cast("tuple[object, ...]", value)) if isinstance(value, tuple) else value
    return f"`{value if isinstance(value, str) and value else json.dumps(value, default=_as_written)}`"


def _default_kind(field: FieldInfo) -> str | None:
    value: Any = field.get_default(call_default_factory=True, validated_data={})
    return _kind(type(value)) if isinstance(value, BaseModel) else None


# --- models --------------------------------------------------------------------------------------------------------


def _fields(model: type[BaseModel]) -> list[tuple[str, FieldInfo]]:
    return [(field.alias or name, field) for name, field in model.model_fields.items()]


def _models(annotation: object) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for argument in get_args(annotation) for model in _models(argument)]


def _opened(models: list[type[BaseModel]]) -> list[type[BaseModel]]:
    """The models whose fields are listed in place: not shared ones, and not those without fields."""
    return [model for model in models if model not in _SHARED and model.model_fields]


def _items(field: FieldInfo) -> str:
    return "[]" if _is_list(field.annotation) else ""


def _is_list(annotation: object) -> bool:
    if get_origin(annotation) in (tuple, list):
        return True
    return any(_is_list(argument) for argument in get_args(annotation))


def _literals(annotation: object) -> bool:
    return get_origin(annotation) is Literal


def _kind(model: type[BaseModel]) -> str:
    """The `type` of a section that has kinds; empty for others."""
    return str(model.model_fields["type"].default) if "type" in model.model_fields else ""


def _doc(model: type[BaseModel]) -> str:
    return _escaped(" ".join((inspect.getdoc(model) or "").split()))


def _escaped(text: str) -> str:
    """Escapes angle brackets, which Markdown takes for HTML."""
    return re.sub(r"<([^>`]*)>", r"&lt;\1&gt;", text)


def _anchor(title: str) -> str:
    return re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-")


def main() -> int:
    """Writes both pages."""
    (ROOT / DOCUMENT).write_text(document())
    (ROOT / HUB_DOCUMENT).write_text(hub_document())
    return 0


if __name__ == "__main__":
    sys.exit(main())
