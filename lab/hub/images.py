"""The hub's container images, made of Debian packages by the system's own apt; kept in the user's cache."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from binaries.cache import alone, cache_directory, filling
from lab.hub.oci import Image
from lab.network import plan
from lab.node_image import packages
from lab.node_image.tree import Tree

Report = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """An image: which files of which packages it has, and what it starts."""

    name: str
    """Of the repository in the registry."""
    packages: tuple[str, ...]
    """Debian's."""
    files: tuple[str, ...]
    """The files that are taken from them, paths from the root without the first slash."""
    entrypoint: tuple[str, ...]

    @property
    def key(self) -> str:
        """A hash of what it is made of: another Debian release has other packages."""
        made_of = [self.packages, self.files, self.entrypoint, Path("/etc/os-release").read_text()]
        return hashlib.sha256(json.dumps(made_of).encode()).hexdigest()[:12]

    @property
    def reference(self) -> str:
        """What pods call it."""
        return f"{plan.REGISTRY}/{self.name}:{self.key}"

    def cached(self) -> Image | None:
        """The image, if it was made before."""
        return Image.load(self._directory) if self._directory.is_dir() else None

    def ensure(self, report: Report) -> Image:
        """The image, made if need be; one process at a time makes it. Raises ImageError."""
        with alone(self._directory.parent / "lock", f"the image {self.name}", report):
            if not self._directory.is_dir():
                report(f"making the container image {self.name} of Debian packages: {' '.join(self.packages)}")
                made = self._make()
                with filling(self._directory) as fresh:
                    made.save(fresh)
            return Image.load(self._directory)

    @property
    def _directory(self) -> Path:
        return cache_directory() / "container-images" / f"{self.name}-{self.key}"

    def _make(self) -> Image:
        tree = Tree()
        with tempfile.TemporaryDirectory(prefix="metal-ipi-image-") as work:
            debian = Path(work, "debian")
            packages.unpack(packages.fetch(self.packages, Path(work, "packages")), debian)
            for name in self.files:
                tree.file(name, (debian / name).resolve(strict=True).read_bytes(), 0o755)
        return Image.of(tree.tar(), {"Entrypoint": list(self.entrypoint)})


PAUSE = Recipe(
    name="pause",
    packages=("busybox-static",),
    files=("usr/bin/busybox",),
    entrypoint=("/usr/bin/busybox", "sleep", "infinity"),
)
"""What keeps a pod's network namespace. It has a shell, too, and serves for pods that try the hub."""

ALL = (PAUSE,)
