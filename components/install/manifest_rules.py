"""Checks of manifests that need no cluster: identity, kind, namespace, and what Ignition would refuse.

Kinds and namespaces are those of Kubernetes and OpenShift. OpenShift's installer also has objects of its own.
"""

from __future__ import annotations

import base64
import json
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, cast
from urllib.parse import unquote

Kinds = Mapping[str, Mapping[str, bool | None]]
"""API version → kind → whether its objects are in namespaces; None: unknown."""
OTHER_KIND = r"(?P<version>[a-z0-9.-]+/v[0-9][a-z0-9]*)/(?P<kind>[A-Z][A-Za-z0-9]*)"
"""The form in which users name further kinds: group/version/Kind."""
_API_VERSION = re.compile(r"([a-z0-9.-]+/)?v[0-9][a-z0-9]*")
_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
NAME = re.compile(rf"(?=.{{1,253}}$){_LABEL}(\.{_LABEL})*")
"""The form of most kinds' names: a DNS subdomain (apimachinery, IsDNS1123Subdomain)."""
_FREE_NAME = re.compile(r"(?!\.{1,2}$)[^/%\s]{1,253}")
_FREELY_NAMED = frozenset(
    f"{group}.{end}"
    for group, end in (
        *(("rbac.authorization", "k8s.io"), ("authorization", "openshift.io"), ("user", "openshift.io")),
        *(("oauth", "openshift.io"), ("image", "openshift.io")),
    )
)
"""API groups that accept any name that is valid in a path (apimachinery, pkg/api/validation/path)."""
_OPENSHIFT = (
    *("apiserver", "apiserver-operator", "authentication", "authentication-operator", "catalogd"),
    *("cloud-controller-manager", "cloud-controller-manager-operator", "cloud-credential-operator"),
    *("cloud-network-config-controller", "cloud-platform-infra", "cluster-csi-drivers", "cluster-machine-approver"),
    *("cluster-node-tuning-operator", "cluster-olm-operator", "cluster-samples-operator", "cluster-storage-operator"),
    *("cluster-version", "config", "config-managed", "config-operator", "console", "console-operator"),
    *("console-user-settings", "controller-manager", "controller-manager-operator", "dns", "dns-operator", "etcd"),
    *("etcd-operator", "host-network", "image-registry", "infra", "ingress", "ingress-canary", "ingress-operator"),
    *("insights", "kni-infra", "kube-apiserver", "kube-apiserver-operator", "kube-controller-manager"),
    *("kube-controller-manager-operator", "kube-scheduler", "kube-scheduler-operator"),
    *("kube-storage-version-migrator", "kube-storage-version-migrator-operator", "machine-api"),
    *("machine-config-operator", "marketplace", "monitoring", "multus", "network-console", "network-diagnostics"),
    *("network-node-identity", "network-operator", "node", "nutanix-infra", "oauth-apiserver", "openstack-infra"),
    *("operator-controller", "operator-lifecycle-manager", "operators", "ovirt-infra", "ovn-kubernetes"),
    *("route-controller-manager", "service-ca", "service-ca-operator", "user-workload-monitoring", "vsphere-infra"),
)
CLUSTER_NAMESPACES = frozenset(
    {
        *("default", "kube-system", "kube-public", "kube-node-lease", "openshift"),
        *(f"openshift-{name}" for name in _OPENSHIFT),
    }
)
"""Namespaces that every cluster has. The list was written by hand, and not compared with a release image. Creating one
of them again does no harm: cluster-bootstrap keeps what exists (library-go, pkg/assets/create/creater.go)."""
_ROLE = "machineconfiguration.openshift.io/role"
_KERNELS = ("", "default", "realtime", "64k-pages")
_IGNITION = re.compile(r"2\.2\.0|3\.[0-5]\.0")
"""Versions that OpenShift 4.19's machine config operator accepts (pkg/controller/common/helpers.go,
IgnParseWrapper)."""
_SOURCE = re.compile(r"(data:|https?://|s3://|gs://|arn:|tftp://).*", re.DOTALL)
_UNITS = (
    *(".service", ".socket", ".mount", ".automount", ".target", ".timer", ".path", ".slice", ".swap", ".device"),
    *(".scope", ".snapshot"),
)
OWN_OBJECTS = frozenset(
    {
        ("", "ConfigMap", "kube-system", "cluster-config-v1"),
        ("", "ConfigMap", "kube-system", "root-ca"),
        ("", "ConfigMap", "openshift-config", "openshift-install-manifests"),
        ("", "ConfigMap", "openshift-machine-config-operator", "machine-config-server-ca"),
        ("", "Secret", "kube-system", "kube-cloud-cfg"),
        ("", "Secret", "kube-system", "kubeadmin"),
        ("", "Secret", "openshift-config", "pull-secret"),
        ("", "Secret", "openshift-machine-api", "master-user-data"),
        ("", "Secret", "openshift-machine-api", "worker-user-data"),
        ("", "Secret", "openshift-machine-config-operator", "machine-config-server-ca"),
        ("", "Secret", "openshift-machine-config-operator", "machine-config-server-tls"),
        *(
            ("config.openshift.io", kind, "", "cluster")
            for kind in ("DNS", "FeatureGate", "Infrastructure", "Ingress", "Network", "Proxy", "Scheduler")
        ),
        ("config.openshift.io", "ClusterVersion", "openshift-cluster-version", "version"),
        ("machineconfiguration.openshift.io", "MachineConfig", "", "99-master-ssh"),
        ("machineconfiguration.openshift.io", "MachineConfig", "", "99-worker-ssh"),
    }
)
"""The installer's own objects: group, kind, namespace and name. If two objects have the same identity, the API keeps
the first."""


