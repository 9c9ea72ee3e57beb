"""A container image by what it is made of, and its layers in the user's cache: each is made once."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from binaries.cache import alone, cache_directory, filling
from lab.hub import layers, oci
from lab.hub.layers import Kind, Making, Report
from lab.hub.oci import Image, Layer
from lab.network import plan
from lab.node_image import efi, packages
from lab.node_image.packages import run

_SOURCES = tuple(Path(str(module.__file__)) for module in (layers, oci, packages, efi))
"""If one of these files changes, the layers are made again."""
_UNUSED_SECONDS = 30 * 86400.0


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """An image: its layers, and what it starts."""

    name: str
    """The name of the repository in the registry."""
    layers: tuple[Kind, ...]
    """The lowest first. Images whose first layers are equal share these."""
    entrypoint: tuple[str, ...]
    environment: tuple[tuple[str, str], ...] = ()
    user: int = 0
    """Its id; the id of its group is the same."""
    directory: str = "/"
    """The working directory."""
    stop_signal: str = "SIGTERM"

    @property
    def key(self) -> str:
        """A hash of what it is made of: another Debian release has other packages."""
        made_of = [self._keys()[-1], self._run]
        return hashlib.sha256(json.dumps(made_of).encode()).hexdigest()[:12]

    @property
    def reference(self) -> str:
        """The reference by which pods use it."""
        return f"{plan.REGISTRY}/{self.name}:{self.key}"

    def cached(self) -> Image | None:
        """The image, if it was made before."""
        places = [_place(key) for key in self._keys()]
        if not all(place.is_dir() for place in places):
            return None
        for place in places:
            os.utime(place)
        return Image(layers=tuple(map(Layer.load, places)), run=self._run)

    def ensure(self, report: Report) -> Image:
        """The image, made if need be; one process at a time makes one. Raises ImageError or ProgramMissing."""
        with alone(_place("lock"), f"the image {self.name}", report):
            image = self.cached()
            if image is None:
                began = time.monotonic()
                report(f"making the container image {self.name}")
                self._make(report)
                image = self.cached()
                assert image is not None, "all layers were made just now"
                size = sum(layer.size for layer in image.layers)
                report(f"  {size / 1e6:.0f} MB after {time.monotonic() - began:.0f} s")
            return image

    def _make(self, report: Report) -> None:
        with tempfile.TemporaryDirectory(prefix="making-", dir=_place("lock").parent) as directory:
            root = Path(directory, "root")
            root.mkdir()
            for number, (kind, key) in enumerate(zip(self.layers, self._keys(), strict=True)):
                if not _place(key).is_dir():
                    work, fresh = Path(directory, f"work-{number}"), Path(directory, f"fresh-{number}")
                    work.mkdir()
                    fresh.mkdir()
                    kind.make(Making(below=root, fresh=fresh, work=work, report=report))
                    with filling(_place(key)) as place:
                        Layer.pack(fresh, place)
                    for each in (work, fresh):
                        shutil.rmtree(each)
                archive = Layer.load(_place(key)).archive
                run("tar", "-x", "-z", "--keep-directory-symlink", "-f", archive, "-C", root)

    def _keys(self) -> list[str]:
        """One for each layer: it says what that one and all below it are made of."""
        keys: list[str] = []
        made = hashlib.sha256(Path("/etc/os-release").read_bytes() + platform.machine().encode())
        for source in _SOURCES:
            made.update(hashlib.sha256(source.read_bytes()).digest())
        for kind in self.layers:
            made.update(json.dumps(kind.made_of).encode())
            keys.append(made.hexdigest()[:20])
        return keys

    @property
    def _run(self) -> dict[str, object]:
        found: dict[str, object] = {"Entrypoint": list(self.entrypoint), "StopSignal": self.stop_signal}
        found |= {"Env": [f"{name}={value}" for name, value in self.environment], "WorkingDir": self.directory}
        return found | ({"User": f"{self.user}:{self.user}"} if self.user else {})


def forget_unused(seconds: float = _UNUSED_SECONDS) -> None:
    """Remove layers from the cache that no hub has been started with for so long (default: 30 days)."""
    lock = _place("lock")
    with alone(lock, "container images", lambda line: None):
        for place in lock.parent.iterdir():
            if place.is_dir() and time.time() - place.stat().st_mtime > seconds:
                shutil.rmtree(place)


def _place(key: str) -> Path:
    return cache_directory() / "container-images" / key
