"""The inputs of the resource types and of the provider's configuration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pulumi.provider.experimental.property_value import PropertyValue
from pulumi.provider.experimental.provider import CheckFailure

from lab.plugins.base import NotInTheLab
from lab.plugins.fields import ABSENT, TEXT, TEXTS, Field, problems
from lab.plugins.values import UNKNOWN, Json

_TRUE = (True, "true")
"""Flags arrive as booleans, or as text: a provider's configuration is made of text."""
_FLAG = Field(kind="any", only=(*_TRUE, False, "false"))
CONFIGURATION: Mapping[str, Field] = {
    "kubeconfig": TEXT,
    "deleteUnreachable": _FLAG,
    "enableSecretMutable": _FLAG,
    "enableConfigMapMutable": _FLAG,
    "enableServerSideApply": Field(kind="any", only=_TRUE),
    "upsertExistingObjects": _FLAG,
    **dict.fromkeys(
        (
            "alwaysRender",
            "cluster",
            "clusterIdentifier",
            "context",
            "enablePatchForce",
            "helmReleaseSettings",
            "kubeClientSettings",
            "namespace",
            "renderYamlToDirectory",
            "skipUpdateUnreachable",
            "suppressDeprecationWarnings",
            "suppressHelmHookWarnings",
        ),
        ABSENT,
    ),
}

_MAP = Field(kind="map", element=TEXT)
_FRAME: Mapping[str, Field] = {
    "apiVersion": TEXT,
    "kind": TEXT,
    "metadata": Field(
        kind="object",
        required=True,
        fields={
            "name": Field(required=True),
            "namespace": TEXT,
            "labels": _MAP,
            "annotations": _MAP,
            "finalizers": TEXTS,
        },
    ),
}
_SPEC = Field(kind="any", required=True)
"""The API server knows its schema, and refuses what does not fit (`fieldValidation=Strict`)."""
KINDS: Mapping[str, Mapping[str, Field]] = {
    "core/v1:Namespace": {**_FRAME, "spec": ABSENT},
    "core/v1:Secret": {**_FRAME, "data": _MAP, "stringData": _MAP, "immutable": Field(kind="boolean"), "type": TEXT},
    "core/v1:ConfigMap": {**_FRAME, "data": _MAP, "binaryData": _MAP, "immutable": Field(kind="boolean")},
    "core/v1:ServiceAccount": {**_FRAME, "automountServiceAccountToken": Field(kind="boolean")},
    "rbac.authorization.k8s.io/v1:Role": {**_FRAME, "rules": _SPEC},
    "rbac.authorization.k8s.io/v1:RoleBinding": {**_FRAME, "roleRef": _SPEC, "subjects": _SPEC},
    **{
        kind: {**_FRAME, "spec": _SPEC}
        for kind in (
            "core/v1:Service",
            "core/v1:PersistentVolumeClaim",
            "apps/v1:Deployment",
            "apps/v1:StatefulSet",
            "batch/v1:CronJob",
            "batch/v1:Job",
            "networking.k8s.io/v1:NetworkPolicy",
            "policy/v1:PodDisruptionBudget",
        )
    },
}
"""Kubernetes' own kinds, as in the type tokens."""

REPLACE_UNREADY = "pulumi.com/replaceUnready"
ANNOTATIONS = ("pulumi.com/patchForce", "pulumi.com/waitFor")
"""Those that change what the plug-in does. Others of this prefix are refused: they would be ignored without a word."""

_PREFIX = "kubernetes:"


@dataclass(frozen=True, kw_only=True)
class Kind:
    """What a type token stands for."""

    api_version: str
    """As in a manifest: `v1`, `metallb.io/v1beta1`."""
    kind: str
    fields: Mapping[str, Field] | None
    """Its inputs; None for custom resources, whose schema only the API server knows."""
    patch: bool = False
    """Whether it is a part of an object that others made."""


def kind_of(token: str) -> Kind:
    """The kind that a type token names. Raises NotInTheLab for those that are not implemented."""
    api_version, _, kind = token.removeprefix(_PREFIX).rpartition(":")
    group, _, version = api_version.partition("/")
    fields = KINDS.get(f"{api_version}:{kind}")
    own = group.endswith(".k8s.io") or group == "helm.sh"
    custom = "." in group and not own and version
    if not token.startswith(_PREFIX) or (fields is None and not custom):
        raise NotInTheLab("kubernetes", f"the resource type {token}")
    plain = kind.removesuffix("Patch")
    return Kind(api_version=api_version.removeprefix("core/"), kind=plain, fields=fields, patch=plain != kind)


def kind_problems(kind: Kind, inputs: Mapping[str, PropertyValue]) -> Iterator[CheckFailure]:
    """What is wrong with the inputs as far as it can be told without an API server."""
    fields = kind.fields or {**_FRAME, **{name: Field(kind="any") for name in inputs if name not in _FRAME}}
    yield from problems("kubernetes", fields, inputs)
    for name, wanted in (("apiVersion", kind.api_version), ("kind", kind.kind)):
        given = inputs.get(name)
        if given is not None and given.value not in (None, wanted):
            yield CheckFailure(name, f"{name} must be {wanted}, as the resource type says, not {given.value}")


def refuse_annotations(kind: str, annotations: Mapping[str, Json]) -> None:
    """Raises NotInTheLab for annotations for the official plug-in that this one would ignore."""
    for name in annotations:
        known = (*ANNOTATIONS, REPLACE_UNREADY) if kind == "Job" else ANNOTATIONS
        if name.startswith("pulumi.com/") and name not in known:
            raise NotInTheLab("kubernetes", f"the annotation {name}")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The provider's configuration."""

    kubeconfig: str = ""
    """Its text; empty: there is no cluster yet."""
    delete_unreachable: bool = False
    secret_mutable: bool = False
    config_map_mutable: bool = False
    upsert: bool = False
    """What is there already is taken over, and not refused."""


def settings_of(arguments: Mapping[str, Json]) -> Settings:
    """The configuration as the engine sends it."""
    kubeconfig = arguments.get("kubeconfig") or ""
    return Settings(
        kubeconfig="" if kubeconfig == UNKNOWN else kubeconfig,
        delete_unreachable=arguments.get("deleteUnreachable") in _TRUE,
        secret_mutable=arguments.get("enableSecretMutable") in _TRUE,
        config_map_mutable=arguments.get("enableConfigMapMutable") in _TRUE,
        upsert=arguments.get("upsertExistingObjects") in _TRUE,
    )
