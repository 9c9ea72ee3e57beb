"""Container images of one layer, and how they come into a registry (OCI image and distribution specifications 1.1).

An image is two files in the user's cache, named after what it was made of: the layer and the configuration.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from binaries.release import architecture
from lab.errors import ServiceFailed

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
_FAST = 1
"""Compression costs more time than the bytes do that it saves: no image leaves this machine."""


@dataclass(frozen=True, kw_only=True)
class Image:
    """An image that is ready to be put into a registry."""

    config: bytes
    layer: bytes
    """A compressed tar archive."""

    @classmethod
    def of(cls, tar: bytes, run: dict[str, Any]) -> Image:
        """An image with the files of `tar`; `run` says what is started: `Entrypoint`, `Env`, `User`..."""
        config = {
            "architecture": architecture("amd64", "arm64"),
            "os": "linux",
            "config": run,
            "rootfs": {"type": "layers", "diff_ids": [digest(tar)]},
        }
        return cls(config=json.dumps(config).encode(), layer=gzip.compress(tar, _FAST, mtime=0))

    @classmethod
    def load(cls, directory: Path) -> Image:
        """The image that was saved in a directory."""
        return cls(config=(directory / "config.json").read_bytes(), layer=(directory / "layer.tar.gz").read_bytes())

    def save(self, directory: Path) -> None:
        """Write it into a directory that is there."""
        (directory / "config.json").write_bytes(self.config)
        (directory / "layer.tar.gz").write_bytes(self.layer)

    @property
    def manifest(self) -> bytes:
        """What a registry calls the image."""
        layers = [_descriptor(_LAYER, self.layer)]
        config = _descriptor(_CONFIG, self.config)
        return json.dumps({"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": layers}).encode()


def push(client: httpx.Client, repository: str, tag: str, image: Image) -> None:
    """Put an image into the registry at the client's base URL. Raises ServiceFailed where that refuses it."""
    for blob in (image.layer, image.config):
        name = digest(blob)
        if client.head(f"/v2/{repository}/blobs/{name}").is_success:
            continue
        begun = _accepted(client.post(f"/v2/{repository}/blobs/uploads/"))
        place = httpx.URL(begun.headers["Location"]).copy_merge_params({"digest": name})
        _accepted(client.put(place, content=blob, headers={"Content-Type": "application/octet-stream"}))
    named = f"/v2/{repository}/manifests/{tag}"
    _accepted(client.put(named, content=image.manifest, headers={"Content-Type": MANIFEST}))


def _accepted(answer: httpx.Response) -> httpx.Response:
    if answer.is_error:
        request = answer.request
        raise ServiceFailed(f"the registry answers {request.method} {request.url}: {answer.status_code} {answer.text}")
    return answer


def digest(data: bytes) -> str:
    """What the specification calls some bytes."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def _descriptor(media_type: str, data: bytes) -> dict[str, Any]:
    return {"mediaType": media_type, "digest": digest(data), "size": len(data)}
