"""Links lead somewhere: pages, headings and files of the project; other sites over https, and few of them."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import pytest

from tests.docs.pages import DOCS, ROOT, Page, pages

_OTHERS = {"github.com"}
"""Other hosts that pages may lead to. They are not asked: tests do without a network."""
_PAGES = {page.name: page for page in pages()}


def wrong(page: Page, link: str) -> str | None:
    """What is wrong with a link of a page; None when it is good."""
    url = urlsplit(link)
    if url.scheme:
        good = url.scheme == "https" and url.hostname in _OTHERS
        return None if good else "another host than those listed, or not https"
    target = (ROOT / page.name).parent.joinpath(url.path).resolve() if url.path else ROOT / page.name
    if not target.exists():
        return "there is no such file"
    if page.name != "README.md" and not target.is_relative_to(DOCS):
        return "it leads out of docs/, and the site has nothing there"
    name = target.relative_to(ROOT).as_posix()
    if url.fragment and (name not in _PAGES or url.fragment not in _PAGES[name].anchors):
        return "there is no such heading"
    return None


@pytest.mark.parametrize("name", list(_PAGES))
def test_links_lead_somewhere(name: str) -> None:
    page = _PAGES[name]
    assert [f"{link}: {why}" for link in page.links if (why := wrong(page, link))] == []


def test_paths_of_files_are_those_of_files() -> None:
    """What pages name as a file of the project, in backticks, is there."""
    rooms = "components|docs|lab|provider|stacks|tests|tools"
    named = {
        (page.name, path)
        for page in pages()
        for path in re.findall(rf"`((?:{rooms})/[\w./-]+)`", page.prose)
        if "ny5" not in path and "prices.json" not in path
    }
    assert sorted(f"{page}: {path}" for page, path in named if not (ROOT / path).exists()) == []


@pytest.mark.parametrize(
    ("text", "links"),
    [
        ("see [a](b.md#c), ![p](d.svg) and `[no](link)`", ["b.md#c", "d.svg"]),
        ("```sh\n[not](this)\n```\n[[two] words](x.md)", ["x.md"]),
    ],
)
def test_links_are_found(text: str, links: list[str]) -> None:
    assert Page(name="docs/x.md", text=text).links == links


def test_a_bad_link_is_told() -> None:
    page = _PAGES["docs/index.md"]
    assert wrong(page, "nowhere.md") and wrong(page, "gates.md#nothing") and wrong(page, "http://github.com/x")
    assert wrong(page, "../README.md") and wrong(page, "https://elsewhere.example/")
    assert wrong(page, "gates.md#what-to-do") is None
