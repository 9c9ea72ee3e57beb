"""ClusterKeys: the SSH key of a cluster, and the seed of its nodes' host keys.

Life cycle: create makes an ed25519 key and a seed; there is nothing to update; read and delete touch nothing outside
the state. Nothing is ever replaced: nodes pin what is made here.
Killed at any moment: nothing outside the state exists, so the next run makes new ones that nobody has seen before.
"""

from __future__ import annotations

import base64
import secrets

from provider.fields import Problem, Reader
from provider.resource import Changes, Context, Made, ResourceType, Values
from provider.values import UNKNOWN, Secret


class ClusterKeys(ResourceType):
    """The SSH key of a cluster and the seed its nodes' host keys are derived from."""

    token = "metal-ipi:index:ClusterKeys"  # noqa: S105 - a type token

    def check(self, inputs: Values) -> list[Problem]:
        reader = Reader(inputs)
        reader.only()
        return reader.problems

    def diff(self, context: Context, old: Values, new: Values) -> Changes:
        return Changes()

    def preview(self, context: Context, old: Values | None, new: Values) -> Values:
        if old is not None:
            return old
        return {"privateKey": Secret(UNKNOWN), "publicKey": UNKNOWN, "hostKeySeed": Secret(UNKNOWN)}

    async def create(self, context: Context, inputs: Values) -> Made:
        from cryptography.hazmat.primitives import serialization as form
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        key = Ed25519PrivateKey.generate()
        private = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.OpenSSH, form.NoEncryption()).decode()
        public = key.public_key().public_bytes(form.Encoding.OpenSSH, form.PublicFormat.OpenSSH).decode()
        seed = base64.b64encode(secrets.token_bytes(32)).decode()
        outputs = {"privateKey": Secret(private), "publicKey": public, "hostKeySeed": Secret(seed)}
        return Made(id=secrets.token_hex(8), outputs=outputs)

    async def update(self, context: Context, resource_id: str, old: Values, new: Values) -> Values:
        return old

    async def delete(self, context: Context, resource_id: str, old: Values) -> None:
        return
