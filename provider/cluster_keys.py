"""ClusterKeys: the SSH key of a cluster, and the seed from which its nodes' host keys are derived.

Life cycle: create makes a key of the requested type, and a seed; update changes nothing; read and delete touch nothing
outside the state. Nothing is ever replaced, because nodes pin these keys: so another type of key is refused as long as
the cluster exists.

Killed at any moment: nothing exists outside the state, so the next run makes new keys that nobody has used.
"""

from __future__ import annotations

import base64
import secrets

from metal_ipi.provider.errors import InvalidInputs
from metal_ipi.provider.resource import Changes, Context, Made, ResourceType, Values
from metal_ipi.provider.resources.cluster_keys import ClusterKeysArgs
from metal_ipi.provider.values import UNKNOWN, Secret

_DEFAULT = "ed25519"
"""The type in states of earlier versions, and the default."""


class ClusterKeys(ResourceType):
    """The SSH key of a cluster, and the seed from which its nodes' host keys are derived."""

    token = "metal-ipi:index:ClusterKeys"  # noqa: S105 - a type token
    inputs = ClusterKeysArgs

    def diff(self, context: Context, old: Values, new: Values) -> Changes:
        before, after = _key_type(old), _key_type(new)
        if before != after:
            raise InvalidInputs(
                f"this cluster's SSH keys are of the type {before}, and the settings now need the type {after}: the "
                "machines know only the existing keys, so they are not replaced while the cluster exists. Restore the "
                "setting with which it was installed (metal-ipi:install.fips), or install it again: `make down` "
                "first, then `make up`"
            )
        return Changes()

    def preview(self, context: Context, old: Values | None, new: Values) -> Values:
        if old is not None:
            return old
        return {"privateKey": Secret(UNKNOWN), "publicKey": UNKNOWN, "hostKeySeed": Secret(UNKNOWN)}

    async def create(self, context: Context, inputs: Values) -> Made:
        from cryptography.hazmat.primitives import serialization as form
        from cryptography.hazmat.primitives.asymmetric import ec, ed25519

        ecdsa = _key_type(inputs) == "ecdsa"
        key = ec.generate_private_key(ec.SECP256R1()) if ecdsa else ed25519.Ed25519PrivateKey.generate()
        private = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.OpenSSH, form.NoEncryption()).decode()
        public = key.public_key().public_bytes(form.Encoding.OpenSSH, form.PublicFormat.OpenSSH).decode()
        seed = base64.b64encode(secrets.token_bytes(32)).decode()
        outputs = {"privateKey": Secret(private), "publicKey": public, "hostKeySeed": Secret(seed)}
        return Made(id=secrets.token_hex(8), outputs=outputs)

    async def update(self, context: Context, resource_id: str, old: Values, new: Values) -> Values:
        return old


def _key_type(values: Values) -> str:
    return str(values.get("keyType") or _DEFAULT)
