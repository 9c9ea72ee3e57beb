"""What all sections share."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

REHEARSAL = "rehearsal"
"""Stands for a secret that a rehearsal (an offline preview) does not have; never used for a real change."""

_SSH_KEY_TYPES = ("ssh-ed25519", "ssh-rsa", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521")


class Section(BaseModel):
    """A part of the settings: camelCase keys, nothing unknown, nothing converted."""

    model_config = ConfigDict(
        alias_generator=to_camel, extra="forbid", frozen=True, hide_input_in_errors=True, strict=True
    )


def wrong(why: str, remedy: str, *, at: str = "") -> PydanticCustomError:
    """A problem of the value being validated, or of the setting `at` below it."""
    return PydanticCustomError("metal_ipi", "{why}", {"why": why, "remedy": remedy, "at": at})


def is_public_key(text: str) -> bool:
    """Whether it is an SSH public key, with or without a comment."""
    words = text.split()
    return len(words) >= 2 and words[0] in _SSH_KEY_TYPES and words[1].startswith("AAAA")
