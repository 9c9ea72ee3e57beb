"""A release is made where tag, version and changelog agree, and nowhere else."""

from __future__ import annotations

import pytest

from tools.release_notes import notes

CHANGELOG = """# Changelog

## 1.1.0 - 2030-01-02

- Newer.

## 1.0.0

- First.
- Second.

## 0.9.0

"""


def test_the_notes_are_the_section_of_the_version() -> None:
    assert notes("v1.0.0", "1.0.0", CHANGELOG) == "- First.\n- Second.\n"
    assert notes("v1.1.0", "1.1.0", CHANGELOG) == "- Newer.\n"


@pytest.mark.parametrize(
    ("tag", "version", "told"),
    [
        ("v1.2.0", "1.1.0", "the tag is v1.2.0, and pyproject.toml says version 1.1.0"),
        ("1.1.0", "1.1.0", "the tag is 1.1.0"),
        ("v1.1", "1.1", "CHANGELOG.md has no heading `## 1.1`: rename the heading `## Unreleased`"),
        ("v0.9.0", "0.9.0", "CHANGELOG.md has nothing below `## 0.9.0`"),
    ],
)
def test_what_does_not_agree_makes_no_release(tag: str, version: str, told: str) -> None:
    with pytest.raises(ValueError, match="^" + told.replace(".", r"\.")):
        notes(tag, version, CHANGELOG)
