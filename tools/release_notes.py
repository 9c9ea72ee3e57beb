"""The notes of a release: the changelog's section of its version.

`python -m tools.release_notes v1.2.3` prints them. The release workflow runs it before anything is installed, so it
needs only Python.
"""

from __future__ import annotations

import re
import sys
import tomllib

from tools.layout import ROOT


def notes(tag: str, version: str, changelog: str) -> str:
    """The section of the tag's version, without its heading.

    Args:
        tag: what the release is called in git: `v` and the version.
        version: the version that pyproject.toml names.
        changelog: Markdown with one heading `## <version>` for each version, newest first; a date may follow.
    Raises ValueError where the three do not agree, or the section is empty.
    """
    if tag != f"v{version}":
        raise ValueError(f"the tag is {tag}, and pyproject.toml says version {version}: correct one of them")
    sections = re.split(r"^## ", changelog, flags=re.MULTILINE)[1:]
    for section in sections:
        heading, _, text = section.partition("\n")
        if heading.split()[:1] == [version]:
            if not text.strip():
                raise ValueError(f"CHANGELOG.md has nothing below `## {version}`: add what a user notices")
            return text.strip() + "\n"
    raise ValueError(f"CHANGELOG.md has no heading `## {version}`: rename the heading `## Unreleased`")


def main() -> int:
    """Prints the notes of the tag in the only argument."""
    if len(sys.argv) != 2:
        print("usage: python -m tools.release_notes TAG", file=sys.stderr)
        return 2
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    try:
        print(notes(sys.argv[1], project["version"], (ROOT / "CHANGELOG.md").read_text()), end="")
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
