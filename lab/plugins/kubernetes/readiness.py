"""What an object is waited for: `pulumi.com/waitFor`, or what its kind has by itself."""

from __future__ import annotations

import re
from collections.abc import Callable

from lab.plugins.base import NotInTheLab
from lab.plugins.kubernetes.objects import Object, annotations_of

Look = Callable[[Object], str | None]
"""Says what is still missing, None when nothing is."""

_CONDITION = re.compile(r"condition=(?P<type>[A-Za-z0-9./-]+?)(=(?P<status>\w+))?")
_PATH = re.compile(r"jsonpath=\{(?P<path>(\.[A-Za-z0-9_-]+)+)\}(=(?P<value>.+))?")


def look_of(document: Object) -> Look:
    """How to tell that the object is ready. Raises NotInTheLab for conditions that are not implemented."""
    wanted = annotations_of(document).get("pulumi.com/waitFor")
    if wanted is None:
        return _namespace if document["kind"] == "Namespace" else lambda _: None
    if found := _CONDITION.fullmatch(str(wanted)):
        kind, status = found["type"], found["status"] or "True"
        return lambda live: _condition(live, kind, status)
    if found := _PATH.fullmatch(str(wanted)):
        path, value = found["path"].strip(".").split("."), found["value"]
        return lambda live: _field(live, path, value)
    raise NotInTheLab("kubernetes", f"the annotation pulumi.com/waitFor with the value {wanted}")


def _namespace(live: Object) -> str | None:
    phase = (live.get("status") or {}).get("phase")
    return None if phase == "Active" else f"it is {phase}, not Active"


def _condition(live: Object, kind: str, status: str) -> str | None:
    conditions: list[Object] = (live.get("status") or {}).get("conditions") or []
    found = [each for each in conditions if str(each.get("type")).lower() == kind.lower()]
    if not found:
        return f"it has no condition {kind}"
    if str(found[0].get("status")).lower() == status.lower():
        return None
    why = ": ".join(str(found[0][part]) for part in ("reason", "message") if found[0].get(part))
    return f"its condition {kind} is {found[0].get('status')}, not {status}" + (f" ({why})" if why else "")


def _field(live: Object, path: list[str], value: str | None) -> str | None:
    inner: object = live
    for part in path:
        inner = inner.get(part) if isinstance(inner, dict) else None  # pyright: ignore[reportUnknownMemberType]
    name = ".".join(path)
    if inner is None:
        return f"it has no {name}"
    return None if value is None or str(inner) == value else f"its {name} is {inner}, not {value}"
