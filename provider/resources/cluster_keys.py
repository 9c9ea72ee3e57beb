"""`ClusterKeys` and its inputs, for programs."""

from __future__ import annotations

from typing import Annotated

import pulumi

from metal_ipi.provider.forms import one_of
from metal_ipi.provider.given import Secret
from metal_ipi.provider.inputs import Inputs
from metal_ipi.provider.resources.base import Resource, computed


class ClusterKeysArgs(Inputs):
    """Arguments of `ClusterKeys`."""

    key_type: Annotated[str, one_of("ed25519", "ecdsa")] | None = None
    """`ed25519`, or `ecdsa` (curve P-256), which FIPS allows; default: `ed25519`. A change is refused."""


class ClusterKeys(Resource[ClusterKeysArgs]):
    """The SSH key of a cluster, and the seed of its nodes' host keys. Never silently replaced.

    The first up of a cluster creates it, and the last down removes it. Its id, 16 hexadecimal digits, distinguishes one
    installation of a cluster from the next.
    """

    private_key: pulumi.Output[Secret[str]] = computed()
    """OpenSSH PEM. Secret."""
    public_key: pulumi.Output[str] = computed()
    """One authorized_keys line without comment: `ssh-ed25519 AAAA…`, `ecdsa-sha2-nistp256 AAAA…`."""
    host_key_seed: pulumi.Output[Secret[str]] = computed()
    """32 random bytes in base64. Secret."""

    def __init__(
        self, name: str, args: ClusterKeysArgs | None = None, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(name, args or ClusterKeysArgs(), opts)
