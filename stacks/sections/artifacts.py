"""Where Ignition and boot scripts are uploaded."""

from __future__ import annotations

from typing import Annotated, Literal

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from pydantic import AfterValidator, Field, SecretStr, field_validator

from metal_ipi.stacks.sections.base import PublicPem, Section, certificates, is_public_key, wrong
from metal_ipi.stacks.sections.forms import Bucket, Endpoint, Host, KeyId, PathOnServer, Prefix, Region, User, is_url


def _https(value: str) -> str:
    """Ignition contains secrets, so it must be fetched by https, from a server with a verified certificate."""
    if not is_url(value, "https"):
        raise wrong(
            "it is not an https URL",
            "give the https URL under which uploaded files are served: host, port and path, nothing else",
        )
    return value


def _boot_url(value: str) -> str:
    if not is_url(value, "https", "http"):
        raise wrong(
            "it is not an http(s) URL",
            "give the URL under which the firmware fetches uploaded files: host, port and path, nothing else",
        )
    return value


def _authorities(value: str | None) -> str | None:
    """Check that all certificates belong to certificate authorities, because they are used to verify the server."""
    if value is None:
        return None
    for certificate in certificates(value):
        name = certificate.subject.rfc4514_string()
        try:
            is_authority = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
        except x509.ExtensionNotFound:
            # certificates of X.509 version 1 have no such extension
            is_authority = certificate.issuer == certificate.subject
        if not is_authority:
            raise wrong(
                f"the certificate of {name} is not that of an authority, so no certificate can be verified with it",
                "give the certificate of the authority that signed the boot server's own",
            )
    return value


_Authorities = Annotated[PublicPem, AfterValidator(_authorities)]
_HttpsUrl = Annotated[str, AfterValidator(_https)]
_BootUrl = Annotated[str, AfterValidator(_boot_url)]


class _Host(Section):
    """Settings that all artifact hosts share."""

    ca_bundle: _Authorities | None = Field(
        default=None,
        description="the authority (PEM, one or more certificates) that signed the certificate of baseUrl's server;"
        " not set: one that every system trusts",
    )
    mirror: bool = Field(
        default=False,
        description=(
            "true: kernel, initramfs, root file system and disk image of the stream are copied to the artifact "
            "host, verified by their hashes, and machines fetch them from bootBaseUrl"
        ),
    )

    @property
    def authorities(self) -> tuple[str, ...]:
        """The certificates of caBundle, one PEM text each."""
        found = certificates(self.ca_bundle) if self.ca_bundle is not None else []
        return tuple(each.public_bytes(Encoding.PEM).decode() for each in found)


class SshArtifacts(_Host):
    """A web server whose files are uploaded over SSH (SFTP)."""

    type: Literal["ssh"] = "ssh"
    host: Host | None = Field(default=None, description="the host to upload to")
    port: int = Field(default=22, ge=1, le=65535, description="its SSH port")
    user: User | None = Field(default=None, description="the user who may write to directory")
    host_key: str | None = Field(default=None, description="the host's public key, 'ssh-ed25519 AAAA...', to pin it")
    private_key: SecretStr | None = Field(default=None, description="the user's private key (OpenSSH PEM), as a secret")
    directory: PathOnServer = Field(
        default="/artifacts", description="the directory that the web server serves, absolute"
    )
    matchbox: PathOnServer | None = Field(
        default=None,
        description=(
            "the data directory (-data-path, absolute) of a matchbox on that host, which then boots the "
            "servers by groups and profiles, instead of the directory boot/"
        ),
    )
    base_url: _HttpsUrl | None = Field(default=None, description="the https URL under which directory is served")
    boot_base_url: _BootUrl | None = Field(
        default=None,
        description=(
            "the URL for firmware that does not trust the certificate of baseUrl; with plain http nothing "
            "protects script, kernel and initramfs from changes; not set: baseUrl"
        ),
    )

    @field_validator("host_key")
    @classmethod
    def _public_key(cls, value: str | None) -> str | None:
        if value is not None and not is_public_key(value):
            raise wrong("it is not an SSH public key", "take it from `ssh-keyscan <host>`, without the host's name")
        return value


class S3Artifacts(_Host):
    """A bucket whose objects can be read over https by whoever knows their keys."""

    type: Literal["s3"] = "s3"
    bucket: Bucket = Field(description="the bucket")
    prefix: Prefix = Field(default="metal-ipi", description="the keys' prefix")
    region: Region = Field(description="the bucket's region")
    endpoint: Endpoint | None = Field(default=None, description="an S3 endpoint other than AWS's")
    access_key_id: KeyId | None = Field(default=None, description="the id of the access key")
    secret_access_key: SecretStr | None = Field(default=None, description="the access key, as a secret")
    base_url: _HttpsUrl = Field(description="the https URL under which the bucket's objects are served")
    boot_base_url: _BootUrl | None = Field(
        default=None,
        description=(
            "the URL for firmware; with plain http nothing protects script, kernel and initramfs from changes; "
            "not set: baseUrl"
        ),
    )
