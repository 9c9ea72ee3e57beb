"""CoreOS stream metadata: which kernel, initramfs and rootfs a release consists of, and their hashes.

Source: coreos/stream-metadata-go; `openshift-install coreos print-stream-json` prints the document for a release.
File names have changed between releases, so only `location` is ever used.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

_SHA256 = re.compile(r"[0-9a-f]{64}")


class StreamError(ValueError):
    """The document is no usable stream metadata; the message says what is wrong and where."""


@dataclass(frozen=True, kw_only=True)
class Artifact:
    """One file of a release."""

    url: str
    """Where it is, http or https."""
    sha256: str
    """Its SHA-256, 64 hexadecimal digits."""


@dataclass(frozen=True, kw_only=True)
class PxeArtifacts:
    """What a live PXE boot consists of."""

    release: str
    """The release's name, e.g. `9.8.20260428-0`."""
    kernel: Artifact
    """The Linux kernel."""
    initramfs: Artifact
    """The initramfs; it holds the hash that the rootfs must have."""
    rootfs: Artifact
    """The root file system, fetched by the initramfs."""
    disk: Artifact | None = None
    """The disk image, compressed; None where the stream names none."""


def pxe_artifacts(document: str, architecture: str) -> PxeArtifacts:
    """The live PXE artifacts of `architecture` (`x86_64` or `aarch64`) in a stream metadata document (JSON).

    Raises StreamError naming the first path of the document that is missing or malformed.
    """
    try:
        tree: Any = json.loads(document)
    except ValueError as error:
        raise StreamError(f"the stream metadata is no JSON document: {error}") from None
    base = f"architectures.{architecture}.artifacts.metal"
    formats = f"{base}.formats.pxe"
    return PxeArtifacts(
        release=_text(tree, f"{base}.release"),
        kernel=_artifact(tree, f"{formats}.kernel"),
        initramfs=_artifact(tree, f"{formats}.initramfs"),
        rootfs=_artifact(tree, f"{formats}.rootfs"),
        disk=_disk(tree, f"{base}.formats"),
    )


def _disk(tree: Any, path: str) -> Artifact | None:
    """The disk image for disks of 512-byte sectors: `raw.xz` in real streams; `4k.raw.xz` is another."""
    formats = tree
    for part in path.split("."):
        formats = formats[part]
    found = [name for name in formats if name == "raw" or name.startswith("raw.")]
    if len(found) != 1:
        return None
    image, name = formats[found[0]].get("disk", {}), f"{path}.{found[0]}.disk"
    return _checked(image.get("location"), image.get("sha256"), name)


def _artifact(tree: Any, path: str) -> Artifact:
    return _checked(_text(tree, f"{path}.location"), _text(tree, f"{path}.sha256"), path)


def _checked(url: Any, sha256: Any, path: str) -> Artifact:
    if not isinstance(url, str) or not isinstance(sha256, str):
        raise StreamError(f"the stream metadata's {path} is not whole")
    if not re.fullmatch(r"https?://[^/\s]+/\S+", url):
        raise StreamError(f"the stream metadata's {path}.location is no http(s) URL: '{url}'")
    if not _SHA256.fullmatch(sha256):
        raise StreamError(f"the stream metadata's {path}.sha256 is no SHA-256: '{sha256}'")
    return Artifact(url=url, sha256=sha256)


def _text(tree: Any, path: str) -> str:
    value = tree
    walked: list[str] = []
    for part in path.split("."):
        walked.append(part)
        value = value.get(part) if isinstance(value, dict) else None
        if value is None:
            known = ""
            if len(walked) == 2 and isinstance(tree.get("architectures"), dict):
                known = f"; it knows: {', '.join(sorted(tree['architectures']))}"
            raise StreamError(f"the stream metadata has no {'.'.join(walked)}{known}")
    if not isinstance(value, str):
        raise StreamError(f"the stream metadata's {path} is no text")
    return value
