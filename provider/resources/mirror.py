"""`Mirror` and its inputs, for programs."""

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
    """File by a name for people. Each file is copied once, and its hash is checked before it gets its final name."""
    path_seed: Given[Secret[Seed]]
    """Random text of 16 characters or more, from which the mark of this user of the mirror is derived. Secret. A change
    replaces."""


class Mirror(Resource[MirrorArgs]):
    """Files of a release that are copied to the artifact host, for machines that cannot download them from their
    publisher. Stacks with the same artifact directory share them: a file is deleted with its last user."""

    urls: pulumi.Output[dict[str, str]] = computed()
    """File name to its URL under `bootBaseUrl`."""
    sizes: pulumi.Output[dict[str, int]] = computed()
    """File name in the mirror to its size in bytes."""
