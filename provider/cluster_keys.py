"""ClusterKeys: the SSH key of a cluster, and the seed of its nodes' host keys.

Life cycle: create takes the user's key or makes an ed25519 one, and makes a seed; update takes another user key and
keeps the seed; read and delete touch nothing outside the state. Nothing is ever replaced: nodes pin what is made here.
Killed at any moment: nothing outside the state exists, so the next run makes new ones that nobody has seen before.
"""

from __future__ import annotations

import base64
import secrets

from provider.errors import InvalidInputs
from provider.fields import PEM, Problem, Reader
from provider.resource import Changes, Context, Made, ResourceType, Values
from provider.values import UNKNOWN, Secret


class ClusterKeys(ResourceType):
    """The SSH key of a cluster and the seed its nodes' host keys are derived from."""

    token = "metal-ipi:index:ClusterKeys"  # noqa: S105 - a type token

    def check(self, inputs: Values) -> list[Problem]:
        reader = Reader(inputs)
        reader.only("privateKey")
        key = reader.optional_text("privateKey", pattern=PEM, what="an OpenSSH private key in PEM")
        if key and not reader.problems:
            try:
                public_key_of(key)
            except InvalidInputs as error:
                reader.fail("privateKey", str(error))
        return reader.problems

    def diff(self, context: Context, old: Values, new: Values) -> Changes:
        given = new.get("privateKey")
        changed = not old.get("generated") if given is None else given != old.get("privateKey")
        return Changes(changes={"privateKey": "update"} if changed else {})

    def preview(self, context: Context, old: Values | None, new: Values) -> Values:
        given = new.get("privateKey")
        seed = UNKNOWN if old is None else old["hostKeySeed"]
        public = public_key_of(given) if isinstance(given, str) else UNKNOWN
        private = UNKNOWN if given is None else given
        return _outputs(private, public, seed, generated=given is None)

    async def create(self, context: Context, inputs: Values) -> Made:
        seed = base64.b64encode(secrets.token_bytes(32)).decode()
        return Made(id=secrets.token_hex(8), outputs=_keys(inputs.get("privateKey"), seed))

    async def update(self, context: Context, resource_id: str, old: Values, new: Values) -> Values:
        return _keys(new.get("privateKey"), old["hostKeySeed"])

    async def delete(self, context: Context, resource_id: str, old: Values) -> None:
        return


def _keys(given: str | None, seed: str) -> Values:
    private = given or _generate()
    return _outputs(private, public_key_of(private), seed, generated=given is None)


def _outputs(private: object, public: object, seed: object, *, generated: bool) -> Values:
    return {
        "privateKey": Secret(private),
        "publicKey": public,
        "hostKeySeed": Secret(seed),
        "generated": generated,
    }


def _generate() -> str:
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.generate()
    return key.private_bytes(form.Encoding.PEM, form.PrivateFormat.OpenSSH, form.NoEncryption()).decode()


def public_key_of(private_key: str) -> str:
    """The public half as one authorized_keys line without comment."""
    from cryptography.hazmat.primitives import serialization as form

    try:
        key = form.load_ssh_private_key(private_key.encode(), password=None)
    except Exception as error:  # the library raises ValueError, TypeError and its own kinds for the same thing
        locked = isinstance(error, TypeError)  # «Key is password-protected, but password was not provided»
        reason = "it is encrypted, give it without passphrase" if locked else "it cannot be read"
        raise InvalidInputs(f"must be an OpenSSH private key: {reason}") from None
    return key.public_key().public_bytes(form.Encoding.OpenSSH, form.PublicFormat.OpenSSH).decode()