def identity(tree: Mapping[str, Any]) -> tuple[str, str, str, str]:
    """An object's group, kind, namespace and name."""
    metadata = mapping(tree.get("metadata"))
    group = str(tree.get("apiVersion")).rpartition("/")[0]
    return group, str(tree.get("kind")), str(metadata.get("namespace") or ""), str(metadata.get("name"))


class WrongObjects(ValueError):
    """Objects that are refused before anything is changed; `problems` lists everything that is wrong with them."""

    subject: ClassVar[str]
    """The subject of the error message."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        count = "1 problem" if len(self.problems) == 1 else f"{len(self.problems)} problems"
        lines = [f"  {number}. {problem}" for number, problem in enumerate(self.problems, start=1)]
        super().__init__("\n".join((f"{self.subject} have {count}; nothing was changed", *lines)))


@dataclass(frozen=True, kw_only=True)
class Object:
    """One object of a manifest."""

    where: str
    """File and line, for messages."""
    tree: Mapping[str, Any]

    @property
    def version(self) -> str:
        """Its apiVersion."""
        return str(self.tree.get("apiVersion"))

    @property
    def kind(self) -> str:
        """Its kind."""
        return str(self.tree.get("kind"))

    @property
    def metadata(self) -> Mapping[str, Any]:
        """Its metadata; empty if it is not a mapping."""
        return mapping(self.tree.get("metadata"))


@cache
def known_kinds() -> dict[str, dict[str, bool]]:
    """API version → kind → whether its objects are in namespaces; kinds of Kubernetes and OpenShift."""
    return cast("dict[str, dict[str, bool]]", json.loads(Path(__file__).with_name("kinds.json").read_text()))


def wrong(objects: Iterable[Object], other_kinds: Iterable[str] = ()) -> Iterator[str]:
    """Find problems of objects, each with file and line, cause and what to do.

    `other_kinds` are accepted as well, in the form `group/version/Kind`.
    """
    objects = list(objects)
    kinds = _kinds(objects, other_kinds)
    made = {str(each.metadata.get("name")) for each in objects if each.kind == "Namespace"}
    seen: dict[tuple[str, ...], str] = {}
    for each in objects:
        found = list(_of_object(each, kinds, made))
        if not found:
            named = identity(each.tree)
            if named in OWN_OBJECTS:
                refusal = f"the installer makes {object_text(named)} itself"
                found = [f"{refusal} -> change it by settings, or after the installation"]
            elif named in seen:
                found = [f"{object_text(named)} is in {seen[named]}, too -> remove one"]
            seen.setdefault(named, each.where)
        yield from (f"{each.where}: {problem}" for problem in found)


def object_text(named: tuple[str, str, str, str]) -> str:
    """An object's identity, for messages."""
    _, kind, namespace, name = named
    return f"{kind} {f'{namespace}/' if namespace else ''}{name}"


