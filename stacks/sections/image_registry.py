"""Where the cluster's own image registry keeps its images."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, SecretStr

from metal_ipi.stacks.sections.base import Section, matching
from metal_ipi.stacks.sections.forms import Bucket, Endpoint, KeyId, Region

ObjectName = Annotated[
    str,
    matching(
        r"(?=.{1,63}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?",
        "an object cannot have this name",
        "use up to 63 of a-z, 0-9 and '-', beginning and ending with a-z or 0-9",
    ),
]


class _Registry(Section):
    """What the kinds of storage share."""

    replicas: int = Field(default=1, ge=1, le=10, description="how many pods serve it")


class ClaimRegistry(_Registry):
    """A volume from a storage class of the cluster."""

    type: Literal["claim"] = "claim"
    storage_class: ObjectName | None = Field(
        default=None, description="the storage class; not set: the cluster's default one"
    )
    size: int = Field(default=100, ge=1, le=1_000_000, description="how large the volume is, GiB")
    access: Literal["ReadWriteOnce", "ReadWriteMany"] = Field(
        default="ReadWriteOnce",
        description="ReadWriteOnce: only one pod, which is stopped before its replacement starts; or ReadWriteMany",
    )


class S3Registry(_Registry):
    """A bucket of an object store with the S3 protocol."""

    type: Literal["s3"] = "s3"
    bucket: Bucket = Field(description="the bucket, which is there already")
    region: Region = Field(default="us-east-1", description="its region; most object stores other than AWS accept any")
    endpoint: Endpoint | None = Field(default=None, description="the store's URL; not set: AWS")
    path_style: bool = Field(
        default=False,
        description="true: the bucket is in the path of the URL, as most object stores other than AWS need it",
    )
    access_key_id: KeyId | None = Field(default=None, description="the id of the access key")
    secret_access_key: SecretStr | None = Field(default=None, description="the access key, as a secret")


class EmptyDirRegistry(Section):
    """Files in the registry's pod: TEMPORARY, all images are lost with the pod."""

    type: Literal["empty-dir"] = "empty-dir"


class NoRegistry(Section):
    """No registry runs. This is OpenShift's default on platforms without storage."""

    type: Literal["removed"] = "removed"


ImageRegistry = Annotated[ClaimRegistry | S3Registry | EmptyDirRegistry | NoRegistry, Field(discriminator="type")]
