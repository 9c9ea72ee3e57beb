"""`Artifacts` and its inputs, for programs."""

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
    """Which of `files` the `derived` files are compared with; required with `derived`."""
    derived: Annotated[GivenMap[Secret[Anything]], LEFT_OUT] = default({})
    """File name to its differences from the file `like`, as JSON: a list of texts, and of `[start, end]` ranges of
    characters of that file. The complete text is uploaded. Secret."""
    path_seed: Given[Secret[Seed]]
    """Random text of 16 characters or more, from which the name of the unguessable directory is derived. Secret. A
    change replaces."""
    ephemeral: Given[bool] = default(False)
    """Whether a `Removal` or an `Installation` deletes the files within the same up: then missing files are no drift.
    To upload them once more: `pulumi up --replace <URN>`."""

    keeps: Given[bool] = default(False)
    """Whether files that are no longer named stay until the resource is deleted, because machines may fetch them at
    every boot. Put a hash of the content into the names of such files."""

    @classmethod
    def conflicts(cls, given: Mapping[str, Any]) -> Iterator[Conflict]:
        files, derived, like = given.get("files"), given.get("derived"), given.get("like")
        for key, named in (("files", files), ("derived", derived)):
            for name in named if isinstance(named, Mapping) else ():
                if not re.fullmatch(FILE_NAME, name):
                    yield (
                        (key, name),
                        "is not a plain file name: letters, digits, `.`, `_` and `-`, not beginning with a dot",
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
    """Files that machines fetch while they boot, in an unguessable directory that cannot be listed."""

    url: pulumi.Output[Secret[str]] = computed()
    """URL of the directory under the artifact host's `baseUrl`; a file has `<url>/<name>`. Secret: anybody who knows it
    can fetch the files."""
    boot_url: pulumi.Output[Secret[str]] = computed()
    """The same directory under `bootBaseUrl`, for firmware that cannot verify TLS. Secret."""
    hashes: pulumi.Output[dict[str, str]] = computed()
    """File name to `sha512-<hex>`, the form that Ignition uses."""
    directory: pulumi.Output[Secret[str]] = computed()
    """Name of the unguessable directory, relative to the artifact host's root. Secret."""

    def __init__(self, name: str, args: ArtifactsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        if args.ephemeral is True:
            # The directory keeps its name, so deleting the old files after the new upload would delete the new ones.
            opts = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(delete_before_replace=True))
        super().__init__(name, args, opts)