def _kinds(objects: Iterable[Object], others: Iterable[str]) -> Kinds:
    """All known kinds, including those that a manifest defines and those that the user names."""
    kinds: dict[str, dict[str, bool | None]] = {version: {**found} for version, found in known_kinds().items()}
    for other in others:
        if found := re.fullmatch(OTHER_KIND, other):
            kinds.setdefault(found["version"], {})[found["kind"]] = None
    for each in objects:
        if each.kind == "CustomResourceDefinition":
            spec = mapping(each.tree.get("spec"))
            kind, is_namespaced = str(mapping(spec.get("names")).get("kind")), spec.get("scope") == "Namespaced"
            for version in _list(spec.get("versions")):
                kinds.setdefault(f"{spec.get('group')}/{mapping(version).get('name')}", {})[kind] = is_namespaced
    return kinds


def _of_object(each: Object, kinds: Kinds, made: set[str]) -> Iterator[str]:
    version, kind, metadata = each.version, each.kind, each.metadata
    if not isinstance(each.tree.get("apiVersion"), str) or not _API_VERSION.fullmatch(version):
        yield f"apiVersion is {_shown(each.tree.get('apiVersion'))} -> give group and version, e.g. apps/v1, or v1"
        return
    if not isinstance(each.tree.get("kind"), str) or not kind:
        yield f"kind is {_shown(each.tree.get('kind'))} -> give the kind of object, e.g. ConfigMap"
        return
    if kind.endswith("List") and "items" in each.tree:
        yield "it is a list, which the installer takes as one object -> write its objects one by one, separated by ---"
        return
    if kind not in kinds.get(version, {}):
        yield _unknown(version, kind, kinds)
        return
    name = metadata.get("name")
    form = _FREE_NAME if version.rpartition("/")[0] in _FREELY_NAMED else NAME
    if not isinstance(name, str) or not form.fullmatch(name):
        yield f"metadata.name is {_shown(name)} -> give the object's name, of a-z, 0-9, '-' and '.'"
    if kinds[version][kind] is not False:
        yield from _of_namespace(kind, metadata.get("namespace"), made, needed=kinds[version][kind] is True)
    if kind == "MachineConfig":
        yield from _of_machine_config(each)


def _of_namespace(kind: str, namespace: object, made: set[str], *, needed: bool) -> Iterator[str]:
    """Check that the namespace exists: the API refuses objects of a missing namespace, and nothing would create it."""
    if namespace is None and not needed:
        return
    if not isinstance(namespace, str) or not NAME.fullmatch(namespace):
        yield f"metadata.namespace is {_shown(namespace)} -> give the namespace of the {kind}"
    elif namespace not in CLUSTER_NAMESPACES and namespace not in made:
        yield f"no manifest makes the namespace {namespace} -> add a Namespace of that name to the manifests"


def _unknown(version: str, kind: str, kinds: Kinds) -> str:
    by_hand = f"add {version}/{kind} to install.otherKinds" if "/" in version else ""
    versions = sorted(known for known, those in kinds.items() if kind in those)
    if versions:
        also = f"; or, if the release has it, {by_hand}" if by_hand else ""
        return f"there is no kind {kind} of {version}, only of {', '.join(versions)} -> correct apiVersion{also}"
    remedy = "correct it; or put its CustomResourceDefinition among the manifests"
    if by_hand:
        remedy += f"; or, if an operator of the cluster defines it, {by_hand}"
    return f"{kind} of {version} is not a kind of Kubernetes' or OpenShift's -> {remedy}"


