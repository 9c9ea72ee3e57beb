"""`ServiceCredentials`, as programs see them, and their inputs."""

from __future__ import annotations

from typing import Annotated, Any

import pulumi

from metal_ipi.provider.forms import NOT_EMPTY, Whole, between, form
from metal_ipi.provider.given import Secret
from metal_ipi.provider.inputs import Inputs
from metal_ipi.provider.resources.base import Resource, computed

_Name = Annotated[str, form(r"[a-z]([a-z0-9-]{0,30}[a-z0-9])?", "a short name: lower case letters, digits and hyphens")]


class ServiceCredentialsArgs(Inputs):
    """Arguments of `ServiceCredentials`."""

    accounts: Annotated[list[_Name], NOT_EMPTY]
    """The accounts. Each gets a user name of its own for every rotation, `<account>-<rotation>`, and a password."""
    rotation: Annotated[Whole, between(1)] = 1
    """Raise it to have all passwords made anew. Those of the rotation before stay good until the next one."""


class ServiceCredentials(Resource[ServiceCredentialsArgs]):
    """An authority that signs certificates, and accounts with passwords, for a service that we install.

    Passwords are made anew when `rotation` is raised; the authority never is.
    """

    ca: pulumi.Output[str] = computed()
    """The authority's certificate, PEM."""
    ca_private_key: pulumi.Output[Secret[str]] = computed()
    """The authority's key, PEM. Secret."""
    accounts_made: pulumi.Output[Secret[dict[str, Any]]] = computed()
    """By name: `username`, `password`, and `htpasswd`: lines with bcrypt hashes of this rotation and of the one before;
    `previousUsername` and `previousPassword`, empty in the first rotation. Secret."""

    def __init__(self, name: str, args: ServiceCredentialsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, args, opts)
