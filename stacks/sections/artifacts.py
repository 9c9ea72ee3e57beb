"""Where Ignition and boot scripts are uploaded."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, SecretStr, field_validator

from stacks.sections.base import Section, is_public_key, wrong
from stacks.sections.forms import Bucket, Endpoint, Host, KeyId, PathOnServer, Prefix, Region, User, is_url


def _https(value: str) -> str:
    """Ignition holds secrets: it is fetched from a server that proves who it is."""
    if not is_url(value, "https"):
        raise wrong(
            "it is no https URL",
            "give the https URL under which uploaded files are served: host, port and path, nothing else",
        )
    return value


def _boot_url(value: str) -> str:
    if not is_url(value, "https", "http"):
        raise wrong(
            "it is no http(s) URL",
            "give the URL under which the firmware fetches uploaded files: host, port and path, nothing else",
        )
    return value


_HttpsUrl = Annotated[str, AfterValidator(_https)]
_BootUrl = Annotated[str, AfterValidator(_boot_url)]


class SshArtifacts(Section):
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
        description="the data directory (-data-path, absolute) of a matchbox on that host: it boots the servers, by"
        " groups and profiles, in place of the tree boot/",
    )
    base_url: _HttpsUrl | None = Field(default=None, description="the https URL under which directory is served")
    boot_base_url: _BootUrl | None = Field(
        default=None,
        description="the URL for iPXE scripts where the firmware does not trust baseUrl's CA; not set: baseUrl",
    )

    @field_validator("host_key")
    @classmethod
    def _public_key(cls, value: str | None) -> str | None:
        if value is not None and not is_public_key(value):
            raise wrong("it is no SSH public key", "take it from `ssh-keyscan <host>`, without the host's name")
        return value


class S3Artifacts(Section):
    """A bucket that is readable over https by whoever knows the key of an object."""

    type: Literal["s3"] = "s3"
    bucket: Bucket = Field(description="the bucket")
    prefix: Prefix = Field(default="metal-ipi", description="the keys' prefix")
    region: Region = Field(description="the bucket's region")
    endpoint: Endpoint | None = Field(default=None, description="an S3 endpoint other than AWS's")
    access_key_id: KeyId | None = Field(default=None, description="the id of the access key")
    secret_access_key: SecretStr | None = Field(default=None, description="the access key, as a secret")
    base_url: _HttpsUrl = Field(description="the https URL under which the bucket's objects are served")
    boot_base_url: _BootUrl | None = Field(default=None, description="the URL for iPXE scripts; not set: baseUrl")
