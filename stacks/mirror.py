"""The files of a release that machines boot, kept on the artifact host where a stack asks for it."""

from __future__ import annotations

from dataclasses import replace

import pulumi

from metal_ipi.components.boot.stream import Artifact, PxeArtifacts
from metal_ipi.provider.types import ClusterKeys, LiveFileArgs, Mirror, MirrorArgs, MirroredFile
from metal_ipi.stacks import connections
from metal_ipi.stacks.settings import Settings


def files(settings: Settings, boot: PxeArtifacts) -> dict[str, Artifact]:
    """What machines of the stack fetch of a release, by what people call it."""
    install = settings.boot.install
    found = {"kernel": boot.kernel, "initramfs": boot.initramfs, "rootfs": boot.rootfs}
    if install is not None and install.image == "stream" and boot.disk is not None:
        found["disk"] = boot.disk
    return found


def copied(
    settings: Settings, boot: PxeArtifacts, keys: ClusterKeys, after: pulumi.Resource, opts: pulumi.ResourceOptions
) -> list[pulumi.Resource]:
    """Has the artifact host keep what machines boot, before there are machines; nothing where a stack does not ask."""
    if not settings.artifacts.mirror:
        return []
    found = {name: LiveFileArgs(url=file.url, sha256=file.sha256) for name, file in files(settings, boot).items()}
    opts = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(depends_on=[after]))
    return [Mirror("mirror", MirrorArgs(files=found, path_seed=keys.host_key_seed), opts)]


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
