"""Resource definitions, out of the Go modules that the real components are built from.

A module comes through Go's own download, which checks it against Go's checksum database; the pinned sum is checked here
once more, for those who have switched that off.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from binaries.cache import cache_directory, filling
from binaries.go_tool import download
from lab.errors import SetupFailed


@dataclass(frozen=True, kw_only=True)
class Definitions:
    """The definitions of a Go module; fetched once per user."""

    name: str
    """The name of the directory in the user's cache."""
    module: str
    version: str
    sum: str
    folder: str
    """The folder in the module."""
    files: tuple[str, ...]
    """Patterns of their names."""

    def cached(self) -> Path | None:
        """The directory with the definitions, if they have been fetched."""
        path = self._path()
        return path if path.is_dir() else None

    def ensure(self) -> Path:
        """The directory with the definitions, fetched if need be. Raises SetupFailed."""
        path = self._path()
        if path.is_dir():
            return path
        source = self._download() / self.folder
        found = [sorted(source.glob(pattern)) for pattern in self.files]
        if not all(found):
            raise SetupFailed(f"{self.module} {self.version} has not all of {', '.join(self.files)} in {self.folder}")
        with filling(path) as fresh:
            for file in (file for files in found for file in files):
                shutil.copyfile(file, fresh / file.name)
        return path

    def _path(self) -> Path:
        digest = hashlib.sha256("\n".join((self.sum, self.folder, *self.files)).encode()).hexdigest()[:12]
        return cache_directory() / self.name / f"{self.version}-{digest}"

    def _download(self) -> Path:
        """The directory of the module's files."""
        with tempfile.TemporaryDirectory() as empty:  # outside of any module: no go.mod has a say
            told = download(f"{self.module}@{self.version}", Path(empty))
        if told.get("Sum") != self.sum:
            raise SetupFailed(
                f"{self.module} {self.version} has checksum {told.get('Sum')}, not {self.sum}:"
                " it is not the one that this project was made with"
            )
        return Path(told["Dir"])


METALLB = Definitions(
    name="metallb-crds",
    module="go.universe.tf/metallb",
    version="v0.15.2",
    sum="h1:r7KDgJtk3KZe3qb36zRVrVCYHxLR03nPGT+qFXOomJM=",
    folder="config/crd/bases",
    files=("*.yaml",),
)
OPENSHIFT = Definitions(
    name="openshift-crds",
    module="github.com/openshift/api",
    version="v0.0.0-20240830023148-b7d0481c9094",
    sum="h1:J1wuGhVxpsHykZBa6Beb1gQ96Ptej9AE/BvwCBiRj1E=",
    folder="config/v1/zz_generated.crd-manifests",
    files=("*_clusteroperators.crd.yaml", "*_clusterversions-Default.crd.yaml"),
)
"""ClusterVersion and ClusterOperator, which gates and installers read; of the time of OpenShift 4.18."""

ALL = (METALLB, OPENSHIFT)


def read(directory: Path) -> list[dict[str, Any]]:
    """The definitions, as objects that an API server takes. Raises SetupFailed for anything else."""
    documents: list[Any] = [
        document for path in sorted(directory.glob("*.yaml")) for document in yaml.safe_load_all(path.read_text())
    ]
    others = [document for document in documents if document.get("kind") != "CustomResourceDefinition"]
    if others or not documents:
        raise SetupFailed(f"{directory} does not hold resource definitions alone: remove it and set up again")
    return documents
