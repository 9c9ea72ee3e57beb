"""A hub, shared by a module's tests."""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path

import pytest

from lab.hub import control, images
from lab.hub.configs import TUNABLES
from lab.hub.layout import HubLayout
from lab.openshift import build
from tests.lab.network.conftest import Lab, made

_READY_SECONDS = 60.0
"""The hub is to be ready that soon after set-up, with the lab below it."""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Generator[Lab]:
    """A lab with a hub."""
    for lab in made(tmp_path_factory.mktemp("hub") / "lab"):
        build.ensure()
        lab.up(openshift=build.installer())  # the image of Cluster API providers has it
        for recipe in images.ALL:
            recipe.ensure(lambda line: None)
        settings = {setting: (Path("/proc/sys") / setting).read_text() for setting in TUNABLES}
        (lab.layout.state / "settings-before").write_text(json.dumps(settings))
        yield lab
        control.down(lab.layout, lambda line: None)


@pytest.fixture(scope="module")
def hub(lab: Lab) -> HubLayout:
    """The hub, which runs."""
    said: list[str] = []
    control.up(lab.layout, said.append)
    seconds = float(said[0].split("after ")[1].split(" s")[0])
    assert seconds < _READY_SECONDS
    return HubLayout(lab.layout.hub)
