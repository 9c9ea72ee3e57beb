"""The user's manifests, which the installer adds to its own: read, and checked before any resource is declared.

The installer takes the files in `openshift/` of its directory unchanged (openshift/installer, pkg/asset/manifests/
openshift.go). The bootstrap machine gives all of them to the machine config programs, which fail at a file that is not
YAML (machine-config-operator, pkg/controller/bootstrap/bootstrap.go), and to cluster-bootstrap. That creates one object
from each file, and retries without end if the API refuses one (openshift/library-go, pkg/assets/create/creater.go). So
without these checks a wrong manifest would be noticed an hour after machines were ordered, by a bootstrap that never
completes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import yaml

from metal_ipi.components.install import butane
from metal_ipi.components.install.manifest_rules import Object, WrongObjects, identity, wrong

ENDINGS = (".yaml", ".yml", ".json")
"""Endings of files that the installer reads."""
_LARGEST = 1 << 20
"""Largest manifest in bytes; the API accepts no larger object (etcd's limit is 1.5 MiB)."""
_FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,200}")
_MACHINES = re.compile(r"99_openshift-(machineconfig|cluster-api|machine-api)_.*")
"""Names of files that the installer reads as manifests of its machines (pkg/asset/machines/master.go)."""
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
"""The installer's own files. bootkube copies them and the user's files into one directory."""


class ManifestsError(WrongObjects):
    """Manifests with which no installation may start; `problems` lists each with file, line, cause and what to do."""

    subject = "the manifests of install.manifests"


class _Loader(yaml.SafeLoader):
    """A YAML loader that, like Kubernetes, keeps timestamps and `=` as text."""


def _text(loader: _Loader, node: yaml.Node) -> str:
    return str(node.value)


for _tag in ("value", "timestamp"):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_tag}", _text)


def read(
    folders: Mapping[str, Path],
    other_kinds: Iterable[str] = (),
    *,
    made: Mapping[str, str] | None = None,
    program: str = "butane",
) -> dict[str, str]:
    """Read the manifests in folders; returns their texts by file name. Raises ManifestsError with all problems.

    A file with one object is kept as it is. A file with several is split, `<name>-1.yaml` and so on, because
    cluster-bootstrap creates only the first object of a file. A Butane file becomes `<name>.yaml`.

    Args:
        folders: directories, by the name that messages use. Files whose name begins with a dot, and Markdown files
            (*.md), are ignored.
        other_kinds: further accepted kinds besides those of Kubernetes and OpenShift: `group/version/Kind`.
        made: manifests made from settings, one object each; those of the folders are added to them.
        program: butane, by name on PATH or by path.
    """
    problems, texts = list[str](), dict(made or {})
    origins = dict.fromkeys(texts, "machineConfig")
    objects = [Object(where=f"machineConfig ({name})", tree=yaml.safe_load(text)) for name, text in texts.items()]
    for told, folder in folders.items():
        for found in _files(told, folder):
            if isinstance(found, str):
                problems.append(found)
                continue
            where = f"{told}/{found.name}"
            try:
                text = found.read_bytes().decode()
                if found.suffix in butane.ENDINGS:
                    text, where = butane.translate(program, found, where), f"{where}, translated"
            except (OSError, UnicodeDecodeError) as error:
                problems.append(f"{where}: it cannot be read as UTF-8 text: {error} -> correct the file")
                continue
            except butane.ButaneError as error:
                problems += error.problems
                continue
            parts = list(documents(where, text, problems))
            for name, (document, it) in zip(_names(found, len(parts)), parts, strict=True):
                if name in texts:
                    problems.append(
                        f"{where}: {origins[name]} gives {name}, too -> rename one: all files are put into one "
                        "directory"
                    )
                    continue
                texts[name], origins[name] = document, where
                objects.append(it)
    problems += wrong(objects, other_kinds)
    if problems:
        raise ManifestsError(problems)
    return texts


def identities(text: str) -> set[tuple[str, str, str, str]]:
    """The identities (group, kind, namespace, name) of all objects in one of the installer's manifests."""
    trees = cast("Iterable[Any]", yaml.load_all(text, _Loader))
    return {identity(cast("dict[str, Any]", tree)) for tree in trees if isinstance(tree, dict)}


