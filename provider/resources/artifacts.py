"""`Artifacts`, as programs see it, and its inputs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import pulumi

from metal_ipi.provider.alike import rebuilt
from metal_ipi.provider.forms import FILE_NAME, Anything, FileName, Seed
from metal_ipi.provider.given import LEFT_OUT, Given, GivenMap, Secret, default
from metal_ipi.provider.inputs import Conflict, Inputs
from metal_ipi.provider.resources.base import Resource, computed


class ArtifactsArgs(Inputs):
    """Arguments of `Artifacts`."""

    files: GivenMap[Secret[Anything]]
    """File name (letters, digits, `.`, `_`, `-`) to text. Secret."""
    like: Given[FileName | None] = default()
    """Which of `files` others are nearly the same as; with `derived`."""
    derived: Annotated[GivenMap[Secret[Anything]], LEFT_OUT] = default({})
    """Name of such a file to its differences: JSON, a list of `[start, end]`, characters of that one, and of texts that
    stand between them. What is uploaded is the whole text. Secret."""
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
        files, derived, like = given.get("files"), given.get("derived"), given.get("like")
        for key, named in (("files", files), ("derived", derived)):
            for name in named if isinstance(named, Mapping) else ():
                if not re.fullmatch(FILE_NAME, name):
                    yield (
                        (key, name),
                        "is no plain file name: letters, digits, `.`, `_` and `-`, not beginning with a dot",
                    )
        if not isinstance(files, Mapping) or not isinstance(derived, Mapping) or not derived:
            return
        if like is None or (isinstance(like, str) and like not in files):
            yield ("like",), "must be the name of one of `files`: `derived` has what others have instead of it"
        for name, told in derived.items():
            if name in files:
                yield ("derived", name), "is one of `files` already"
            elif isinstance(base := files.get(str(like)), str) and isinstance(told, str):
                try:
                    rebuilt(base, told)
                except (ValueError, TypeError) as error:
                    yield ("derived", name), f"must be differences from {like}: {error}"


class Artifacts(Resource[ArtifactsArgs]):
    """Files that machines fetch while they boot, under an unguessable directory that cannot be listed."""

    url: pulumi.Output[Secret[str]] = computed()
    """The directory's URL under the artifact host's `baseUrl`; a file's is `<url>/<name>`. Secret: who knows it can
    fetch the files."""
    boot_url: pulumi.Output[Secret[str]] = computed()
    """The same under `bootBaseUrl`, for firmware which cannot verify TLS. Secret."""
    hashes: pulumi.Output[dict[str, str]] = computed()
    """File name to `sha512-<hex>`, Ignition's form."""
    directory: pulumi.Output[Secret[str]] = computed()
    """The unguessable directory's name, relative to the artifact host's root. Secret."""

    def __init__(self, name: str, args: ArtifactsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        if args.ephemeral is True:
            # Their place stays the same: who deletes the old files last, deletes the new ones.
            opts = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(delete_before_replace=True))
        super().__init__(name, args, opts)
