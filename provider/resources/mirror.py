"""`Mirror`, as programs see it, and its inputs."""

from __future__ import annotations

import pulumi

from metal_ipi.provider.forms import Seed
from metal_ipi.provider.given import Given, MapOf, Secret
from metal_ipi.provider.inputs import Inputs
from metal_ipi.provider.resources.base import Resource, computed
from metal_ipi.provider.resources.live_system import LiveFileArgs


class MirrorArgs(Inputs):
    """Arguments of `Mirror`."""

    files: MapOf[LiveFileArgs]
    """The files, by what people call them. Each is copied once, and its hash checked before it gets its name."""
    path_seed: Given[Secret[Seed]]
    """What the claim is derived from, 16 random characters or more. Secret. A change replaces."""


class Mirror(Resource[MirrorArgs]):
    """Files of a release that are kept on the artifact host, for machines that cannot fetch them where they are
    published. Stacks with one artifact directory share them: a file goes with the last that uses it."""

    urls: pulumi.Output[dict[str, str]] = computed()
    """Where each is served, below `bootBaseUrl`."""
    sizes: pulumi.Output[dict[str, int]] = computed()
    """The size in bytes of each, by its name in the mirror."""