def _files(told: str, folder: Path) -> Iterator[Path | str]:
    """The files of a folder to read, and a message for each file that is refused."""
    try:
        found = sorted(path for path in folder.iterdir() if not path.name.startswith(".") and path.suffix != ".md")
        if any(path.suffix in butane.ENDINGS for path in found):
            found = [path for path in found if path.name != butane.FOLDER or not path.is_dir()]
    except OSError as error:
        yield f"{told}: {error.strerror} -> name a directory, relative to the project, with the manifests in it"
        return
    if not found:
        yield f"{told}: it is empty -> put manifests there (*.yaml, *.yml, *.json, *.bu), or remove it from the list"
    for path in found:
        where = f"{told}/{path.name}"
        if path.is_dir() or path.suffix not in (*ENDINGS, *butane.ENDINGS):
            what = "a directory" if path.is_dir() else f"none of {', '.join((*ENDINGS, *butane.ENDINGS))}"
            yield f"{where}: it is {what}, and the installer would ignore it -> rename it, or remove it"
        elif not _FILE.fullmatch(path.name):
            yield f"{where}: it is not a name for a manifest -> use letters, digits, '.', '_' and '-'"
        elif path.with_suffix(
            ".yaml" if path.suffix in butane.ENDINGS else path.suffix
        ).name in OWN_FILES or _MACHINES.fullmatch(path.name):
            yield f"{where}: the installer has a file of this name, which yours would replace -> rename it"
        elif path.exists() and path.stat().st_size > _LARGEST:
            yield f"{where}: it has more than {_LARGEST >> 20} MiB, and the API accepts no such object -> divide it"
        else:
            yield path


def _names(path: Path, count: int) -> list[str]:
    ending = ".yaml" if path.suffix in butane.ENDINGS else path.suffix
    return [f"{path.stem}{f'-{number}' if count > 1 else ''}{ending}" for number in range(1, count + 1)]


def documents(where: str, text: str, problems: list[str]) -> Iterator[tuple[str, Object]]:
    """The text and the parsed object of each document in a file; problems are appended to `problems`."""
    before = len(problems)
    count = 0
    for line, document, tree in _parsed(where, text, problems):
        if not isinstance(tree, dict):
            problems.append(f"{where}:{line}: it is not an object -> give apiVersion, kind and metadata.name")
            continue
        count += 1
        yield document, Object(where=f"{where}:{line}", tree=cast("dict[str, Any]", tree))
    if not count and len(problems) == before:
        problems.append(f"{where}: it contains no object -> remove it")


def _parsed(where: str, text: str, problems: list[str]) -> list[tuple[int, str, Any]]:
    """Line, text and content of each document that is not empty. Empty if one document cannot be parsed."""
    try:
        return _of_json(text) if where.endswith(".json") else _of_yaml(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problems.append(f"{where}:{mark.line + 1 if mark else 1}: {error.problem or error} -> correct the YAML there")
    except json.JSONDecodeError as error:
        problems.append(f"{where}:{error.lineno}: {error.msg} -> correct the JSON there")
    except (yaml.YAMLError, ValueError, LookupError, RecursionError) as error:
        problems.append(f"{where}: {' '.join(str(error).split())} -> correct what is written there")
    return []


def _of_json(text: str) -> list[tuple[int, str, Any]]:
    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        tree = dict(found)
        if len(tree) < len(found):
            names = [name for name, _ in found]
            raise ValueError(f"the key {next(name for name in names if names.count(name) > 1)!r} is there twice")
        return tree

    return [(1, text, json.loads(text, object_pairs_hook=pairs))]


def _of_yaml(text: str) -> list[tuple[int, str, Any]]:
    loader = _Loader(text)
    nodes, documents, found = list[yaml.Node](), 0, list[tuple[int, str, Any]]()
    try:
        while loader.check_node():
            node = loader.get_node()
            assert node is not None, "there is one"
            documents += 1
            _refuse_doubles(node, set())
            tree: Any = loader.construct_document(node)
            if tree is not None:
                nodes.append(node)
                found.append((node.start_mark.line + 1, text, tree))
    finally:
        loader.dispose()
    if documents == 1:
        return found
    return [
        (line, text[node.start_mark.index - node.start_mark.column : node.end_mark.index].rstrip() + "\n", tree)
        for node, (line, _, tree) in zip(nodes, found, strict=True)
    ]


def _refuse_doubles(node: yaml.Node, seen: set[int]) -> None:
    """Raise ConstructorError if a mapping has a key twice: YAML would silently use the last one."""
    if id(node) in seen:  # reached through an alias
        return
    seen.add(id(node))
    if isinstance(node, yaml.MappingNode):
        names = set[str]()
        for key, value in node.value:
            name = str(key.value)
            if name in names and key.tag != "tag:yaml.org,2002:merge":
                raise yaml.constructor.ConstructorError(None, None, f"the key {name!r} is there twice", key.start_mark)
            names.add(name)
            _refuse_doubles(value, seen)
    elif isinstance(node, yaml.SequenceNode):
        for each in node.value:
            _refuse_doubles(each, seen)
