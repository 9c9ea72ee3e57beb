"""Where Ignition and boot scripts are uploaded."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, SecretStr, field_validator

from stacks.sections.base import Section, is_public_key, wrong


def _https(value: str | None) -> str | None:
    """Ignition holds secrets: it is fetched from a server that proves who it is."""
    if value is not None and not re.fullmatch(r"https://[^/\s]+(/\S*)?", value):
        raise wrong("it is no https URL", "give the https URL under which uploaded files are served")
    return value


def _boot_url(value: str | None) -> str | None:
    if value is not None and not re.fullmatch(r"https?://[^/\s]+(/\S*)?", value):
        raise wrong("it is no http(s) URL", "give the URL under which the firmware fetches uploaded files")
    return value


_HttpsUrl = Annotated[str, AfterValidator(_https)]
_BootUrl = Annotated[str, AfterValidator(_boot_url)]


class SshArtifacts(Section):
    """A web server whose files are uploaded over SSH (SFTP)."""

    type: Literal["ssh"] = "ssh"
    host: str | None = Field(default=None, description="the host to upload to")
    port: int = Field(default=22, ge=1, le=65535, description="its SSH port")
    user: str | None = Field(default=None, description="the user who may write to directory")
    host_key: str | None = Field(default=None, description="the host's public key, 'ssh-ed25519 AAAA...', to pin it")
    private_key: SecretStr | None = Field(default=None, description="the user's private key (OpenSSH PEM), as a secret")
    directory: str = Field(default="/artifacts", description="the directory that the web server serves, absolute")
    matchbox: str | None = Field(
        default=None,
        description="the data directory (-data-path, absolute) of a matchbox on that host: it boots the servers, by"
        " groups and profiles, in place of the tree boot/",
    )
    base_url: _HttpsUrl | None = Field(default=None, description="the https URL under which directory is served")
    boot_base_url: _BootUrl | None = Field(
        default=None,
        description="the URL for iPXE scripts where the firmware does not trust baseUrl's CA; not set: baseUrl",
    )

    @field_validator("directory", "matchbox")
    @classmethod
    def _absolute(cls, value: str | None) -> str | None:
        if value is not None and not value.startswith("/"):
            raise wrong("it is not absolute", "give the whole path, from / on, as the SFTP server sees it")
        return value

    @field_validator("host_key")
    @classmethod
    def _public_key(cls, value: str | None) -> str | None:
        if value is not None and not is_public_key(value):
            raise wrong("it is no SSH public key", "take it from `ssh-keyscan <host>`, without the host's name")
        return value


class S3Artifacts(Section):
    """A bucket that is readable over https by whoever knows the key of an object."""

    type: Literal["s3"] = "s3"
    bucket: str = Field(description="the bucket")
    prefix: str = Field(default="metal-ipi", description="the keys' prefix")
    region: str = Field(description="the bucket's region")
    endpoint: str | None = Field(default=None, description="an S3 endpoint other than AWS's")
    access_key_id: str | None = Field(default=None, description="the id of the access key")
    secret_access_key: SecretStr | None = Field(default=None, description="the access key, as a secret")
    base_url: _HttpsUrl = Field(description="the https URL under which the bucket's objects are served")
    boot_base_url: _BootUrl | None = Field(default=None, description="the URL for iPXE scripts; not set: baseUrl")
