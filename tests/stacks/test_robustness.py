"""Any JSON at all as configuration: settings, or a SettingsError that can be printed, and nothing else."""

from __future__ import annotations

import copy
import json
import math
import types
from collections.abc import Iterator
from datetime import date
from typing import Annotated, Any, get_args, get_origin

import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import settings as profile
from hypothesis import strategies as st
from pydantic import BaseModel

from metal_ipi.stacks.plain import DEEPEST, MOST, unfit
from metal_ipi.stacks.problems import SettingsError
from metal_ipi.stacks.sections.base import LONGEST_TEXT
from metal_ipi.stacks.settings import Settings, of_tree, parse
from tests.mocks import config_text
from tests.stacks.answers import settings
from tests.stacks.rack import rack

_METAL = {key: json.loads(value) if value[:1] in "{[" else value for key, value in settings().items()}
_RACK = rack()
_NAMES = sorted({*_METAL, *_RACK})


def _paths(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a tree."""
    entries = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in entries:
        yield (*path, key)
        yield from _paths(value, (*path, key))


_PLACES = [(name, path) for name, tree in (("metal", _METAL), ("rack", _RACK)) for path in _paths(tree)]
_TREES = {"metal": _METAL, "rack": _RACK}
_TEXTS = st.one_of(
    st.text(max_size=40),
    st.sampled_from(
        ["rehearsal", "equinix-metal", "redfish", "none", "$(reboot)", "a\nb", "../..", "-oProxyCommand=x"]
    ),
)
_PLAIN = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([10**400, -(10**400), 1 << 63, 0, -1]),
    st.floats(),
    _TEXTS,
)
_ANY = st.recursive(
    _PLAIN,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.one_of(st.text(max_size=12), st.sampled_from(["type", "name", "count", *_NAMES])), inner,
                        max_size=4),
    ),
    max_leaves=12,
)  # fmt: skip


def _with(place: tuple[str, tuple[Any, ...]], value: Any) -> dict[str, Any]:
    name, path = place
    tree = copy.deepcopy(_TREES[name])
    parent: Any = tree
    for part in path[:-1]:
        parent = parent[part]
    parent[path[-1]] = value
    return tree


def _is_settings_or_problems(values: dict[str, str]) -> None:
    try:
        found = parse(values, "s1")
    except SettingsError as error:
        assert error.problems and all(each.path.startswith("metal-ipi:") for each in error.problems)
        assert len(str(error)) < 100_000
    else:
        assert isinstance(found, Settings)


@given(place=st.sampled_from(_PLACES), value=_ANY)
@profile(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_anything_in_any_place(place: tuple[str, tuple[Any, ...]], value: Any) -> None:
    _is_settings_or_problems(config_text(_with(place, value)))


@given(st.dictionaries(st.sampled_from([*_NAMES, "other", ""]), _ANY, max_size=8))
@profile(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_anything_as_a_whole(tree: dict[str, Any]) -> None:
    _is_settings_or_problems(config_text(tree))


@given(st.dictionaries(st.sampled_from(_NAMES), st.text(max_size=60), max_size=8))
@example({"workers": "{"})
@example({"platform": "[" * 100_000})
@example({"boot": '{"a":' * 50_000})
@example({"workers": '{"count": ' + "9" * 5000 + "}"})
@example({"workers": '{"count": 1e999}'})
@example({"clusterName": "x" * 10_000_000})
@example({"ssh": json.dumps({"authorizedKeys": ["x" * 10_000_000]})})
@profile(max_examples=100, deadline=None)
def test_any_text_in_place_of_json(values: dict[str, str]) -> None:
    _is_settings_or_problems(values)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (math.nan, "it is not a number: NaN, or infinite"),
        (-math.inf, "it is not a number: NaN, or infinite"),
        (10**400, "the number is larger than any setting allows"),
        ("x" * 10_000_000, f"it has 10000000 characters, more than {LONGEST_TEXT}"),
        (date(2026, 1, 1), "it is a date, not a text, number or boolean"),
        ({1: 2}, "a name in it is not a text, but int"),
        ({"x" * 300: 2}, "a name in it is longer than 256 characters"),
        (b"x", "it is a bytes, not a text, number or boolean"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_no_setting_is_is_told_with_its_place(value: Any, why: str) -> None:
    with pytest.raises(SettingsError) as caught:
        of_tree({"boot": {"kernelArguments": ["quiet", value]}})
    (problem,) = caught.value.problems
    assert problem.path == "metal-ipi:boot.kernelArguments[1]" and why in problem.why
    assert len(str(caught.value)) < 1000


def test_depth_and_number_of_values_are_limited() -> None:
    deep: Any = 1
    for _ in range(5000):
        deep = [deep]
    ((path, *_),) = unfit({"platform": deep})
    assert path == "platform" + "[0]" * (DEEPEST - 1)
    ((_, _, why, _),) = unfit({"platform": [0] * (MOST + 1)})
    assert why == f"there are more than {MOST} values"
    assert list(unfit(_METAL)) == list(unfit(_RACK)) == []


def _models(model: type[BaseModel], known: set[type[BaseModel]]) -> set[type[BaseModel]]:
    if model not in known:
        known.add(model)
        for info in model.model_fields.values():
            for inner in _inside(info.annotation):
                if isinstance(inner, type) and issubclass(inner, BaseModel):
                    _models(inner, known)
    return known


def _inside(annotation: Any) -> Iterator[Any]:
    if get_origin(annotation) in (Annotated, tuple, types.UnionType, dict):
        for argument in get_args(annotation):
            yield from _inside(argument)
    else:
        yield annotation


def test_every_number_has_a_least_and_a_greatest_value() -> None:
    """A number that is too large for the engine must be too large for us."""
    numbers = {
        f"{model.__name__}.{name}": info
        for model in _models(Settings, set())
        for name, info in model.model_fields.items()
        if {int, float} & set(_inside(info.annotation))
    }
    assert len(numbers) > 20
    for name, info in numbers.items():
        limits = {type(each).__name__ for each in info.metadata}
        own = any(name.startswith(model) for model in ("BgpPool.reserve",))  # one of a list
        assert own or ({"Ge", "Gt"} & limits and "Le" in limits), name
