"""CoreOS stream metadata: kernel, initramfs and rootfs of a release, and their hashes.

Source: coreos/stream-metadata-go; `openshift-install coreos print-stream-json` prints the document for a release. File
names have changed between releases, so only the field `location` is used.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

_SHA256 = re.compile(r"[0-9a-f]{64}")


class StreamError(ValueError):
    """The document is not usable stream metadata; the message says what is wrong and where."""


@dataclass(frozen=True, kw_only=True)
class Artifact:
    """One file of a release."""

    url: str
    """Its URL, http or https."""
    sha256: str
    """Its SHA-256, 64 hexadecimal digits."""


@dataclass(frozen=True, kw_only=True)
class PxeArtifacts:
    """The files for a live PXE boot, and the images that can be installed."""

    release: str
    """The release's name, e.g. `9.8.20260428-0`."""
    kernel: Artifact
    """The Linux kernel."""
    initramfs: Artifact
    """The initramfs; it contains the hash that the rootfs must have."""
    rootfs: Artifact
    """The root file system, fetched by the initramfs."""
    stream: str | None = None
    """The stream's name in the document, e.g. `rhcos-4.21`; None: the document does not name it."""
    disk: Artifact | None = None
    """The disk image for sectors of 512 bytes. None: the document has none (RHCOS's live system contains this image,
    too)."""
    iso: Artifact | None = None
    """The live ISO, which boots the same live system with signed boot loaders. None: the document has none."""


def pxe_artifacts(document: str, architecture: str) -> PxeArtifacts:
    """The live PXE artifacts of `architecture` (`x86_64` or `aarch64`) in a stream metadata document (JSON).

    Raises StreamError naming the first path of the document that is missing or malformed.
    """
    try:
        tree: Any = json.loads(document)
    except ValueError as error:
        raise StreamError(f"the stream metadata is not a JSON document: {error}") from None
    base = ("architectures", architecture, "artifacts", "metal")
    return PxeArtifacts(
        release=_text(tree, (*base, "release")),
        stream=_name(tree),
        kernel=_artifact(tree, (*base, "formats", "pxe", "kernel")),
        initramfs=_artifact(tree, (*base, "formats", "pxe", "initramfs")),
        rootfs=_artifact(tree, (*base, "formats", "pxe", "rootfs")),
        disk=_format(tree, (*base, "formats"), r"raw\..+"),
        iso=_format(tree, (*base, "formats"), "iso"),
    )


_Path = tuple[str, ...]
"""Keys from the document's root. A tuple, because names of formats contain dots."""


def _name(tree: Any) -> str | None:
    name = tree.get("stream")
    if name is None or isinstance(name, str):
        return name
    raise StreamError("the stream metadata's stream is not a text")


def _format(tree: Any, base: _Path, names: str) -> Artifact | None:
    """The disk image of a format whose whole name matches the regular expression `names`; None: there is no such
    format.

    The names of raw images are raw.xz, raw.gz...; those that begin with 4k. are for sectors of 4096 bytes.
    """
    formats = tree
    for part in base:
        formats = formats[part]
    found = sorted(name for name in formats if re.fullmatch(names, name))
    return _artifact(tree, (*base, found[-1], "disk")) if found else None


def _artifact(tree: Any, path: _Path) -> Artifact:
    url, sha256 = _text(tree, (*path, "location")), _text(tree, (*path, "sha256"))
    if not re.fullmatch(r"https?://[^/\s]+/\S+", url):
        raise StreamError(f"the stream metadata's {'.'.join(path)}.location is not an http(s) URL: '{url}'")
    if not _SHA256.fullmatch(sha256):
        raise StreamError(f"the stream metadata's {'.'.join(path)}.sha256 is not a SHA-256: '{sha256}'")
    return Artifact(url=url, sha256=sha256)


def _text(tree: Any, path: _Path) -> str:
    value = tree
    walked: list[str] = []
    for part in path:
        walked.append(part)
        value = value.get(part) if isinstance(value, dict) else None
        if value is None:
            known = ""
            if len(walked) == 2 and isinstance(tree.get("architectures"), dict):
                known = f"; it knows: {', '.join(sorted(tree['architectures']))}"
            raise StreamError(f"the stream metadata has no {'.'.join(walked)}{known}")
    if not isinstance(value, str):
        raise StreamError(f"the stream metadata's {'.'.join(path)} is not a text")
    return value
