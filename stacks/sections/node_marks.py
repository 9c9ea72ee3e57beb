"""Labels and taints of nodes."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from metal_ipi.components.install.manifest_rules import NAME
from metal_ipi.stacks.sections.base import Section, wrong

_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_OF_KUBELET = frozenset(
    {
        *(f"kubernetes.io/{name}" for name in ("arch", "hostname", "os")),
        *(f"beta.kubernetes.io/{name}" for name in ("arch", "os", "instance-type")),
        *("node.kubernetes.io/instance-type", "node.openshift.io/os_id"),
        *(f"node-role.kubernetes.io/{name}" for name in ("control-plane", "master", "arbiter", "worker")),
    }
)
"""Labels that kubelets set themselves on OpenShift (machine-config-operator, templates/*/01-*-kubelet)."""
_OF_CONTROLLERS = ("node.kubernetes.io", "node.cloudprovider.kubernetes.io")
"""Prefixes of taints that describe a node's state: Kubernetes sets and removes them."""


def _key(value: str) -> str:
    """The rule of Kubernetes for keys (apimachinery, pkg/util/validation, IsQualifiedName)."""
    prefix, slash, name = value.rpartition("/")
    if not name or not _VALUE.fullmatch(name) or (slash and not NAME.fullmatch(prefix)):
        raise wrong(
            "it is not a key of labels and taints",
            "use up to 63 of a-z, A-Z, 0-9, '-', '_' and '.', with a domain before it: example.com/rack",
        )
    return value


def _label(key: str) -> str:
    if key in _OF_KUBELET:
        raise wrong("kubelets set this label themselves", "take another key, e.g. one below a domain of yours")
    return _key(key)


def _taint(key: str) -> str:
    if key.rpartition("/")[0] in _OF_CONTROLLERS:
        raise wrong("Kubernetes sets and removes this taint itself", "take another key, e.g. one of a domain of yours")
    return _key(key)


def _value(value: str) -> str:
    if not _VALUE.fullmatch(value):
        raise wrong(
            "it is not a value of labels and taints",
            "use up to 63 of a-z, A-Z, 0-9, '-', '_' and '.', beginning and ending with a letter or digit; or nothing",
        )
    return value


_Value = Annotated[str, AfterValidator(_value)]


class Taint(Section):
    """Keeps pods away from nodes, except pods that tolerate it."""

    key: Annotated[str, AfterValidator(_taint)] = Field(description="its key, e.g. example.com/storage")
    value: _Value = Field(default="", description="its value")
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = Field(
        description=(
            "NoSchedule: no new pods; PreferNoSchedule: no new pods if there is another node; NoExecute: "
            "running pods are removed too"
        )
    )


def over(own: tuple[Taint, ...], general: tuple[Taint, ...]) -> tuple[Taint, ...]:
    """The general taints; own taints replace those with the same key and effect."""
    taken = {(taint.key, taint.effect) for taint in own}
    return (*(taint for taint in general if (taint.key, taint.effect) not in taken), *own)


def _distinct(value: tuple[Taint, ...]) -> tuple[Taint, ...]:
    """The API accepts only one taint with the same key and effect."""
    seen = [(taint.key, taint.effect) for taint in value]
    for key, effect in seen:
        if seen.count((key, effect)) > 1:
            raise wrong(f"{key} with {effect} is listed twice", "keep one of them")
    return value


Labels = Annotated[dict[Annotated[str, AfterValidator(_label)], _Value], Field(max_length=50)]
"""The labels: key → value."""
Taints = Annotated[tuple[Taint, ...], Field(strict=False, max_length=20), AfterValidator(_distinct)]
