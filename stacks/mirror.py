"""Copies of a release's files on the artifact host, if a stack asks for them."""

from __future__ import annotations

from dataclasses import replace

import pulumi

from metal_ipi.components.boot.stream import Artifact, PxeArtifacts
from metal_ipi.provider.types import ClusterKeys, LiveFileArgs, Mirror, MirrorArgs, MirroredFile
from metal_ipi.stacks import connections
from metal_ipi.stacks.settings import Settings


def files(settings: Settings, boot: PxeArtifacts) -> dict[str, Artifact]:
    """The files of a release that machines of the stack fetch, by a name for people."""
    install = settings.boot.install
    found = {"kernel": boot.kernel, "initramfs": boot.initramfs, "rootfs": boot.rootfs}
    if install is not None and install.image == "stream" and boot.disk is not None:
        found["disk"] = boot.disk
    return found


def copied(
    settings: Settings, boot: PxeArtifacts, keys: ClusterKeys, after: pulumi.Resource, opts: pulumi.ResourceOptions
) -> list[pulumi.Resource]:
    """Copy the files to the artifact host before there are machines; empty if the stack does not ask for copies."""
    if not settings.artifacts.mirror:
        return []
    found = {name: LiveFileArgs(url=file.url, sha256=file.sha256) for name, file in files(settings, boot).items()}
    opts = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(depends_on=[after]))
    return [Mirror("mirror", MirrorArgs(files=found, path_seed=keys.host_key_seed), opts)]


def place(settings: Settings, file: Artifact) -> str | None:
    """The URL of a file's copy on the artifact host; None if the stack has no copies."""
    if not settings.artifacts.mirror:
        return None
    return MirroredFile(url=file.url, sha256=file.sha256).url_below(connections.boot_base_url(settings))


def served(settings: Settings, boot: PxeArtifacts) -> PxeArtifacts:
    """The release with the URLs that machines use: those of the stream, or of the copies on the artifact host."""
    if not settings.artifacts.mirror:
        return boot
    moved = {
        name: Artifact(url=place(settings, file) or file.url, sha256=file.sha256)
        for name, file in files(settings, boot).items()
    }
    return replace(boot, **moved)
