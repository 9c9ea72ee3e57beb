"""The same for the pages about a facility or a rack of one's own, which the lab plays. Apart, to be run beside them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs import running

pytestmark = [pytest.mark.lab, pytest.mark.engine]


@pytest.mark.parametrize("page", running.with_commands("facility", "rack"))
def test_the_commands_of_a_page(page: str, tmp_path: Path) -> None:
    assert running.run(page, tmp_path)
