"""Limits for configuration values of any kind: values that engine, provider and state can store."""

from __future__ import annotations

import functools
import json
import math
import sys
from collections.abc import Iterator
from typing import Any, cast

from metal_ipi.stacks.problems import Found
from metal_ipi.stacks.sections.base import LONGEST_TEXT

DEEPEST = 32
"""Levels of maps and lists. Real settings have 7."""
MOST = 100_000
"""The total number of values. A rack of 500 servers has a few thousand."""
_LARGEST = 1 << 53
"""Whole numbers up to this one are exact in JSON."""


def of_json(text: str) -> Any:
    """Parse a configuration value; text that is not JSON is returned as it is. `unfit` reports values that Python
    cannot hold."""
    try:
        return json.loads(text, parse_int=_number)
    except ValueError:
        return text
    except RecursionError:
        return functools.reduce(lambda inner, _: [inner], range(DEEPEST + 1), cast("list[Any]", []))


def _number(digits: str) -> float:
    """A whole number; infinite if Python refuses to parse it, so that `unfit` reports it."""
    return int(digits) if len(digits) < sys.int_info.str_digits_check_threshold else math.inf


def unfit(tree: Any, path: str = "") -> Found:
    """Find values in a tree that are not plain values; does not look below them. Not recursive, so the tree may be of
    any depth."""
    waiting: list[tuple[str, Any, int]] = [(path, tree, 0)]
    seen = 0
    while waiting:
        where, value, depth = waiting.pop()
        seen += 1
        if seen > MOST:
            yield where, "[not shown]", f"there are more than {MOST} values", "no stack has so many; remove them"
            return
        problem = _problem(value, depth)
        if problem is not None:
            why, remedy = problem
            yield where, "[not shown]", why, remedy
        elif isinstance(value, dict):
            entries = cast("dict[Any, Any]", value)
            waiting += [(_below(where, key), item, depth + 1) for key, item in entries.items() if isinstance(key, str)]
            yield from _names(where, entries)
        elif isinstance(value, list | tuple):
            items = cast("list[Any]", value)
            waiting += [(f"{where}[{number}]", item, depth + 1) for number, item in enumerate(items)]


def _names(where: str, entries: dict[Any, Any]) -> Iterator[tuple[str, str, str, str]]:
    for key in entries:
        if not isinstance(key, str):
            yield where, "[not shown]", f"a name in it is not a text, but {type(key).__name__}", "write it in quotes"
        elif len(key) > 256 or not key.isprintable():
            yield where, "[not shown]", "a name in it is longer than 256 characters, or not printable", "correct it"


def _problem(value: Any, depth: int) -> tuple[str, str] | None:
    if isinstance(value, dict | list | tuple):
        if depth >= DEEPEST:
            return f"it is nested more than {DEEPEST} levels deep", "no setting is; remove it"
    elif isinstance(value, str):
        if len(value) > LONGEST_TEXT:
            return f"it has {len(value)} characters, more than {LONGEST_TEXT}", "no setting is so long; correct it"
    elif isinstance(value, bool) or value is None:
        return None
    elif isinstance(value, int):
        if abs(value) > _LARGEST:
            return "the number is larger than any setting allows", "correct it"
    elif isinstance(value, float):
        if not math.isfinite(value):
            return "it is not a number: NaN, or infinite", "give a number"
    else:
        return f"it is a {type(value).__name__}, not a text, number or boolean", "write it in quotes"
    return None


def _below(where: str, key: str) -> str:
    return f"{where}.{key}" if where else key
