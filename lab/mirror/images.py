"""The images of a release, named by digest, in the file layout of docker-registry.

They are made once per user, of what the lab has of the release (lab/openshift/real/release.py). An image of which it
has nothing holds its own name. The files are those of distribution 2 (registry/storage/paths.go); an image without a
tag needs no more of them.
"""

from __future__ import annotations

import os
import shutil
import tarfile
import tempfile
from pathlib import Path

from binaries.cache import filling
from lab.hub.oci import Image, Layer, digest
from lab.openshift.real import RELEASE
from lab.openshift.real.release import IMAGES, REGISTRY, RELEASE_IMAGE, Release, image_references

RELEASES, PARTS = "openshift/release-images", "openshift/release"
"""The repositories of the mirror, as oc-mirror calls them: of the release image, and of the images that it names."""
SOURCES = {
    "quay.io/openshift-release-dev/ocp-release": RELEASES,
    "quay.io/openshift-release-dev/ocp-v4.0-art-dev": PARTS,
}
"""The repositories that OpenShift's images are named by, and those of the mirror that have them."""
_RELEASE, _PART = SOURCES
_NAME = "release-image"


def ensure(release: Release) -> Path:
    """The directory of the release's images, made if need be; `release_image` says what is in it."""
    finished = release.directory.with_name(f"{release.directory.name}-mirror-1")
    if not finished.exists():
        with filling(finished) as fresh, tempfile.TemporaryDirectory(dir=fresh.parent) as work:
            (fresh / _NAME).write_text(_fill(release, fresh, Path(work)))
    return finished


def release_image(images: Path) -> str:
    """The name of the release image, by digest."""
    return (images / _NAME).read_text()


def publish(images: Path, target: Path) -> None:
    """Add images to a registry. Their blobs are hard links, because they never change."""

    def place(source: str, to: str) -> None:
        if Path(source).name == "data":
            Path(to).unlink(missing_ok=True)
            try:
                os.link(source, to)
            except OSError:  # another file system
                shutil.copyfile(source, to)
        else:
            shutil.copyfile(source, to)

    shutil.copytree(images / "docker", target / "docker", copy_function=place, dirs_exist_ok=True)


def _fill(release: Release, root: Path, work: Path) -> str:
    """Write all images; returns the name of the release image."""
    names: dict[str, str] = {}
    for name in IMAGES:
        source = release.directory / f"{REGISTRY}/{name}:{RELEASE}"
        names[name] = f"{_PART}@{_write(root, PARTS, _packed(source, name, work / name))}"
    source = release.directory / RELEASE_IMAGE
    return f"{_RELEASE}@{_write(root, RELEASES, _packed(source, _NAME, work / _NAME, image_references(names)))}"


def _packed(source: Path, name: str, work: Path, texts: dict[str, str] | None = None) -> Image:
    """An image of what the lab has of it, or of nothing but its name."""
    tree, packed = work / "tree", work / "packed"
    (tree / "usr/bin").mkdir(parents=True)
    packed.mkdir()
    run: dict[str, list[str]] = {}
    if source.exists():
        for program in (source / "bin").iterdir():
            shutil.copy(program, tree / "usr/bin" / program.name)
        with tarfile.open(source / "files.tar") as files:
            files.extractall(tree, filter="data")
        if (source / "entrypoint").exists():
            run = {"Entrypoint": [(source / "entrypoint").read_text().strip()]}
    else:
        texts = {"etc/lab-image": f"{name}\n"}
    for path, text in (texts or {}).items():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_text(text)
    layer = Layer.pack(tree, packed)
    shutil.rmtree(tree)
    return Image(layers=(layer,), run=run)


def _write(root: Path, repository: str, image: Image) -> str:
    """Put an image where docker-registry has it; returns its digest."""
    manifest = image.manifest
    layers = [layer.digest for layer in image.layers]
    for layer in image.layers:
        shutil.move(layer.archive, _blob(root, layer.digest))
    for content in (image.config, manifest):
        _blob(root, digest(content)).write_bytes(content)
    for name in (*layers, digest(image.config)):
        _link(root, repository, "_layers", name)
    _link(root, repository, "_manifests/revisions", digest(manifest))
    return digest(manifest)


def _blob(root: Path, name: str) -> Path:
    number = name.removeprefix("sha256:")
    path = root / "docker/registry/v2/blobs/sha256" / number[:2] / number / "data"
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _link(root: Path, repository: str, kind: str, name: str) -> None:
    number = name.removeprefix("sha256:")
    path = root / "docker/registry/v2/repositories" / repository / kind / "sha256" / number / "link"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(name)
