"""`ServiceCredentials` and its inputs, for programs."""

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
    """Names of the accounts. In each rotation, an account gets a new user name, `<account>-<rotation>`, and a new
    password."""
    rotation: Annotated[Whole, between(1)] = 1
    """Raise it to create new passwords for all accounts. Passwords of the previous rotation stay valid until the next
    one."""


class ServiceCredentials(Resource[ServiceCredentialsArgs]):
    """A certificate authority and accounts with passwords, for a service that this program installs.

    A raised `rotation` creates new passwords; the authority never changes.
    """

    ca: pulumi.Output[str] = computed()
    """Certificate of the authority, PEM."""
    ca_private_key: pulumi.Output[Secret[str]] = computed()
    """Key of the authority, PEM. Secret."""
    accounts_made: pulumi.Output[Secret[dict[str, Any]]] = computed()
    """Account name to `username`, `password`, `htpasswd` (lines with bcrypt hashes for this rotation and the previous
    one), `previousUsername` and `previousPassword` (empty in the first rotation). Secret."""

    def __init__(self, name: str, args: ServiceCredentialsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, args, opts)
