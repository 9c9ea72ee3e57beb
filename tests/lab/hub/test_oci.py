"""How images are described and put into a registry."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import httpx
import pytest

from lab.errors import ServiceFailed
from lab.hub import oci


def sha256(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


class Registry:
    """Keeps what is put into it, and refuses what its digest does not fit."""

    def __init__(self) -> None:
        self.blobs: dict[tuple[str, str], bytes] = {}
        self.manifests: dict[str, bytes] = {}
        self.uploads = 0
        self.mounts: list[tuple[str, str]] = []

    def answer(self, request: httpx.Request) -> httpx.Response:
        path, digest = request.url.path, request.url.params.get("digest", "")
        repository, name = path.split("/")[2], path.rpartition("/")[2]
        if request.method == "HEAD" and "/manifests/" in path:
            found = self.manifests.get(path)
            return httpx.Response(
                404 if found is None else 200, headers={"Docker-Content-Digest": sha256(found or b"")}
            )
        if request.method == "HEAD":
            return httpx.Response(200 if (repository, name) in self.blobs else 404)
        if request.method == "POST":
            mount = (request.url.params.get("from", ""), request.url.params.get("mount", ""))
            if mount in self.blobs:
                self.mounts.append(mount)
                self.blobs[repository, mount[1]] = self.blobs[mount]
                return httpx.Response(201)
            self.uploads += 1
            return httpx.Response(
                202, headers={"Location": f"https://registry/v2/{repository}/blobs/uploads/1?state=s"}
            )
        if "/manifests/" in path:
            self.manifests[path] = request.content
            return httpx.Response(201)
        if request.url.params.get("state") != "s" or sha256(request.content) != digest:
            return httpx.Response(400, text="DIGEST_INVALID")
        self.blobs[repository, digest] = request.content
        return httpx.Response(201)


def client(registry: Registry) -> httpx.Client:
    return httpx.Client(base_url="https://registry", transport=httpx.MockTransport(registry.answer))


def made(directory: Path, *texts: str, run: dict[str, Any] | None = None) -> oci.Image:
    """An image with a layer for each text, which is the file `bin/tool` there."""
    layers: list[oci.Layer] = []
    for text in texts:
        place = directory / text
        (place / "tree/bin").mkdir(parents=True)
        (place / "tree/bin/tool").write_text(text)
        (place / "tree/bin/tool").chmod(0o4755)
        layers.append(oci.Layer.pack(place / "tree", place))
    return oci.Image(layers=tuple(layers), run=run or {})


def test_what_is_pushed_is_what_the_manifest_names(tmp_path: Path) -> None:
    """Layers and configuration by their digests and sizes; the layers unpack to the files."""
    image, registry = made(tmp_path, "lower", "upper", run={"Entrypoint": ["/tool"]}), Registry()
    with client(registry) as way:
        oci.push(way, "tool", "1", image)
    manifest = json.loads(registry.manifests["/v2/tool/manifests/1"])
    plain: list[str] = []
    for layer, text in zip(manifest["layers"], ("lower", "upper"), strict=True):
        packed = registry.blobs["tool", layer["digest"]]
        assert layer["size"] == len(packed)
        plain.append(sha256(gzip.decompress(packed)))
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            file = archive.extractfile("bin/tool")
            assert file is not None and file.read().decode() == text
    described = json.loads(registry.blobs["tool", manifest["config"]["digest"]])
    assert described["config"]["Entrypoint"] == ["/tool"]
    assert described["rootfs"]["diff_ids"] == plain


def test_files_of_a_layer_are_roots_and_gain_nobody_rights(tmp_path: Path) -> None:
    """Neither owners of the system that made it, nor set-id bits, nor dates."""
    (layer,) = made(tmp_path, "one").layers
    with tarfile.open(layer.archive) as archive:
        entry = archive.getmember("bin/tool")
    assert (entry.uid, entry.gid, entry.uname, entry.mtime, entry.mode) == (0, 0, "", 0, 0o755)


def test_what_the_registry_has_is_not_sent_again(tmp_path: Path) -> None:
    """A hub that is started again fills its registry again."""
    image, registry = made(tmp_path, "one"), Registry()
    with client(registry) as way:
        oci.push(way, "tool", "1", image)
        oci.push(way, "tool", "1", image)
    assert registry.uploads == 2


def test_a_layer_that_another_image_has_is_not_sent(tmp_path: Path) -> None:
    """Images share their lowest layers; only the registry knows which blobs are whose."""
    shared, own, registry = made(tmp_path / "1", "one"), made(tmp_path / "2", "one", "two"), Registry()
    known: dict[str, str] = {}
    with client(registry) as way:
        oci.push(way, "tool", "1", shared, known=known)
        before = registry.uploads
        oci.push(way, "other", "1", own, known=known)
    assert registry.mounts == [("tool", shared.layers[0].digest)]
    assert registry.uploads - before == 2  # the layer that it has alone, and its configuration
    assert ("other", shared.layers[0].digest) in registry.blobs


def test_a_refusal_says_what_the_registry_said(tmp_path: Path) -> None:
    """A full disk, a registry that is read-only."""

    def refuse(request: httpx.Request) -> httpx.Response:
        return httpx.Response(404 if request.method == "HEAD" else 503, text="no space left")

    with (
        httpx.Client(base_url="https://registry", transport=httpx.MockTransport(refuse)) as way,
        pytest.raises(ServiceFailed, match="POST https://registry/v2/tool/blobs/uploads/: 503 no space left"),
    ):
        oci.push(way, "tool", "1", made(tmp_path, "one"))


def test_the_same_files_give_the_same_image(tmp_path: Path) -> None:
    """Its digest is what pods and caches go by."""
    assert made(tmp_path / "1", "one").manifest == made(tmp_path / "2", "one").manifest
