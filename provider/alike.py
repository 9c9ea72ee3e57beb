"""Texts that are nearly the same: one of them whole, and of each other one what it has instead."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from difflib import SequenceMatcher
from itertools import accumulate
from os.path import commonprefix
from typing import Any

# Pieces of base64 begin where a run of it begins, so that those behind another one of the same length are the same.
_PIECE = re.compile(r"[A-Za-z0-9+/=]{1,24}[^A-Za-z0-9+/=]*|[^A-Za-z0-9+/=]+")
_SHORTEST = 16
"""Characters in a row that are worth two numbers."""


def differences(base: str, text: str) -> str:
    """`text` as what it takes from `base`, and what it has instead: JSON, a list of `[start, end]` and of texts."""
    shorter = min(len(base), len(text))
    head = len(commonprefix([base, text]))  # noqa: RUF071 (texts, not paths)
    tail = min(len(commonprefix([base[::-1], text[::-1]])), shorter - head)  # noqa: RUF071
    of_base, of_text = (_PIECE.findall(each[head : len(each) - tail]) for each in (base, text))
    in_base, in_text = ([*accumulate(map(len, each), initial=head)] for each in (of_base, of_text))
    # Its heuristics for pieces that recur stay on: without them the time grows with the square of the length.
    found = SequenceMatcher(None, of_base, of_text).get_matching_blocks()
    same = [(in_base[each.a], in_text[each.b], in_text[each.b + each.size] - in_text[each.b]) for each in found]
    parts, done = list[str | list[int]](), 0
    for start, at, length in [(0, 0, head), *same, (len(base) - tail, len(text) - tail, tail)]:
        if length >= _SHORTEST:
            parts += [text[done:at]] if at > done else []
            parts.append([start, start + length])
            done = at + length
    return json.dumps([*parts, text[done:]] if done < len(text) else parts, separators=(",", ":"))


def rebuilt(base: str, told: str) -> str:
    """The text of which these are the differences. Raises ValueError where they are none."""
    parts: Any = json.loads(told)
    if not isinstance(parts, list):
        raise ValueError("differences are a list")  # noqa: TRY004 (see the docstring)
    return "".join(_taken(base, part) for part in parts)  # pyright: ignore[reportUnknownVariableType]


def _taken(base: str, part: Any) -> str:
    if isinstance(part, str):
        return part
    start, end = part
    if not 0 <= start <= end <= len(base):
        raise ValueError(f"there is no [{start}, {end}] in a text of {len(base)} characters")
    return base[start:end]


def alike(files: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """The first of some files whole, and of the others the differences from it, by name."""
    (name, base), *others = files.items()
    return {name: base}, {other: differences(base, text) for other, text in others}
