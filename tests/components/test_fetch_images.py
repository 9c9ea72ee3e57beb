"""The image cache's fetcher: what is listed is there whole and checked, or not at all."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Generator
from pathlib import Path

import pytest

from metal_ipi.components.provisioning import fetch_images
from tests.serving import serving


@pytest.fixture
def host(tmp_path: Path) -> Generator[tuple[Path, str]]:
    """A directory, and the URL that serves it."""
    served = tmp_path / "served"
    served.mkdir()
    with serving(served) as url:
        yield served, url


def look(tmp_path: Path, images: list[dict[str, str]]) -> dict[str, str]:
    """One round with a list; what is there then, and whether the cache calls itself complete."""
    listed, directory = tmp_path / "images.json", tmp_path / "images"
    listed.write_text(json.dumps(images))
    fetch_images._once(listed, directory, {})  # pyright: ignore[reportPrivateUsage]
    fetch_images._once(listed, directory, {})  # pyright: ignore[reportPrivateUsage]
    found = {path.name: path.read_text() for path in (directory / "ready").iterdir()}
    return {**found, "complete": str(fetch_images.main(["--complete", str(directory)]) == 0)}


def image(name: str, url: str, text: str) -> dict[str, str]:
    return {"name": name, "url": f"{url}/{name}", "sha256": hashlib.sha256(text.encode()).hexdigest()}


def test_what_is_listed_is_fetched_once_and_what_is_not_goes(tmp_path: Path, host: tuple[Path, str]) -> None:
    served, url = host
    for name in ("kernel", "initramfs"):
        (served / name).write_text(name)
    both = [image(name, url, name) for name in ("kernel", "initramfs")]
    assert look(tmp_path, both) == {"kernel": "kernel", "initramfs": "initramfs", "complete": "True"}
    (served / "kernel").unlink()  # nobody asks for it again
    assert look(tmp_path, both[:1]) == {"kernel": "kernel", "complete": "True"}


def test_another_hash_is_another_image(tmp_path: Path, host: tuple[Path, str]) -> None:
    served, url = host
    (served / "kernel").write_text("old")
    assert look(tmp_path, [image("kernel", url, "old")])["kernel"] == "old"
    # Until the new one is there, whoever asks gets the one before.
    assert look(tmp_path, [image("kernel", url, "new")]) == {"kernel": "old", "complete": "False"}
    (served / "kernel").write_text("new")
    assert look(tmp_path, [image("kernel", url, "new")]) == {"kernel": "new", "complete": "True"}


def test_what_has_another_hash_or_is_not_there_is_not_served(
    tmp_path: Path, host: tuple[Path, str], capsys: pytest.CaptureFixture[str]
) -> None:
    served, url = host
    (served / "kernel").write_text("changed on its way")
    found = look(tmp_path, [image("kernel", url, "kernel"), image("initramfs", url, "initramfs")])
    assert found == {"complete": "False"}
    told = capsys.readouterr().out
    assert "kernel: its SHA-256 is" in told and "initramfs: HTTP Error 404" in told