def _of_machine_config(each: Object) -> Iterator[str]:
    role = mapping(each.metadata.get("labels")).get(_ROLE)
    if not isinstance(role, str) or not role:
        yield (
            f"it has no label {_ROLE}, so it would be in no machine's configuration -> set it to the pool's role,"
            " e.g. master or worker"
        )
    spec = each.tree.get("spec")
    if not isinstance(spec, dict | None):
        yield f"spec is {_shown(spec)} -> give an object"
        return
    kernel = mapping(spec).get("kernelType", "")
    if kernel not in _KERNELS:
        yield f"spec.kernelType is {_shown(kernel)} -> give one of: {', '.join(filter(None, _KERNELS))}"
    config = mapping(spec).get("config")
    if config is None:
        return
    for at, value, kind in (
        ("", config, dict),
        (".storage", mapping(config).get("storage"), dict),
        (".storage.files", mapping(mapping(config).get("storage")).get("files"), list),
        (".systemd", mapping(config).get("systemd"), dict),
        (".systemd.units", mapping(mapping(config).get("systemd")).get("units"), list),
    ):
        if value is not None and not isinstance(value, kind):
            yield f"spec.config{at} is {_shown(value)} -> give {'an object' if kind is dict else 'a list'}"
    yield from _of_ignition(mapping(config))


def _of_ignition(config: Mapping[str, Any]) -> Iterator[str]:
    version = mapping(config.get("ignition")).get("version")
    if not isinstance(version, str) or not _IGNITION.fullmatch(version):
        yield (
            f"spec.config.ignition.version is {_shown(version)} -> give one that the machine config operator "
            "supports, e.g. 3.4.0"
        )
    paths = set[str]()
    for number, file in enumerate(_list(mapping(config.get("storage")).get("files"))):
        at = f"spec.config.storage.files[{number}]"
        yield from _of_file(at, mapping(file))
        path = str(mapping(file).get("path"))
        if path in paths:
            yield f"{at}.path is {_shown(path)}, as that of another file -> remove one"
        paths.add(path)
    for number, unit in enumerate(_list(mapping(config.get("systemd")).get("units"))):
        name, at = mapping(unit).get("name"), f"spec.config.systemd.units[{number}]"
        if not isinstance(name, str) or not name.endswith(_UNITS):
            yield f"{at}.name is {_shown(name)} -> give the unit's name with its ending, e.g. site.service"
        for drop_in in _list(mapping(unit).get("dropins")):
            its = mapping(drop_in).get("name")
            if not isinstance(its, str) or not its.endswith(".conf"):
                yield f"{at}.dropins: the name {_shown(its)} -> give one that ends in .conf"


def _of_file(at: str, file: Mapping[str, Any]) -> Iterator[str]:
    path, contents, mode = file.get("path"), mapping(file.get("contents")), file.get("mode")
    if not isinstance(path, str) or not path.startswith("/") or posixpath.normpath(path) != path:
        yield f"{at}.path is {_shown(path)} -> give an absolute path, without '..' and without double slashes"
    source = contents.get("source")
    if "inline" in contents:
        yield f"{at}.contents.inline is Butane's -> give contents.source, e.g. data:,text; or translate it with butane"
    elif source is not None and source != "" and not _is_source(source):
        # Do not show the value: it may be the file's content, and secret.
        yield f"{at}.contents.source is not a URL that Ignition reads -> give one, e.g. data:;base64,aGVsbG8="
    if mode is not None and (not isinstance(mode, int) or isinstance(mode, bool) or not 0 <= mode <= 0o7777):
        yield f"{at}.mode is {_shown(mode)} -> give a number; in JSON decimal: 420 for 0644"


def _is_source(source: object) -> bool:
    if not isinstance(source, str) or not _SOURCE.fullmatch(source):
        return False
    head, comma, data = source.partition(",")
    if not source.startswith("data:"):
        return True
    try:
        if head.endswith(";base64"):
            base64.b64decode(unquote(data), validate=True)
    except ValueError:
        return False
    return bool(comma)


def _shown(value: object) -> str:
    text = "missing" if value is None else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def mapping(value: object) -> Mapping[str, Any]:
    """The value if it is a mapping, otherwise an empty mapping."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []
