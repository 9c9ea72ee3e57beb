"""How the cluster is installed, SSH keys for logins, and timeouts of gates."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal, cast

from pydantic import Field, SecretStr, field_validator

from metal_ipi.components.boot.host_keys import KeyType
from metal_ipi.components.install.manifest_rules import OTHER_KIND
from metal_ipi.stacks.sections.base import LONGEST_WAIT, REHEARSAL, Section, is_public_key, matching, wrong
from metal_ipi.stacks.sections.forms import PathHere


def _opens_registries(document: Any) -> bool:
    """Whether the installer accepts it as a pull secret: openshift/installer, pkg/validate/validate.go,
    ImagePullSecret."""
    auths: Any = document.get("auths") if isinstance(document, dict) else None
    if not isinstance(auths, dict) or not auths:
        return False
    entries = cast("dict[str, Any]", auths).values()
    return all(isinstance(each, dict) and each.keys() & {"auth", "credsStore"} for each in entries)


OtherKind = Annotated[
    str,
    matching(
        OTHER_KIND,
        "it is not a kind of objects",
        "give group, version and kind, e.g. example.com/v1/Widget",
    ),
]


ReleaseImage = Annotated[
    str,
    matching(
        r"[A-Za-z0-9.-]+(:\d+)?/[a-z0-9._/-]+@sha256:[0-9a-f]{64}",
        "it does not name an image by digest",
        "give registry, repository and digest, e.g. quay.io/openshift-release-dev/ocp-release@sha256:1f3a...; `oc adm"
        " release info` tells the digest",
    ),
]


class Install(Section):
    """How the cluster is installed."""

    distribution: Literal["openshift", "okd"] = Field(default="openshift", description="openshift or okd")
    installer: PathHere = Field(
        default="openshift-install", description="the installer program, on PATH or an absolute path"
    )
    pull_secret: SecretStr | None = Field(
        default=None, description="the pull secret (JSON), as a secret; okd needs none"
    )
    release_image: ReleaseImage | None = Field(
        default=None,
        description=(
            "the release image, by digest, if it is not the one that the installer names; it is pulled from "
            "mirrors like any other image"
        ),
    )
    manifests: tuple[PathHere, ...] = Field(
        default=(),
        strict=False,
        max_length=20,
        description=(
            "directories with manifests (YAML, JSON or Butane) that the installer adds to its own, relative to "
            "the project"
        ),
    )
    butane: PathHere = Field(
        default="butane", description="the program that translates Butane, on PATH or an absolute path"
    )
    other_kinds: tuple[OtherKind, ...] = Field(
        default=(),
        strict=False,
        description=(
            "kinds of objects, `group/version/Kind`, that are allowed in manifests although they are neither "
            "Kubernetes' nor OpenShift's, because an operator of the cluster defines them"
        ),
    )
    fips: bool = Field(
        default=False,
        description=(
            "true: the cluster's machines run in FIPS mode; needs a FIPS-capable installer on a computer in FIPS mode"
        ),
    )
    discard: Annotated[str, Field(pattern=r"^assets-[0-9a-f]{8}$")] | None = Field(
        default=None,
        description=(
            "your confirmation that an unfinished installation has not formed a cluster, if neither its API "
            "nor its bootstrap machine answers; `up` prints the word to set, which is valid for that "
            "installation only"
        ),
    )
    work_directory: PathHere = Field(
        default=".state/install", description="a temporary directory for the installer; mode 0700"
    )
    log_directory: PathHere = Field(default=".state/logs", description="the directory for logs of failed gates")

    @property
    def key_type(self) -> KeyType:
        """The type of our SSH keys: OpenSSH in FIPS mode accepts ed25519 neither for hosts nor for users."""
        return "ecdsa" if self.fips else "ed25519"

    @field_validator("pull_secret")
    @classmethod
    def _json(cls, value: SecretStr | None) -> SecretStr | None:
        if value is None or value.get_secret_value() == REHEARSAL:
            return value
        try:
            document: Any = json.loads(value.get_secret_value())
        except (ValueError, RecursionError):
            document = None
        if not _opens_registries(document):
            raise wrong(
                'it is not a pull secret: JSON with an object "auths", in it each registry with "auth" or "credsStore"',
                "download it from console.redhat.com/openshift/install/pull-secret and set it with --secret",
            )
        return value


class Ssh(Section):
    """SSH keys of people who may log in to the nodes."""

    authorized_keys: tuple[str, ...] = Field(
        default=(), strict=False, description="public keys of people, one per item"
    )

    @field_validator("authorized_keys")
    @classmethod
    def _public(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for key in value:
            if not is_public_key(key):
                raise wrong(
                    "one item is not an SSH public key", "give the content of a .pub file: 'ssh-ed25519 AAAA... name'"
                )
        return value


class Timeouts(Section):
    """How long each gate waits before it fails, in seconds."""

    machines_active: int = Field(
        default=1800,
        ge=1,
        le=LONGEST_WAIT,
        description="from the order of a machine until the platform reports it as active",
    )
    machines_reachable: int = Field(
        default=1800, ge=1, le=LONGEST_WAIT, description="from there until it answers SSH after its first boot"
    )
    api_answers: int = Field(default=1800, ge=1, le=LONGEST_WAIT, description="until the API answers on its address")
    bootstrap_complete: int = Field(default=3600, ge=1, le=LONGEST_WAIT, description="until bootstrap is complete")
    nodes_ready: int = Field(
        default=2400, ge=1, le=LONGEST_WAIT, description="from the end of bootstrap until all nodes are Ready"
    )
    install_complete: int = Field(
        default=4200, ge=1, le=LONGEST_WAIT, description="until the cluster version is available"
    )
    day_two: int = Field(
        default=1800,
        ge=1,
        le=LONGEST_WAIT,
        description="until an operator of dayTwo is installed, and the same time until each of its objects is ready",
    )
    stable: int = Field(
        default=30, ge=1, le=LONGEST_WAIT, description="how long the cluster version must then stay available"
    )


class Lab(Section):
    """The lab that `make up` starts for the stack."""

    machines: Literal["libvirt", "simulated"] = Field(default="libvirt", description="libvirt (emulated) or simulated")
    installer: Literal["stand-in", "real"] = Field(
        default="stand-in",
        description="the lab's stand-in for openshift-install, or the real one with the real machine config programs,"
        " which are built once; an openshiftVersion that is not the stand-in's means real",
    )
    kubernetes: Literal["real", "small"] = Field(
        default="real", description="kube-apiserver and etcd, or small services, at once, that drain no node"
    )
    disconnected: bool = Field(
        default=False,
        description="nothing outside of the lab's site resolves or answers, and the site has a registry of images; the"
        " stack gets its account, authority and release image; for servers with BMCs",
    )
    reservations: dict[str, str] = Field(
        default_factory=dict, description="hardware reservations that the lab is to have: id → plan"
    )
    hub: str | None = Field(
        default=None,
        description="the stack of the hub whose Ironic the servers are had from; `make up` brings it up first",
    )
