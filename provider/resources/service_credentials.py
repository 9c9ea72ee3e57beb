"""`ServiceCredentials`, as programs see them, and their inputs."""

from __future__ import annotations

from typing import Annotated, Any

import pulumi

from metal_ipi.provider.forms import NOT_EMPTY, Whole, between, form
from metal_ipi.provider.given import Secret
from metal_ipi.provider.inputs import Inputs
from metal_ipi.provider.resources.base import Resource, computed

_Name = Annotated[str, form(r"[a-z]([a-z0-9-]{0,30}[a-z0-9])?", "a short name: lower case letters, digits and hyphens")]
_Subject = Annotated[str, form(r"(\*\.)?[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?", "a DNS name or an IPv4 address")]


class ServiceCredentialsArgs(Inputs):
    """Arguments of `ServiceCredentials`."""

    certificates: dict[_Name, Annotated[list[_Subject], NOT_EMPTY]]
    """For each certificate the DNS names and IPv4 addresses it is good for; the first is its common name."""
    accounts: Annotated[list[_Name], NOT_EMPTY]
    """The accounts. Each gets a user name of its own for every rotation, `<account>-<rotation>`, and a password."""
    rotation: Annotated[Whole, between(1)] = 1
    """Raise it to have all passwords made anew. Those of the rotation before stay good until the next one."""
    valid_days: Annotated[Whole, between(2, 3650)] = 397
    """How long certificates are good for, days."""
    renew_before_days: Annotated[Whole, between(1, 3649)] = 60
    """The first update that comes later than this before a certificate's end makes it anew, days."""


class ServiceCredentials(Resource[ServiceCredentialsArgs]):
    """An authority, certificates that it signed, and accounts with passwords, for a service that we install.

    Certificates are made anew by the update that finds them near their end, and passwords when `rotation` is raised;
    the authority never is.
    """

    ca: pulumi.Output[str] = computed()
    """The authority's certificate, PEM."""
    certificates_made: pulumi.Output[Secret[dict[str, Any]]] = computed()
    """By name: `certificate` and `privateKey`, PEM. Secret."""
    accounts_made: pulumi.Output[Secret[dict[str, Any]]] = computed()
    """By name: `username`, `password`, and `htpasswd`: lines with bcrypt hashes of this rotation and of the one before;
    `previousUsername` and `previousPassword`, empty in the first rotation. Secret."""
    renewal: pulumi.Output[str] = computed()
    """After this time an update renews certificates, ISO 8601 in UTC."""

    def __init__(self, name: str, args: ServiceCredentialsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, args, opts)
