"""The image is built once for the same inputs, anew for others, and a failure leaves nothing half made."""

from __future__ import annotations

from pathlib import Path

import pytest

from binaries import crate
from lab.errors import ImageError
from lab.node_image import build, packages
from lab.node_image.image import NodeImage


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """A cache of its own, no cargo, and a build that only notes that it was asked for."""
    made: list[str] = []

    def pretend(work: Path, key: str, programs: build.Programs) -> Path:
        made.append(key)
        if programs.openshift.read_bytes() == b"broken":
            raise ImageError("apt-get failed")
        result = work / "image"
        result.mkdir()
        built = [program is not None for program in (programs.afterburn, programs.installer)]
        NodeImage(directory=result, release=key, afterburn=built[0], installer=built[1]).save()
        return result

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(crate, "cargo", lambda: None)
    monkeypatch.setattr(build, "_build", pretend)
    return made


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "lab-openshift"
    path.write_bytes(b"one")
    return path


def test_the_same_inputs_are_built_once(builds: list[str], program: Path) -> None:
    first = build.ensure(program)
    assert build.ensure(program) == first
    assert len(builds) == 1
    assert not first.afterburn and not first.installer


def test_another_program_makes_another_image(builds: list[str], program: Path) -> None:
    first = build.ensure(program)
    program.write_bytes(b"two")
    second = build.ensure(program)
    assert first.directory != second.directory
    assert first.release != second.release
    assert first.directory.exists()


def test_a_failed_build_is_tried_again(builds: list[str], program: Path, tmp_path: Path) -> None:
    program.write_bytes(b"broken")
    for _ in range(2):
        with pytest.raises(ImageError, match="apt-get failed"):
            build.ensure(program)
    assert len(builds) == 2
    assert [path.name for path in (tmp_path / "cache/metal-ipi/node-image").iterdir()] == ["lock"]


def test_old_images_are_removed(builds: list[str], program: Path, tmp_path: Path) -> None:
    made = [build.ensure(program)]
    for number in range(5):
        program.write_bytes(bytes([number]))
        made.append(build.ensure(program))
    images = list((tmp_path / "cache/metal-ipi/node-image").glob("*/image.json"))
    assert len(images) == 3
    assert made[-1].directory / "image.json" in images


def test_a_missing_tool_is_named_with_what_it_was_for() -> None:
    with pytest.raises(ImageError, match="no-such-tool: No such file or directory; it is needed to make an image"):
        packages.run("no-such-tool")


def test_a_failing_tool_is_quoted() -> None:
    with pytest.raises(ImageError, match=r"sh -c failed with status 3:\nreason"):
        packages.run("sh", "-c", "echo reason >&2; exit 3")
