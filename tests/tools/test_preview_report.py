"""What a change does to every facility: which ones, what differs, and how it is told."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from tools.preview_report import facilities
from tools.preview_report.changes import changes
from tools.preview_report.markdown import LONGEST, Facility, report
from tools.preview_report.rehearsal import JSON, Rehearsal, Resource

_STACKS = ["da11", "lab", "rack7"]
_DEVICE = "equinix-metal:index/device:Device"
_UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"


def _resource(name: str, **inputs: Any) -> Resource:
    return Resource(urn=f"urn:pulumi:s::p::{_DEVICE}::{name}", type=_DEVICE, name=name, inputs=inputs)


def _rehearsal(*resources: Resource, stack: str = "da11", **more: Any) -> Rehearsal:
    return Rehearsal(stack=stack, resources=resources, picture="<svg/>", **more)


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        ([], []),
        (["README.md", "docs/dns.md", "tests/x.py", "lab/x.py", "tools/x.py"], []),
        (["stacks/Pulumi.da11.yaml"], ["da11"]),
        (["stacks/Pulumi.rack7.yaml", "stacks/Pulumi.da11.yaml"], ["da11", "rack7"]),
        (["policy/configuration/rack7.json"], ["rack7"]),
        (["policy/configuration/lab.json"], _STACKS),
        (["policy/configuration/default.json"], _STACKS),
        (["components/boot/ipxe.py"], _STACKS),
        (["stacks/rhcos-4.21.json"], _STACKS),
        (["requirements.txt"], _STACKS),
    ],
)
def test_a_change_is_about_the_facilities_whose_files_it_touches(paths: list[str], expected: list[str]) -> None:
    assert facilities.changed(paths, _STACKS) == expected


def test_what_differs_is_told_resource_by_resource() -> None:
    before = _rehearsal(
        _resource("gone", plan="a"), _resource("kept", tags=["x"]), _resource("other", plan="a", ip=_UNKNOWN)
    )
    after = _rehearsal(
        _resource("kept", tags=["x"]), _resource("new", plan="b"), _resource("other", plan="b", ip=_UNKNOWN)
    )
    assert [(each.kind, each.name, each.lines) for each in changes(before, after)] == [
        ("removed", "gone", (("plan", "a", ""),)),
        ("changed", "other", (("plan", "a", "b"),)),
        ("added", "new", (("plan", "", "b"),)),
    ]


def test_a_report_tells_all_of_a_facility_at_a_glance() -> None:
    before = _rehearsal(_resource("w", plan="a"), cost={"hourly": 7.5})
    after = _rehearsal(
        _resource("w", plan="b"), cost={"hourly": 9.0}, forbidden={"allowed-plans": ["b is not allowed"]}
    )
    text = report([Facility(stack="da11", before=before, after=after)], "main", pictures="https://x.test/p/")
    assert "| **da11** | 1 changed | 7.50 → 9.00 USD/h (+1.50) | ❌ refused: allowed-plans |" in text
    assert "allowed-plans: b is not allowed" in text
    assert '<img alt="after" src="https://x.test/p/da11-after.svg">' in text
    assert "-   plan: a\n+   plan: b" in text


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (
            None,
            _rehearsal(cost={"hourly": 2.0}),
            "| new facility: none changed | 0.00 → 2.00 USD/h (+2.00) | ✅ kept |",
        ),
        (_rehearsal(cost={"hourly": 2.0}), None, "| gone: none changed | 2.00 → 0.00 USD/h (-2.00) | not asked |"),
        (_rehearsal(), _rehearsal(problems=("it is wrong",)), "| no preview | not known | ❌ the preview fails |"),
        (_rehearsal(), _rehearsal(advice={"r": ["x"]}), "| none changed | not known | ⚠️ advice: r |"),
    ],
)
def test_the_table_says_what_became_of_each(before: Rehearsal | None, after: Rehearsal | None, expected: str) -> None:
    assert expected in report([Facility(stack="da11", before=before, after=after)], "main")


def test_nothing_touched_is_said() -> None:
    assert "No facility is touched." in report([], "main")


def test_a_report_fits_into_a_comment() -> None:
    many = [_resource(f"worker-{number}", text="x" * 150) for number in range(2000)]
    compared = [Facility(stack=name, before=_rehearsal(), after=_rehearsal(*many)) for name in _STACKS]
    text = report(compared, "main")
    assert len(text) <= LONGEST and text.count("which are too many for a comment") == 3


_TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=60)


@given(_TEXT, _TEXT)
def test_whoever_opens_a_pull_request_writes_no_markup(hostile: str, value: str) -> None:
    texts = [f"```\n<script>alert(1)</script> {hostile}", f"{value}\n```\n# heading"]
    after = _rehearsal(_resource(texts[0], **{texts[1]: texts[0]}), forbidden={"rule": texts}, advice={"other": texts})
    markdown = report([Facility(stack="da11", before=_rehearsal(), after=after)], f"`{hostile}`")
    tokens = MarkdownIt("commonmark").enable("table").parse(markdown)
    html = "".join(token.content for token in tokens if token.type == "html_block")
    inline = [child.content for token in tokens for child in token.children or [] if child.type == "html_inline"]
    assert "script" not in html + "".join(inline)
    assert [token.type for token in tokens].count("heading_open") == 2


def test_a_rehearsal_survives_the_way_between_processes() -> None:
    told = _rehearsal(_resource("w", plan="a"), problems=("p",), forbidden={"r": ["m"]}, cost={"hourly": 1.0})
    assert JSON.validate_json(JSON.dump_json(told)) == told
