"""`Artifacts`, as programs see it, and its inputs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pulumi

from metal_ipi.provider.forms import FILE_NAME, Anything, Seed
from metal_ipi.provider.given import Given, GivenMap, Secret, default
from metal_ipi.provider.inputs import Conflict, Inputs
from metal_ipi.provider.resources.base import Resource, computed


class ArtifactsArgs(Inputs):
    """Arguments of `Artifacts`."""

    files: GivenMap[Secret[Anything]]
    """File name (letters, digits, `.`, `_`, `-`) to text. Secret."""
    path_seed: Given[Secret[Seed]]
    """What the unguessable directory is derived from, 16 random characters or more. Secret. A change replaces."""
    ephemeral: Given[bool] = default(False)
    """Files that a `Removal` or an `Installation` deletes within the same up: absent ones are still ours, and no drift.
    To have them uploaded once more: `pulumi up --replace <URN>`."""

    keeps: Given[bool] = default(False)
    """Files that are not named any more stay until the resource is deleted: machines that were told of them may fetch
    them at every boot. Name such files by their content."""

    @classmethod
    def conflicts(cls, given: Mapping[str, Any]) -> Iterator[Conflict]:
        files = given.get("files")
        for name in files if isinstance(files, Mapping) else ():
            if not re.fullmatch(FILE_NAME, name):
                yield (
                    ("files", name),
                    "is no plain file name: letters, digits, `.`, `_` and `-`, not beginning with a dot",
                )


class Artifacts(Resource[ArtifactsArgs]):
    """Files that machines fetch while they boot, under an unguessable directory that cannot be listed."""

    urls: pulumi.Output[Secret[dict[str, str]]] = computed()
    """File name to URL under the artifact host's `baseUrl`. Secret: who knows it can fetch the file."""
    boot_urls: pulumi.Output[Secret[dict[str, str]]] = computed()
    """File name to URL under `bootBaseUrl`, for firmware which cannot verify TLS. Secret."""
    hashes: pulumi.Output[dict[str, str]] = computed()
    """File name to `sha512-<hex>`, Ignition's form."""
    directory: pulumi.Output[Secret[str]] = computed()
    """The unguessable directory's name, relative to the artifact host's root. Secret."""

    def __init__(self, name: str, args: ArtifactsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        if args.ephemeral is True:
            # Their place stays the same: who deletes the old files last, deletes the new ones.
            opts = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(delete_before_replace=True))
        super().__init__(name, args, opts)
