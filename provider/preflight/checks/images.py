"""Preflight check: can all images of the release be pulled, from mirrors or from their own registries, with the pull
secret?

The check runs on this computer, not on the machines. A release image contains the list of all other images, as an
ImageStream (openshift/oc, pkg/cli/admin/release).
"""

from __future__ import annotations

import asyncio
import io
import json
import tarfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from metal_ipi.provider import web
from metal_ipi.provider.errors import RemoteError
from metal_ipi.provider.preflight.checks import installer
from metal_ipi.provider.preflight.findings import Finding, error, ok, warning
from metal_ipi.provider.preflight.registries import Image, Registries
from metal_ipi.provider.preflight.subject import Subject

NAME = "images"
_TIMEOUT = 30
_LIST = "release-manifests/image-references"
_NAMED = 5
"""Maximum number of image names in a message about images that cannot be pulled."""
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_REMEDY = (
    "check that the registry has the release (`oc adm release mirror`, oc-mirror), the pull secret its account, and "
    "installConfig.additionalTrustBundle its authority"
)


async def check(subject: Subject) -> list[Finding]:
    """Returns one finding per reason why images cannot be pulled, or one that says how many can."""
    wanted = subject.settings.registries
    if not subject.plan.images or wanted is None or await subject.is_begun():
        return []
    plan = subject.plan
    name = plan.release_image or await installer.release_image(plan.installer or "")
    image = Image.parse(name) if name else None
    if image is None:
        return [
            warning(
                "there is no installer here from which to read the release image",
                "see the result of the check `installer`",
            )
        ]
    mirrors: dict[str, list[str]] = {}
    for each in plan.mirrors:  # the installer merges mirror sets with the same source (MergedMirrorSets)
        mirrors.setdefault(each.source, []).extend(each.mirrors)
    async with web.client(subject.settings, timeout=_TIMEOUT, also=wanted.ca) as client:
        found = await _look(image, Registries(client, wanted.pull_secret), mirrors, plan.architecture)
    if subject.account is None and subject.again:
        return [replace(each, level="warning") if each.level == "error" else each for each in found]
    return found


async def _look(
    image: Image, registries: Registries, mirrors: Mapping[str, Sequence[str]], architecture: str
) -> list[Finding]:
    place, refused = await _place(image, registries, mirrors)
    if place is None:
        return [error(f"the release image {image.repository}@{image.reference} cannot be pulled: {refused}", _REMEDY)]
    try:
        listed = await _listed(place, registries, _ARCHITECTURES[architecture])
    except (RemoteError, OSError, ValueError, KeyError, tarfile.TarError, zlib.error) as problem:
        return [warning(f"the release image has no readable list of images: {problem}", "check the images yourself")]
    found = await asyncio.gather(*(_place(each, registries, mirrors) for each in listed.values()))
    lost: dict[str, list[str]] = {}
    for name, (at, why) in zip(listed, found, strict=True):
        if at is None:
            lost.setdefault(why, []).append(name)
    if not lost:
        hosts = sorted({at.registry for at, _ in [(place, ""), *found] if at is not None})
        return [ok(f"the release image and the {len(listed)} that it names can be pulled: {', '.join(hosts)}")]
    return [
        error(
            f"{len(names)} of {len(listed)} images of the release cannot be pulled ({', '.join(names[:_NAMED])}"
            f"{', ...' if len(names) > _NAMED else ''}): {why}",
            _REMEDY,
        )
        for why, names in lost.items()
    ]


async def _place(
    image: Image, registries: Registries, mirrors: Mapping[str, Sequence[str]]
) -> tuple[Image | None, str]:
    """The first registry that has the image; else None, and what all of them answered."""
    said: list[str] = []
    for place in image.places(mirrors):
        try:
            await registries.has(place)
        except RemoteError as problem:
            said.append(f"{place.repository}: {problem}")
        else:
            return place, ""
    return None, "; ".join(said)


async def _listed(image: Image, registries: Registries, architecture: str) -> Mapping[str, Image]:
    """The images that a release image lists, by their names in the release."""
    manifest = await registries.manifest(image, architecture)
    for layer in reversed(manifest["layers"]):
        content = _file(await registries.layer(image, layer["digest"]), _LIST)
        if content is not None:
            return dict(_references(json.loads(content)))
    raise ValueError(f"{_LIST} is not in it")


def _file(layer: bytes, name: str) -> bytes | None:
    with tarfile.open(fileobj=io.BytesIO(layer), mode="r|*") as archive:
        for member in archive:
            if member.name.removeprefix("./") == name:
                found = archive.extractfile(member)
                return found.read() if found is not None else None
    return None


def _references(stream: Mapping[str, Any]) -> Iterator[tuple[str, Image]]:
    for tag in stream["spec"]["tags"]:
        image = Image.parse(tag["from"]["name"])
        if image is None:
            raise ValueError(f"{tag['name']} is called {tag['from']['name']!r}, which is not an image's name")
        yield tag["name"], image
