"""Fetches what a list names, and keeps that and nothing else. Runs in the image cache's pod: standard library only.

    fetch.py LIST DIRECTORY            for ever; LIST is read again every few seconds
    fetch.py --complete DIRECTORY      succeeds if all that the list named last is there

LIST is a JSON list of {"name", "url", "sha256"}; authorities of the hosts stand beside it in ca.crt, if they are not
the system's. DIRECTORY/ready holds the images under their names: a file is there whole, and checked, or not at all.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import ssl
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

_EVERY_SECONDS = 5.0
_AGAIN_SECONDS = 30.0
_BLOCK = 1 << 20


def main(arguments: list[str]) -> int:
    """Fetch for ever, or say whether everything is there."""
    if arguments[0] == "--complete":
        return 0 if Path(arguments[1], "complete").exists() else 1
    listed, directory = Path(arguments[0]), Path(arguments[1])
    failed: dict[str, float] = {}
    while True:
        _once(listed, directory, failed)
        time.sleep(_EVERY_SECONDS)


def _once(listed: Path, directory: Path, failed: dict[str, float]) -> None:
    ready, partial, complete = directory / "ready", directory / "partial", directory / "complete"
    for path in (ready, partial):
        path.mkdir(parents=True, exist_ok=True)
    wanted: list[dict[str, str]] = json.loads(listed.read_text())
    whole = True
    for image in wanted:
        name, place = image["name"], ready / image["name"]
        if _known(directory, image) and place.exists():
            continue
        complete.unlink(missing_ok=True)
        whole = False
        if time.monotonic() < failed.get(name, 0.0):
            continue
        try:
            _fetch(image, partial / name, listed.with_name("ca.crt"))
        except (OSError, ValueError) as error:
            failed[name] = time.monotonic() + _AGAIN_SECONDS
            _say(f"{name}: {error}; it is tried again in {_AGAIN_SECONDS:.0f} s")
            continue
        (partial / name).replace(place)
        _remember(directory, image)
        _say(f"{name}: fetched, {place.stat().st_size} bytes")
    names = {image["name"] for image in wanted}
    for path in ready.iterdir():
        if path.name not in names:
            path.unlink()
            _say(f"{path.name}: removed, it is not listed any more")
    if whole:
        complete.touch()


def _fetch(image: dict[str, str], place: Path, authorities: Path) -> None:
    """Fetch into a file. Raises OSError, or ValueError where it is not what was listed."""
    context = ssl.create_default_context(cafile=str(authorities) if authorities.exists() else None)
    seen = hashlib.sha256()
    with urllib.request.urlopen(image["url"], timeout=60, context=context) as answer, place.open("wb") as out:  # noqa: S310 - as it was listed
        while block := answer.read(_BLOCK):
            seen.update(block)
            out.write(block)
        out.flush()
        os.fsync(out.fileno())
    if seen.hexdigest() != image["sha256"]:
        place.unlink()
        raise ValueError(f"its SHA-256 is {seen.hexdigest()}, and {image['sha256']} was listed ({image['url']})")


def _hashes(directory: Path) -> dict[str, Any]:
    try:
        return json.loads((directory / "hashes.json").read_text())
    except (FileNotFoundError, ValueError):
        return {}


def _known(directory: Path, image: dict[str, str]) -> bool:
    """Whether the file of this name is the one that is listed."""
    return _hashes(directory).get(image["name"]) == image["sha256"]


def _remember(directory: Path, image: dict[str, str]) -> None:
    text = json.dumps({**_hashes(directory), image["name"]: image["sha256"]})
    fresh = directory / "hashes.json.new"
    fresh.write_text(text)
    fresh.replace(directory / "hashes.json")


def _say(message: str) -> None:
    print(time.strftime("%Y-%m-%d %H:%M:%S"), message, flush=True)


if __name__ == "__main__":
    # The first process of a container is not ended by a signal that it does not ask for.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    sys.exit(main(sys.argv[1:]))
