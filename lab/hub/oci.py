"""Container images, and how they come into a registry (OCI image and distribution specifications 1.1).

A layer is two files in a directory: the compressed archive, and what manifests and configurations say of it.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import stat
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

from binaries.release import architecture
from lab.errors import ServiceFailed

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
_FAST = 1
"""Compression costs more time than the bytes do that it saves: no image leaves this machine."""
_BLOCK = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Layer:
    """Files of an image, as a compressed tar archive."""

    archive: Path
    digest: str
    """Of the archive."""
    size: int
    """Its bytes."""
    diff_id: str
    """The digest of the archive before it was compressed."""

    @classmethod
    def pack(cls, tree: Path, directory: Path) -> Layer:
        """A layer with all that is below `tree`, root's; kept in `directory`. Equal trees give equal bytes."""
        archive = directory / "layer.tar.gz"
        with archive.open("wb") as out, gzip.GzipFile("", "wb", _FAST, out, mtime=0) as packed:
            plain = _Hashing(packed)
            with tarfile.open(fileobj=plain, mode="w|", format=tarfile.GNU_FORMAT, bufsize=_BLOCK) as tar:
                for path in sorted(tree.rglob("*")):
                    tar.add(path, path.relative_to(tree).as_posix(), recursive=False, filter=_plain)
        described = {"digest": _file_digest(archive), "size": archive.stat().st_size}
        (directory / "layer.json").write_text(
            json.dumps({**described, "diff_id": f"sha256:{plain.hashed.hexdigest()}"})
        )
        return cls.load(directory)

    @classmethod
    def load(cls, directory: Path) -> Layer:
        """The layer that is kept in a directory."""
        return cls(archive=directory / "layer.tar.gz", **json.loads((directory / "layer.json").read_text()))


class _Hashing(io.RawIOBase):
    """A file that passes on what is written, and hashes it."""

    def __init__(self, out: gzip.GzipFile) -> None:
        super().__init__()
        self._out = out
        self.hashed = hashlib.sha256()

    def write(self, data: ReadableBuffer, /) -> int:
        """Write some bytes."""
        self.hashed.update(data)
        return self._out.write(data)


def _plain(info: tarfile.TarInfo) -> tarfile.TarInfo:
    """An entry without owner, date and set-id bits."""
    info.uid = info.gid = info.mtime = 0
    info.uname = info.gname = ""
    info.mode &= ~(stat.S_ISUID | stat.S_ISGID)
    return info


@dataclass(frozen=True, kw_only=True)
class Image:
    """An image that is ready to be put into a registry."""

    layers: tuple[Layer, ...]
    """The lowest first."""
    run: dict[str, Any]
    """What is started: `Entrypoint`, `Env`, `User`..."""

    @property
    def config(self) -> bytes:
        """What a container runtime reads first."""
        config = {
            "architecture": architecture("amd64", "arm64"),
            "os": "linux",
            "config": self.run,
            "rootfs": {"type": "layers", "diff_ids": [layer.diff_id for layer in self.layers]},
        }
        return json.dumps(config).encode()

    @property
    def manifest(self) -> bytes:
        """What a registry calls the image."""
        layers = [{"mediaType": _LAYER, "digest": each.digest, "size": each.size} for each in self.layers]
        config = {"mediaType": _CONFIG, "digest": digest(self.config), "size": len(self.config)}
        return json.dumps({"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": layers}).encode()


def push(client: httpx.Client, repository: str, tag: str, image: Image, *, known: dict[str, str] | None = None) -> None:
    """Put an image into the registry at the client's base URL. Raises ServiceFailed where that refuses it.

    What the registry has is not sent again. `known` says in which repository a blob is, by its digest: what is known
    elsewhere is taken from there; what is pushed here is added.
    """
    known = {} if known is None else known
    named = f"/v2/{repository}/manifests/{tag}"
    found = client.head(named, headers={"Accept": MANIFEST})
    if not (found.is_success and found.headers.get("Docker-Content-Digest") == digest(image.manifest)):
        for layer in image.layers:
            _push_blob(client, repository, layer.digest, layer.archive, known.get(layer.digest))
        _push_blob(client, repository, digest(image.config), image.config, None)
        _accepted(client.put(named, content=image.manifest, headers={"Content-Type": MANIFEST}))
    known.update({layer.digest: repository for layer in image.layers})


def _push_blob(client: httpx.Client, repository: str, name: str, content: Path | bytes, elsewhere: str | None) -> None:
    if client.head(f"/v2/{repository}/blobs/{name}").is_success:
        return
    mount = {"mount": name, "from": elsewhere} if elsewhere is not None else None
    begun = _accepted(client.post(f"/v2/{repository}/blobs/uploads/", params=mount))
    if begun.status_code == 201:
        return  # taken from the other repository
    place = httpx.URL(begun.headers["Location"]).copy_merge_params({"digest": name})
    headers = {"Content-Type": "application/octet-stream"}
    if isinstance(content, bytes):
        _accepted(client.put(place, content=content, headers=headers))
        return
    with content.open("rb") as file:
        length = {"Content-Length": str(content.stat().st_size)}
        blocks = iter(lambda: file.read(_BLOCK), b"")
        _accepted(client.put(place, content=blocks, headers={**headers, **length}))


def _accepted(answer: httpx.Response) -> httpx.Response:
    if answer.is_error:
        request = answer.request
        raise ServiceFailed(f"the registry answers {request.method} {request.url}: {answer.status_code} {answer.text}")
    return answer


def digest(data: bytes) -> str:
    """What the specification calls some bytes."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def _file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
