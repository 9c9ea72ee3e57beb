"""The lab's catalogue: the packages that the program's settings know, and one of the lab's own.

A file-based catalogue (olm.operatorframework.io, reference/file-based-catalogs), whose bundles stand in it as a whole,
so that no image has to be unpacked. Packages, kinds and install modes are called as in Red Hat's catalogue. Their
definitions know no schema: the operators' modules cannot be had.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Object = dict[str, Any]
EXAMPLE_GROUP = "example.facility.test"


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of objects that an operator brings."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool


@dataclass(frozen=True, kw_only=True)
class Package:
    """An operator."""

    name: str
    kinds: tuple[Kind, ...]
    channels: tuple[tuple[str, str], ...] = (("stable", "1.0.0"),)
    """Each channel and its latest version; all begin with 1.0.0, and the first one is the default."""
    deployment: str = "controller-manager"
    everywhere: bool = False
    """Whether it takes all namespaces only; else its own, too."""


_MEDIK8S = "v1alpha1"
PACKAGES = (
    Package(
        name="lvms-operator",
        kinds=(
            Kind(group="lvm.topolvm.io", version="v1alpha1", kind="LVMCluster", plural="lvmclusters", namespaced=True),
        ),
        channels=(("stable-4.21", "1.0.0"), ("stable-4.19", "1.0.0")),
        deployment="lvms-operator",
    ),
    Package(
        name="kubernetes-nmstate-operator",
        kinds=(
            Kind(group="nmstate.io", version="v1", kind="NMState", plural="nmstates", namespaced=False),
            Kind(
                group="nmstate.io",
                version="v1",
                kind="NodeNetworkConfigurationPolicy",
                plural="nodenetworkconfigurationpolicies",
                namespaced=False,
            ),
        ),
        deployment="nmstate-webhook",
    ),
    Package(
        name="fence-agents-remediation",
        kinds=(
            Kind(
                group="fence-agents-remediation.medik8s.io",
                version=_MEDIK8S,
                kind="FenceAgentsRemediationTemplate",
                plural="fenceagentsremediationtemplates",
                namespaced=True,
            ),
        ),
        deployment="fence-agents-remediation-controller-manager",
        everywhere=True,
    ),
    Package(
        name="node-healthcheck-operator",
        kinds=(
            Kind(
                group="remediation.medik8s.io",
                version=_MEDIK8S,
                kind="NodeHealthCheck",
                plural="nodehealthchecks",
                namespaced=False,
            ),
        ),
        deployment="node-healthcheck-controller-manager",
        everywhere=True,
    ),
    Package(
        name="example-operator",
        kinds=(Kind(group=EXAMPLE_GROUP, version="v1", kind="Widget", plural="widgets", namespaced=True),),
        channels=(("stable", "1.0.0"), ("next", "1.1.0")),
        deployment="example-operator",
    ),
)


def text() -> str:
    """The catalogue, one JSON document after the other."""
    return "".join(f"{json.dumps(blob)}\n" for package in PACKAGES for blob in _blobs(package))


def _blobs(package: Package) -> Iterator[Object]:
    yield {"schema": "olm.package", "name": package.name, "defaultChannel": package.channels[0][0]}
    for channel, latest in package.channels:
        entries: list[Object] = [{"name": csv_name(package, "1.0.0")}]
        if latest != "1.0.0":
            entries.append({"name": csv_name(package, latest), "replaces": csv_name(package, "1.0.0")})
        yield {"schema": "olm.channel", "package": package.name, "name": channel, "entries": entries}
    for version in sorted({"1.0.0", *(latest for _, latest in package.channels)}):
        yield {
            "schema": "olm.bundle",
            "package": package.name,
            "name": csv_name(package, version),
            "image": "",
            "properties": list(_properties(package, version)),
        }


def csv_name(package: Package, version: str) -> str:
    """What a version's ClusterServiceVersion is called."""
    return f"{package.name}.v{version}"


def _properties(package: Package, version: str) -> Iterator[Object]:
    yield {"type": "olm.package", "value": {"packageName": package.name, "version": version}}
    for kind in package.kinds:
        yield {"type": "olm.gvk", "value": {"group": kind.group, "version": kind.version, "kind": kind.kind}}
    for it in (_csv(package, version), *map(_definition, package.kinds)):
        data = base64.b64encode(json.dumps(it).encode()).decode()
        yield {"type": "olm.bundle.object", "value": {"data": data}}


def _csv(package: Package, version: str) -> Object:
    labels = {"app": package.deployment}
    pod = {"containers": [{"name": "manager", "image": f"registry.facility.test/{package.name}:v{version}"}]}
    deployment = {
        "name": package.deployment,
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }
    supported = {"OwnNamespace": not package.everywhere, "SingleNamespace": not package.everywhere}
    modes = {**supported, "MultiNamespace": False, "AllNamespaces": True}
    return {
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {"name": csv_name(package, version), "namespace": "placeholder"},
        "spec": {
            "displayName": package.name,
            "version": version,
            **({"replaces": csv_name(package, "1.0.0")} if version != "1.0.0" else {}),
            "installModes": [{"type": name, "supported": so} for name, so in modes.items()],
            "customresourcedefinitions": {
                "owned": [
                    {"name": f"{kind.plural}.{kind.group}", "kind": kind.kind, "version": kind.version}
                    for kind in package.kinds
                ]
            },
            "install": {"strategy": "deployment", "spec": {"deployments": [deployment]}},
        },
    }


def _definition(kind: Kind) -> Object:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    names = {"kind": kind.kind, "listKind": f"{kind.kind}List", "plural": kind.plural, "singular": kind.kind.lower()}
    version = {"name": kind.version, "served": True, "storage": True, "subresources": {"status": {}}, "schema": schema}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{kind.group}"},
        "spec": {
            "group": kind.group,
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "names": names,
            "versions": [version],
        },
    }
