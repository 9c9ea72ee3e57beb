"""Manifests of the user's that the installer takes in beside its own: read, and checked before anything is declared.

The installer takes what lies in `openshift/` of its directory as it is (openshift/installer, pkg/asset/manifests/
openshift.go). The bootstrap machine hands all of it to the machine config programs, which end at a file that is no YAML
(machine-config-operator, pkg/controller/bootstrap/bootstrap.go), and to the new cluster's API, which is asked again and
again where it does not take an object (openshift/cluster-bootstrap, pkg/start/create.go). So what is wrong with a
manifest would be seen an hour after machines were ordered, by a bootstrap that does not end.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

import yaml

ENDINGS = (".yaml", ".yml", ".json")
"""Of files that the installer takes in."""
_BUTANE = (".bu", ".butane")
_LARGEST = 1 << 20
"""Bytes of a manifest: the API takes no larger object (etcd's limit is 1.5 MiB)."""
_FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,200}")
_API_VERSION = re.compile(r"([a-z0-9.-]+/)?v[0-9][a-z0-9]*")
_NAME = re.compile(r"(?=.{1,253}$)[A-Za-z0-9]([A-Za-z0-9.:_-]*[A-Za-z0-9])?")
OTHER_KIND = r"(?P<version>[a-z0-9.-]+/v[0-9][a-z0-9]*)/(?P<kind>[A-Z][A-Za-z0-9]*)"
"""How a kind is given that is known to the user: group, version and kind."""
_THEIRS = re.compile(r"default|(kube|openshift)(-.+)?")
"""Namespaces that Kubernetes and OpenShift make, or keep for themselves."""
_ROLE = "machineconfiguration.openshift.io/role"
_IGNITION = re.compile(r"2\.2\.0|3\.[0-5]\.0")
"""Versions that OpenShift 4.19's machine config operator takes (pkg/controller/common/helpers.go, IgnParseWrapper)."""
_SOURCE = re.compile(r"(data:|https?://|s3://|gs://|arn:|tftp://).*", re.DOTALL)
_UNITS = (".service", ".socket", ".mount", ".automount", ".target", ".timer", ".path", ".slice", ".swap", ".device")
_MACHINES = re.compile(r"99_openshift-(machineconfig|cluster-api|machine-api)_.*")
"""Files that the installer reads as those of its machines (pkg/asset/machines/master.go)."""
OWN_FILES = frozenset(
    {
        *("cluster-config.yaml", "cluster-dns-02-config.yml", "cluster-infrastructure-02-config.yml"),
        *("cluster-ingress-02-config.yml", "cluster-network-02-config.yml", "cluster-proxy-01-config.yaml"),
        *("cluster-scheduler-02-config.yml", "cvo-overrides.yaml", "kube-cloud-config.yaml"),
        *("kube-system-configmap-root-ca.yaml", "machine-config-server-ca-configmap.yaml"),
        *("machine-config-server-ca-secret.yaml", "machine-config-server-tls-secret.yaml"),
        *("openshift-config-secret-pull-secret.yaml", "99_feature-gate.yaml", "99_kubeadmin-password-secret.yaml"),
        "openshift-install-manifests.yaml",
    }
)
"""The installer's own files; bootkube puts them and the user's into one directory."""
OWN_OBJECTS = frozenset(
    {
        ("ConfigMap", "kube-system", "cluster-config-v1"),
        ("DNS", "", "cluster"),
        ("Infrastructure", "", "cluster"),
        ("Ingress", "", "cluster"),
        ("Network", "", "cluster"),
        ("Proxy", "", "cluster"),
        ("Scheduler", "", "cluster"),
        ("ClusterVersion", "openshift-cluster-version", "version"),
        ("Secret", "kube-system", "kube-cloud-cfg"),
        ("ConfigMap", "kube-system", "root-ca"),
        ("ConfigMap", "openshift-machine-config-operator", "machine-config-server-ca"),
        ("Secret", "openshift-machine-config-operator", "machine-config-server-ca"),
        ("Secret", "openshift-machine-config-operator", "machine-config-server-tls"),
        ("Secret", "openshift-config", "pull-secret"),
        ("FeatureGate", "", "cluster"),
        ("Secret", "kube-system", "kubeadmin"),
        ("ConfigMap", "openshift-config", "openshift-install-manifests"),
        ("Secret", "openshift-machine-api", "master-user-data"),
        ("Secret", "openshift-machine-api", "worker-user-data"),
        ("MachineConfig", "", "99-master-ssh"),
        ("MachineConfig", "", "99-worker-ssh"),
    }
)
"""The installer's own objects: kind, namespace and name. Of two that are the same, the API keeps the first."""


class ManifestsError(ValueError):
    """Manifests that no installation may begin with; `problems` has each with file, line, cause and remedy."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        count = "1 problem" if len(self.problems) == 1 else f"{len(self.problems)} problems"
        lines = [f"  {number}. {problem}" for number, problem in enumerate(self.problems, start=1)]
        super().__init__("\n".join((f"the manifests of install.manifests have {count}; nothing was changed", *lines)))


@dataclass(frozen=True, kw_only=True)
class _Object:
    where: str
    tree: Mapping[str, Any]

    @property
    def version(self) -> str:
        return str(self.tree.get("apiVersion"))

    @property
    def kind(self) -> str:
        return str(self.tree.get("kind"))

    @property
    def metadata(self) -> Mapping[str, Any]:
        return _mapping(self.tree.get("metadata"))

    @property
    def identity(self) -> tuple[str, str, str]:
        return self.kind, str(self.metadata.get("namespace") or ""), str(self.metadata.get("name"))


class _Loader(yaml.SafeLoader):
    """Keeps what Kubernetes keeps as text, and refuses a key that stands twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set[str]()
        for key, _ in node.value:
            name = str(key.value)
            if name in seen and key.tag != "tag:yaml.org,2002:merge":
                raise yaml.constructor.ConstructorError(None, None, f"the key {name!r} stands twice", key.start_mark)
            seen.add(name)
        return super().construct_mapping(node, deep)


def _text(loader: _Loader, node: yaml.Node) -> str:
    return str(node.value)


for _tag in ("value", "timestamp"):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_tag}", _text)


@cache
def known_kinds() -> dict[str, dict[str, bool]]:
    """Kinds of objects by API version, and whether they are in namespaces: those of Kubernetes and of OpenShift."""
    return cast("dict[str, dict[str, bool]]", json.loads(Path(__file__).with_name("kinds.json").read_text()))


def read(folders: Mapping[str, Path], other_kinds: Iterable[str] = ()) -> dict[str, str]:
    """The manifests in folders, by file name. Raises ManifestsError with all that is wrong.

    Args:
        folders: where to look, by the name that messages have for it. Files whose name begins with a dot, and Markdown
            (*.md), are for people, and left alone.
        other_kinds: kinds that are known here without being Kubernetes' or OpenShift's: `group/version/Kind`.
    """
    problems, texts, origins = list[str](), dict[str, str](), dict[str, str]()
    for told, folder in folders.items():
        for found in _files(told, folder):
            if isinstance(found, str):
                problems.append(found)
                continue
            where, name = f"{told}/{found.name}", found.name
            if name in texts:
                problems.append(f"{where}: {origins[name]} has the same name -> rename one: all end in one directory")
                continue
            try:
                texts[name], origins[name] = found.read_text(), where
            except (OSError, UnicodeDecodeError) as error:
                problems.append(f"{where}: it cannot be read as UTF-8 text: {error} -> correct the file")
    objects = list[_Object]()
    for name, text in texts.items():
        objects += _objects(origins[name], text, problems)
    kinds = _kinds(objects, other_kinds)
    problems += [*_wrong(objects, kinds), *_without_namespace(objects, kinds)]
    if problems:
        raise ManifestsError(problems)
    return texts


def identities(text: str) -> set[tuple[str, str, str]]:
    """Kind, namespace and name of the objects in a manifest of the installer's."""
    trees = cast("Iterable[Any]", yaml.load_all(text, _Loader))
    return {_Object(where="", tree=cast("dict[str, Any]", tree)).identity for tree in trees if isinstance(tree, dict)}


def _files(told: str, folder: Path) -> Iterator[Path | str]:
    """Files, or what is wrong with them."""
    try:
        found = sorted(path for path in folder.iterdir() if not path.name.startswith(".") and path.suffix != ".md")
    except OSError as error:
        yield f"{told}: {error.strerror} -> name a directory, relative to the project, with the manifests in it"
        return
    if not found:
        yield f"{told}: there is nothing in it -> put manifests there (*.yaml, *.yml, *.json), or name it no more"
    for path in found:
        where = f"{told}/{path.name}"
        if path.suffix in _BUTANE:
            yield f"{where}: Butane is not translated here -> `butane {path.name} > {path.stem}.yaml`, and take it out"
        elif path.is_dir() or path.suffix not in ENDINGS:
            what = "a directory" if path.is_dir() else f"none of {', '.join(ENDINGS)}"
            yield f"{where}: it is {what}, and the installer would leave it out -> rename it, or take it out"
        elif not _FILE.fullmatch(path.name):
            yield f"{where}: it is no name for a manifest -> use letters, digits, '.', '_' and '-'"
        elif path.name in OWN_FILES or _MACHINES.fullmatch(path.name):
            yield f"{where}: the installer has a file of this name, which it would take the place of -> rename it"
        elif path.stat().st_size > _LARGEST:
            yield f"{where}: it has more than {_LARGEST >> 20} MiB, and the API takes no such object -> divide it"
        else:
            yield path


def _objects(where: str, text: str, problems: list[str]) -> list[_Object]:
    found = list[_Object]()
    loader = _Loader(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            assert node is not None, "there is one"
            line = f"{where}:{node.start_mark.line + 1}"
            tree: Any = loader.construct_document(node)
            if tree is None:
                continue
            if not isinstance(tree, dict):
                problems.append(f"{line}: it is no object -> give apiVersion, kind and metadata.name")
                continue
            found.append(_Object(where=line, tree=cast("dict[str, Any]", tree)))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problems.append(f"{where}:{mark.line + 1 if mark else 1}: {error.problem or error} -> correct the YAML there")
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        problems.append(f"{where}: {' '.join(str(error).split())} -> correct the YAML")
    finally:
        loader.dispose()
    if not found and not any(each.startswith(f"{where}:") for each in problems):
        problems.append(f"{where}: no object is in it -> take it out")
    return found


def _kinds(objects: Iterable[_Object], others: Iterable[str]) -> dict[str, dict[str, bool | None]]:
    """All that are known: also those that a manifest defines, and those of which the user says that they are."""
    kinds: dict[str, dict[str, bool | None]] = {version: {**found} for version, found in known_kinds().items()}
    for other in others:
        if found := re.fullmatch(OTHER_KIND, other):
            kinds.setdefault(found["version"], {})[found["kind"]] = None
    for each in objects:
        if each.kind == "CustomResourceDefinition":
            spec = _mapping(each.tree.get("spec"))
            kind, is_namespaced = str(_mapping(spec.get("names")).get("kind")), spec.get("scope") == "Namespaced"
            for version in spec.get("versions") or ():
                kinds.setdefault(f"{spec.get('group')}/{_mapping(version).get('name')}", {})[kind] = is_namespaced
    return kinds


def _wrong(objects: Iterable[_Object], kinds: Mapping[str, Mapping[str, bool | None]]) -> Iterator[str]:
    seen: dict[tuple[str, ...], str] = {}
    for each in objects:
        found = list(_wrong_with(each, kinds))
        if not found:
            group = each.version.rpartition("/")[0]
            if each.identity in OWN_OBJECTS and (group == "" or group.endswith(".openshift.io")):
                found = [f"the installer makes {_named(each)} itself -> change it by the settings, or after installing"]
            elif (group, *each.identity) in seen:
                first = seen[group, *each.identity]
                found = [f"{_named(each)} is in {first}, too -> take one out"]
            else:
                seen[group, *each.identity] = each.where
        yield from (f"{each.where}: {problem}" for problem in found)


def _without_namespace(objects: Iterable[_Object], kinds: Mapping[str, Mapping[str, bool | None]]) -> Iterator[str]:
    """The API takes nothing for a namespace that is not there, and nobody would make it."""
    ours = {str(each.metadata.get("name")) for each in objects if each.kind in ("Namespace", "Project")}
    for each in objects:
        namespace, is_namespaced = each.metadata.get("namespace"), kinds.get(each.version, {}).get(each.kind, False)
        if is_namespaced is False or not isinstance(namespace, str):
            continue
        if not (_THEIRS.fullmatch(namespace) or namespace in ours):
            yield f"{each.where}: nothing makes the namespace {namespace} -> add a Namespace of that name"


def _named(each: _Object) -> str:
    kind, namespace, name = each.identity
    return f"{kind} {f'{namespace}/' if namespace else ''}{name}"


def _wrong_with(each: _Object, kinds: Mapping[str, Mapping[str, bool | None]]) -> Iterator[str]:
    version, kind, metadata = each.version, each.kind, each.metadata
    if not isinstance(each.tree.get("apiVersion"), str) or not _API_VERSION.fullmatch(version):
        yield f"apiVersion is {_shown(each.tree.get('apiVersion'))} -> give group and version, e.g. apps/v1, or v1"
        return
    if not isinstance(each.tree.get("kind"), str) or not kind:
        yield f"kind is {_shown(each.tree.get('kind'))} -> give the kind of object, e.g. ConfigMap"
        return
    if kind.endswith("List") and "items" in each.tree:
        yield "it is a list, which is taken in as a whole -> write its objects one after the other, with --- between"
        return
    is_namespaced = kinds.get(version, {}).get(kind)
    if kind not in kinds.get(version, {}):
        yield _unknown(version, kind, kinds)
        return
    name, namespace = metadata.get("name"), metadata.get("namespace")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        yield f"metadata.name is {_shown(name)} -> give the object's name"
    if is_namespaced and (not isinstance(namespace, str) or not _NAME.fullmatch(namespace)):
        yield f"metadata.namespace is {_shown(namespace)}, and a {kind} is in a namespace -> name it"
    if is_namespaced is False and namespace is not None and kind != "ClusterVersion":
        yield f"metadata.namespace is {_shown(namespace)}, and a {kind} is in none -> take the line out"
    if kind == "MachineConfig":
        yield from _wrong_with_machine_config(each)


def _unknown(version: str, kind: str, kinds: Mapping[str, Mapping[str, Any]]) -> str:
    versions = sorted(known for known, those in kinds.items() if kind in those)
    if versions:
        return f"{version} has no kind {kind}; {', '.join(versions)} has it -> correct apiVersion"
    remedy = "correct it; or put its CustomResourceDefinition among the manifests"
    if "/" in version:
        remedy += f"; or, where an operator of the cluster brings it, add {version}/{kind} to install.otherKinds"
    return f"{kind} of {version} is no kind of Kubernetes' or OpenShift's -> {remedy}"


def _wrong_with_machine_config(each: _Object) -> Iterator[str]:
    role = _mapping(each.metadata.get("labels")).get(_ROLE)
    if not isinstance(role, str) or not role:
        yield f"it has no label {_ROLE}, and would be part of no machine's configuration -> set it to master or worker"
    config = _mapping(_mapping(each.tree.get("spec")).get("config"))
    if not config:
        return
    version = _mapping(config.get("ignition")).get("version")
    if not isinstance(version, str) or not _IGNITION.fullmatch(version):
        yield (
            f"spec.config.ignition.version is {_shown(version)} -> give one that the machine config operator takes,"
            " e.g. 3.4.0"
        )
    storage = _mapping(config.get("storage"))
    for number, file in enumerate(storage.get("files") or ()):
        yield from _wrong_with_file(f"spec.config.storage.files[{number}]", _mapping(file))
    for number, unit in enumerate(_mapping(config.get("systemd")).get("units") or ()):
        name = _mapping(unit).get("name")
        if not isinstance(name, str) or not name.endswith(_UNITS):
            at = f"spec.config.systemd.units[{number}].name"
            yield f"{at} is {_shown(name)} -> give the unit's name with its ending, e.g. site.service"


def _wrong_with_file(at: str, file: Mapping[str, Any]) -> Iterator[str]:
    path, contents, mode = file.get("path"), _mapping(file.get("contents")), file.get("mode")
    if not isinstance(path, str) or not path.startswith("/"):
        yield f"{at}.path is {_shown(path)} -> give an absolute path"
    source = contents.get("source")
    if "inline" in contents:
        yield f"{at}.contents.inline is Butane's -> give contents.source, e.g. data:,text; or translate it with butane"
    elif source is not None and not (isinstance(source, str) and _SOURCE.fullmatch(source)):
        yield f"{at}.contents.source is {_shown(source)} -> give a URL, e.g. data:;base64,..."
    if mode is not None and (not isinstance(mode, int) or isinstance(mode, bool) or not 0 <= mode <= 0o7777):
        yield f"{at}.mode is {_shown(mode)} -> give a number; in JSON decimal: 420 for 0644"


def _shown(value: object) -> str:
    text = "missing" if value is None else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
