"""How images are described and put into a registry."""

from __future__ import annotations

import gzip
import hashlib
import json

import httpx
import pytest

from lab.errors import ServiceFailed
from lab.hub import oci

TAR = b"the files of an image"


def sha256(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


class Registry:
    """Keeps what is put into it, and refuses what its digest does not fit."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}
        self.manifests: dict[str, bytes] = {}
        self.uploads = 0

    def answer(self, request: httpx.Request) -> httpx.Response:
        path, digest = request.url.path, request.url.params.get("digest", "")
        if request.method == "HEAD":
            return httpx.Response(200 if path.rpartition("/")[2] in self.blobs else 404)
        if request.method == "POST":
            self.uploads += 1
            return httpx.Response(202, headers={"Location": "https://registry/v2/tool/blobs/uploads/1?state=s"})
        if "/manifests/" in path:
            self.manifests[path] = request.content
            return httpx.Response(201)
        if request.url.params.get("state") != "s" or sha256(request.content) != digest:
            return httpx.Response(400, text="DIGEST_INVALID")
        self.blobs[digest] = request.content
        return httpx.Response(201)


def client(registry: Registry) -> httpx.Client:
    return httpx.Client(base_url="https://registry", transport=httpx.MockTransport(registry.answer))


def test_what_is_pushed_is_what_the_manifest_names() -> None:
    """Layer and configuration by their digests and sizes; the layer unpacks to the files."""
    image, registry = oci.Image.of(TAR, {"Entrypoint": ["/tool"]}), Registry()
    with client(registry) as way:
        oci.push(way, "tool", "1", image)
    manifest = json.loads(registry.manifests["/v2/tool/manifests/1"])
    (layer,), config = manifest["layers"], manifest["config"]
    assert gzip.decompress(registry.blobs[layer["digest"]]) == TAR
    assert layer["size"] == len(registry.blobs[layer["digest"]])
    described = json.loads(registry.blobs[config["digest"]])
    assert described["config"]["Entrypoint"] == ["/tool"]
    assert described["rootfs"]["diff_ids"] == [sha256(TAR)]


def test_what_the_registry_has_is_not_sent_again() -> None:
    """A hub that is started again fills its registry again."""
    image, registry = oci.Image.of(TAR, {}), Registry()
    with client(registry) as way:
        oci.push(way, "tool", "1", image)
        oci.push(way, "tool", "1", image)
    assert registry.uploads == 2


def test_a_refusal_says_what_the_registry_said() -> None:
    """A full disk, a registry that is read-only."""

    def refuse(request: httpx.Request) -> httpx.Response:
        return httpx.Response(404 if request.method == "HEAD" else 503, text="no space left")

    with (
        httpx.Client(base_url="https://registry", transport=httpx.MockTransport(refuse)) as way,
        pytest.raises(ServiceFailed, match="POST https://registry/v2/tool/blobs/uploads/: 503 no space left"),
    ):
        oci.push(way, "tool", "1", oci.Image.of(TAR, {}))


def test_the_same_files_give_the_same_image() -> None:
    """Its digest is what pods and caches go by."""
    assert oci.Image.of(TAR, {}).manifest == oci.Image.of(TAR, {}).manifest
