"""How images are made of layers, and kept."""

from __future__ import annotations

import os
import tarfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from lab.hub import images, recipe
from lab.hub.layers import Files, Making, Wheels
from lab.hub.recipe import Recipe

pytestmark = pytest.mark.skipif(not Path("/etc/os-release").exists(), reason="no release of a system to go by")


@dataclass(frozen=True)
class Text:
    """A layer with one file; it tells what it found below."""

    name: str
    text: str
    found: list[list[str]] = field(default_factory=list[list[str]], compare=False)

    @property
    def made_of(self) -> list[Any]:
        return ["text", self.name, self.text]

    def make(self, making: Making) -> None:
        self.found.append(sorted(path.name for path in making.below.iterdir()))
        (making.fresh / self.name).write_text(self.text)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "metal-ipi" / "container-images"


def made(name: str, *layers: Any) -> Recipe:
    return Recipe(name=name, layers=layers, entrypoint=("/run",), user=7, environment=(("A", "b"),))


def test_layers_are_made_on_top_of_each_other_and_once() -> None:
    """The second image has the first layer of the first one, and neither is made again."""
    lower, upper, other = Text("lower", "1"), Text("upper", "2"), Text("other", "3")
    first = made("first", lower, upper).ensure(lambda line: None)
    second = made("second", lower, other).ensure(lambda line: None)
    made("first", lower, upper).ensure(lambda line: None)
    assert (lower.found, upper.found, other.found) == ([[]], [["lower"]], [["lower"]])
    assert first.layers[0] == second.layers[0]
    with tarfile.open(first.layers[1].archive) as archive:
        assert archive.getnames() == ["upper"]
    assert first.run["Env"] == ["A=b"]
    assert first.run["User"] == "7:7"


def test_what_is_in_an_image_says_its_reference(tmp_path: Path) -> None:
    """Another file in a lower layer, another entrypoint, other requirements: each gives another reference."""
    pins = tmp_path / "requirements.txt"
    pins.write_text("ironic==39.0.0\n")
    wheels = Wheels(pins, "opt/ironic")
    before = made("tool", wheels, Text("a", "1")).reference
    assert made("tool", wheels, Text("a", "1")).reference == before
    others = [made("tool", wheels, Text("a", "2")).reference]
    others.append(Recipe(name="tool", layers=(wheels, Text("a", "1")), entrypoint=("/other",)).reference)
    pins.write_text("ironic==39.0.1\n")
    others.append(made("tool", wheels, Text("a", "1")).reference)
    assert len({before, *others}) == 4


def test_an_image_is_not_there_unless_all_its_layers_are(cache: Path) -> None:
    """A hub is not started with half of an image."""
    of_two = made("tool", Text("a", "1"), Text("b", "2"))
    assert of_two.cached() is None
    made("other", Text("a", "1")).ensure(lambda line: None)
    assert of_two.cached() is None
    assert of_two.ensure(lambda line: None) == of_two.cached()


def test_layers_that_nobody_used_are_forgotten(cache: Path) -> None:
    """Those that a hub was started with since stay."""
    used, unused = made("used", Text("a", "1")), made("unused", Text("b", "2"))
    for each in (used, unused):
        each.ensure(lambda line: None)
    for place in cache.iterdir():
        before = time.time() - 1000
        os.utime(place, (before, before))
    assert used.cached() is not None
    recipe.forget_unused(500)
    assert used.cached() is not None
    assert unused.cached() is None


def test_files_of_our_own_have_the_modes_that_they_need(tmp_path: Path) -> None:
    """Programs can be run, what is written by everybody is sticky."""
    files = Files(texts={"usr/local/bin/start": "#!/bin/sh\n", "etc/passwd": ""}, directories={"tmp": 0o1777})
    for name in ("below", "fresh", "work"):
        (tmp_path / name).mkdir()
    places = {name: tmp_path / name for name in ("below", "fresh", "work")}
    files.make(Making(**places, report=lambda line: None))
    modes = {
        path: (tmp_path / "fresh" / path).stat().st_mode & 0o7777
        for path in ("usr/local/bin/start", "etc/passwd", "tmp")
    }
    assert modes == {"usr/local/bin/start": 0o755, "etc/passwd": 0o644, "tmp": 0o1777}


def test_images_have_names_of_their_own() -> None:
    """Others find them by these names."""
    assert len({each.name for each in images.ALL}) == len(images.ALL)
    assert {each.name for each in (images.IRONIC, images.MARIADB, images.HTTPD, images.DNSMASQ)} == {
        "ironic",
        "mariadb",
        "httpd",
        "dnsmasq",
    }
