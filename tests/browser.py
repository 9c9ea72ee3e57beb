"""A real browser (Debian's Chromium, without a window): what a page looks like once it is laid out."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lab.setup import Package, install, missing

CHROMIUM = Package("chromium", "/usr/bin/chromium")
_LONGEST = 90
_MEASURE = """
<script>
addEventListener("load", () => {
  const box = element => { const b = element.getBoundingClientRect(); return [b.x, b.y, b.width, b.height]; };
  document.title = JSON.stringify({
    width: document.documentElement.clientWidth,
    scrolls: document.documentElement.scrollWidth,
    images: [...document.images].map(i => ({alt: i.alt, loaded: i.complete && i.naturalWidth > 0, box: box(i)})),
    headings: [...document.querySelectorAll("h1, h2, h3")].map(h => h.textContent),
    cells: [...document.querySelectorAll("td")].map(c => c.textContent),
    code: [...document.querySelectorAll("pre")].map(p => p.textContent),
    scripts: document.scripts.length,
  });
});
</script>
"""


def set_up(report: Callable[[str], None]) -> None:
    """Install it where we may; without it, tests that need it are listed skips."""
    if absent := missing([CHROMIUM]):
        install(absent, report)


def look_at(page: Path, *, width: int = 1000) -> dict[str, Any]:
    """Load a page of ours and measure it.

    Returns width and scrolls (of the page, CSS pixels), images (alt, loaded, box), headings, cells and code (texts),
    and the number of scripts, ours included. Skips where there is no browser.
    """
    browser = shutil.which("chromium")
    if browser is None:
        pytest.skip("there is no browser: install Debian's chromium")
    measured = page.with_suffix(".measured.html")
    measured.write_text(page.read_text() + _MEASURE)
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
    command += [f"--user-data-dir={page.parent / 'browser'}", f"--window-size={width},1200", "--dump-dom"]
    done = subprocess.run(
        [*command, "--virtual-time-budget=5000", measured.as_uri()],
        capture_output=True, text=True, timeout=_LONGEST, check=False,
    )  # fmt: skip
    title = re.search(r"<title>(.*?)</title>", done.stdout, re.DOTALL)
    assert title is not None, f"the page was not laid out: {done.stdout[-1000:]}{done.stderr[-2000:]}"
    return json.loads(html.unescape(title[1]))
