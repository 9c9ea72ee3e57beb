"""Every command of the documentation is run, page by page, on simulated machines."""

from __future__ import annotations

import re
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.docs import running
from tests.docs.declared import INSTEAD
from tests.docs.pages import ROOT, SHELLS, pages
from tests.docs.scenes import Scene, scene
from tests.docs.terminal import Ran

_LANGUAGES = {*SHELLS, "yaml", "json", "text", "python", "ts"}


def test_every_block_says_what_it_is() -> None:
    """So that no command hides in a block that nobody runs."""
    strange = [f"{block}: '{block.language}'" for page in pages() for block in page.blocks]
    assert [each for each in strange if each.split("'")[1] not in _LANGUAGES] == []


def test_what_is_not_run_as_it_stands_is_needed_and_says_why() -> None:
    documented = {command for page in pages() for command in page.commands}
    assert sorted(set(INSTEAD) - documented) == [], "no page has these any more"
    assert all(each.why and each.run for each in INSTEAD.values())


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> Generator[Scene]:
    """Shared by pages whose commands leave nothing up."""
    with scene("user", tmp_path_factory.mktemp("user")) as where:
        yield where


@pytest.mark.lab
@pytest.mark.engine
@pytest.mark.parametrize("page", running.with_commands("user"))
def test_the_commands_of_a_page(page: str, user: Scene) -> None:
    assert running.run_in(page, user)


@pytest.mark.lab
@pytest.mark.engine
@pytest.mark.parametrize("page", running.with_commands("user", "user-real", at_night=True))
def test_the_commands_of_a_page_that_takes_long(page: str, tmp_path: Path) -> None:
    ran = running.run(page, tmp_path)
    assert ran
    if page == "README.md":
        the_picture_is_of_such_a_run(ran)


def the_picture_is_of_such_a_run(ran: list[Ran]) -> None:
    """What README's picture shows is what its command prints, but for times and addresses; set-up may differ. As
    tools/capture.py shows it, the home is `~`."""
    (up,) = (each for each in ran if each.command == "make up MACHINES=simulated")
    printed = [running.squeezed(line) for line in up.printed.replace(str(Path.home()), "~").splitlines()]
    shown = [running.squeezed(line) for line in running.drawn(ROOT / "docs" / "images" / "make-up.svg")]
    begin = next(number for number, line in enumerate(shown) if line.startswith("starting the lab"))
    assert sorted(set(shown[begin:]) - set(printed)) == [], "record it anew: docs/testing.md"
    done = {line for line in printed if re.search(r": (created|passed after)", line)}
    assert sorted(done - set(shown)) == [], "record it anew: docs/testing.md"
