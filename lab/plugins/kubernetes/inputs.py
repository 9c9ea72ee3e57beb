"""What the resource types and the provider's configuration take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pulumi.provider.experimental.property_value import PropertyValue
from pulumi.provider.experimental.provider import CheckFailure

from lab.plugins.base import NotInTheLab
from lab.plugins.fields import Field, problems
from lab.plugins.values import UNKNOWN, Json

STRING = Field(kind="string")
FLAG = Field(kind="any")
"""Flags arrive as booleans, or as text: a provider's configuration is made of text."""

CONFIGURATION: Mapping[str, Field] = {
    "kubeconfig": STRING,
    "context": STRING,
    "namespace": STRING,
    "deleteUnreachable": FLAG,
    "enableConfigMapMutable": FLAG,
    "enablePatchForce": FLAG,
    "enableSecretMutable": FLAG,
    "enableServerSideApply": FLAG,
    "suppressDeprecationWarnings": FLAG,
    "suppressHelmHookWarnings": FLAG,
    "upsertExistingObjects": FLAG,
}

CONFIGURATION_NOT_IN_THE_LAB = (
    "alwaysRender",
    "cluster",
    "clusterIdentifier",
    "helmReleaseSettings",
    "kubeClientSettings",
    "renderYamlToDirectory",
    "skipUpdateUnreachable",
)

METADATA = Field(
    kind="object",
    fields={
        "name": STRING,
        "namespace": STRING,
        "labels": Field(kind="map", element=STRING),
        "annotations": Field(kind="map", element=STRING),
        "finalizers": Field(kind="list", element=STRING),
    },
)
_FRAME: Mapping[str, Field] = {"apiVersion": STRING, "kind": STRING, "metadata": METADATA}
_TEXTS = Field(kind="map", element=STRING)

KINDS: Mapping[str, Mapping[str, Field]] = {
    "core/v1:Namespace": {**_FRAME, "spec": Field(kind="object", fields={"finalizers": Field(kind="list")})},
    "core/v1:ConfigMap": {**_FRAME, "data": _TEXTS, "binaryData": _TEXTS, "immutable": Field(kind="boolean")},
    "core/v1:Secret": {
        **_FRAME,
        "data": _TEXTS,
        "stringData": _TEXTS,
        "immutable": Field(kind="boolean"),
        "type": STRING,
    },
}
"""Kubernetes' own kinds, as in the type tokens."""

OWN_GROUPS = frozenset(
    {
        "admissionregistration.k8s.io",
        "apiextensions.k8s.io",
        "apiregistration.k8s.io",
        "auditregistration.k8s.io",
        "authentication.k8s.io",
        "authorization.k8s.io",
        "certificates.k8s.io",
        "coordination.k8s.io",
        "discovery.k8s.io",
        "events.k8s.io",
        "flowcontrol.apiserver.k8s.io",
        "helm.sh",
        "internal.apiserver.k8s.io",
        "networking.k8s.io",
        "node.k8s.io",
        "rbac.authorization.k8s.io",
        "resource.k8s.io",
        "scheduling.k8s.io",
        "settings.k8s.io",
        "storage.k8s.io",
        "storagemigration.k8s.io",
    }
)
"""API groups whose kinds are no custom resources although there is a dot in their name."""

ANNOTATIONS = frozenset(
    f"pulumi.com/{name}"
    for name in (
        "autonamed",
        "deletionPropagationPolicy",
        "patchFieldManager",
        "patchForce",
        "skipAwait",
        "timeoutSeconds",
        "waitFor",
    )
)
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


def kind_of(token: str) -> Kind:
    """The kind that a type token names. Raises NotInTheLab for those that are not implemented."""
    api_version, _, kind = token.removeprefix(_PREFIX).rpartition(":")
    group, _, version = api_version.partition("/")
    fields = KINDS.get(f"{api_version}:{kind}")
    custom = "." in group and group not in OWN_GROUPS and version and not kind.endswith("Patch")
    if not token.startswith(_PREFIX) or (fields is None and not custom):
        raise NotInTheLab("kubernetes", f"the resource type {token}")
    return Kind(api_version=api_version.removeprefix("core/"), kind=kind, fields=fields)


def kind_problems(kind: Kind, inputs: Mapping[str, PropertyValue]) -> Iterator[CheckFailure]:
    """What is wrong with the inputs as far as it can be told without an API server."""
    fields = kind.fields or {**_FRAME, **{name: Field(kind="any") for name in inputs if name not in _FRAME}}
    yield from problems(fields, inputs)
    for name, wanted in (("apiVersion", kind.api_version), ("kind", kind.kind)):
        given = inputs.get(name)
        if given is not None and given.value not in (None, wanted):
            yield CheckFailure(name, f"{name} must be {wanted}, as the resource type says, not {given.value}")


def annotation_problems(annotations: Mapping[str, Json]) -> Iterator[CheckFailure]:
    """Annotations for the plug-in itself."""
    for name in annotations:
        if name.startswith("pulumi.com/") and name not in ANNOTATIONS:
            raise NotInTheLab("kubernetes", f"the annotation {name}")
    seconds = annotations.get("pulumi.com/timeoutSeconds")
    if seconds not in (None, UNKNOWN) and not str(seconds).isdecimal():
        path = 'metadata.annotations["pulumi.com/timeoutSeconds"]'
        yield CheckFailure(path, f"{path} must be a whole number of seconds, not {seconds}")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The provider's configuration."""

    kubeconfig: str = ""
    """Its text, or the path of a file; empty: there is no cluster yet."""
    context: str | None = None
    """One of the kubeconfig's; None: its current one."""
    namespace: str | None = None
    """Where objects go that name no namespace; None: the context's."""
    delete_unreachable: bool = False
    patch_force: bool = False
    secret_mutable: bool = False
    config_map_mutable: bool = False
    upsert: bool = False


def configuration_problems(arguments: Mapping[str, PropertyValue]) -> Iterator[CheckFailure]:
    """Unknown names, wrong types, and what the lab does not do."""
    for name in CONFIGURATION_NOT_IN_THE_LAB:
        if name in arguments and arguments[name].value is not None:
            raise NotInTheLab("kubernetes", f"the configuration {name}")
    yield from problems(CONFIGURATION, arguments)
    for name, field in CONFIGURATION.items():
        value = arguments[name].value if name in arguments else None
        if field is FLAG and value not in (None, True, False, "true", "false", UNKNOWN):
            yield CheckFailure(name, f"{name} must be true or false, not {value}")
        elif name == "enableServerSideApply" and value in (False, "false"):
            raise NotInTheLab("kubernetes", "client-side apply (enableServerSideApply false)")


def settings_of(arguments: Mapping[str, Json]) -> Settings:
    """The configuration as the engine sends it."""
    known = {name: value for name, value in arguments.items() if value not in (None, UNKNOWN)}

    def flag(name: str) -> bool:
        return known.get(name) in (True, "true")

    return Settings(
        kubeconfig=known.get("kubeconfig", ""),
        context=known.get("context"),
        namespace=known.get("namespace"),
        delete_unreachable=flag("deleteUnreachable"),
        patch_force=flag("enablePatchForce"),
        secret_mutable=flag("enableSecretMutable"),
        config_map_mutable=flag("enableConfigMapMutable"),
        upsert=flag("upsertExistingObjects"),
    )
