"""The site is built without a warning, has all pages, and fetches nothing from elsewhere."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.docs.pages import DOCS, ROOT
from tools import site_decisions


def _navigation(items: Any) -> list[str]:
    if isinstance(items, str):
        return [items]
    values = items.values() if isinstance(items, dict) else items
    return [page for item in values for page in _navigation(item)]


def test_every_page_is_in_the_navigation_once() -> None:
    config = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    listed = _navigation(site_decisions.on_config({"docs_dir": str(DOCS), "nav": config["nav"]})["nav"])
    there = sorted(file.relative_to(DOCS).as_posix() for file in DOCS.rglob("*.md"))
    assert sorted(listed) == there


@pytest.mark.programs
@pytest.mark.skipif(
    importlib.util.find_spec("mkdocs") is None, reason="mkdocs is not installed (requirements-docs.txt)"
)
def test_the_site_is_built_without_warnings_and_is_whole(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(tmp_path / "site")]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}  # news of the theme's authors, no warning about our pages
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) > len(list(DOCS.rglob("*.md")))  # and one for what is not found
    foreign = {
        f"{page.name}: {address}"
        for page in pages
        for address in re.findall(r'<(?:link|script|img)\b[^>]*(?:href|src)="(https?://[^"]+)"', page.read_text())
    }
    assert foreign == set(), "a page must be readable without a network"
