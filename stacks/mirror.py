"""The files of a release that machines boot, kept on the artifact host where a stack asks for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from components.boot.stream import Artifact, PxeArtifacts
from provider.types import LiveFileArgs, MirroredFile
from stacks import connections
from stacks.settings import Settings


def files(settings: Settings, boot: PxeArtifacts) -> dict[str, Artifact]:
    """What machines of the stack fetch of a release, by what people call it."""
    install = settings.boot.install
    found = {"kernel": boot.kernel, "initramfs": boot.initramfs, "rootfs": boot.rootfs}
    if install is not None and install.image == "stream" and boot.disk is not None:
        found["disk"] = boot.disk
    return found


def arguments(found: Mapping[str, Artifact]) -> dict[str, LiveFileArgs]:
    """The same as the mirror takes it."""
    return {name: LiveFileArgs(url=file.url, sha256=file.sha256) for name, file in found.items()}


def place(settings: Settings, file: Artifact) -> str | None:
    """Where machines find a file that is kept on the artifact host; None where nothing is."""
    if not settings.artifacts.mirror:
        return None
    return MirroredFile(url=file.url, sha256=file.sha256).url_below(connections.boot_base_url(settings))


def served(settings: Settings, boot: PxeArtifacts) -> PxeArtifacts:
    """The release as machines fetch it: from where the stream says, or from the artifact host."""
    if not settings.artifacts.mirror:
        return boot
    moved = {
        name: Artifact(url=place(settings, file) or file.url, sha256=file.sha256)
        for name, file in files(settings, boot).items()
    }
    return replace(boot, **moved)
