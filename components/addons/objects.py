"""Reads the custom resources that users give to operators, and checks them before any resource is declared.

The schema of a custom resource arrives with its operator. Once the operator is installed, the API server refuses an
object that does not fit its schema. This module checks what can be checked earlier.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from metal_ipi.components.install.manifest_rules import (
    NAME,
    OTHER_KIND,
    Object,
    WrongObjects,
    identity,
    known_kinds,
    mapping,
    object_text,
)
from metal_ipi.components.install.manifests import documents

_WAIT_FOR = "pulumi.com/waitFor"
_FIELDS = ("apiVersion", "kind", "metadata", "spec")
_METADATA = ("name", "namespace", "labels", "annotations")


class ObjectsError(WrongObjects):
    """Custom resources that cannot be applied; `problems` lists each with its place, its cause and what to do."""

    subject = "the objects of dayTwo"


@dataclass(frozen=True, kw_only=True)
class Given:
    """One place where custom resources of an operator are written: a file, or a manifest."""

    where: str
    """The setting they come from, as error messages name it."""
    file: Path | None = None
    manifest: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The object itself. Used when `file` is None."""
    wait_for: str | None = None
    """The condition to wait for, in the syntax of the annotation pulumi.com/waitFor; for each object of this place."""


def read(given: Iterable[Given]) -> list[list[dict[str, Any]]]:
    """Return one list of objects for each place, annotated with what to wait for. Raises ObjectsError with all
    problems."""
    problems, seen = list[str](), dict[tuple[str, ...], str]()
    found: list[list[dict[str, Any]]] = []
    for each in given:
        objects = list(_objects(each, problems))
        for it in objects:
            wrong = list(_wrong(it))
            if not wrong and (named := identity(it.tree)) in seen:
                wrong = [f"{object_text(named)} is in {seen[named]}, too -> remove one"]
            problems += [f"{it.where}: {problem}" for problem in wrong]
            seen.setdefault(identity(it.tree), it.where)
        found.append([awaited(it.tree, each.wait_for) for it in objects])
    if problems:
        raise ObjectsError(problems)
    return found


def awaited(tree: Mapping[str, Any], wait_for: str | None) -> dict[str, Any]:
    """Copy the object and add the pulumi.com/waitFor annotation, unless the object has that annotation already."""
    metadata = mapping(tree.get("metadata"))
    if wait_for is None:
        return dict(tree)
    annotations = {_WAIT_FOR: wait_for, **mapping(metadata.get("annotations"))}
    return {**tree, "metadata": {**metadata, "annotations": annotations}}


def _objects(given: Given, problems: list[str]) -> Iterator[Object]:
    if given.file is None:
        yield Object(where=given.where, tree=given.manifest)
        return
    where = f"{given.where}: {given.file.name}"
    try:
        text = given.file.read_bytes().decode()
    except (OSError, UnicodeDecodeError) as error:
        problems.append(f"{where} cannot be read as UTF-8 text: {error} -> name a YAML file, relative to the project")
        return
    for _, it in documents(where, text, problems):
        yield it


def _wrong(it: Object) -> Iterator[str]:
    version, kind, metadata = it.version, it.kind, it.metadata
    if not re.fullmatch(OTHER_KIND, f"{version}/{kind}"):
        yield (
            f"apiVersion {version}, kind {kind} -> give those of a custom resource, e.g. lvm.topolvm.io/v1alpha1, "
            "LVMCluster"
        )
        return
    if kind in known_kinds().get(version, {}) and "openshift.io" not in version:
        yield f"{kind} of {version} is Kubernetes' own -> apply it yourself: only custom resources are allowed here"
    name = metadata.get("name")
    if not isinstance(name, str) or not NAME.fullmatch(name):
        yield f"metadata.name is {name!r} -> give the object's name, of a-z, 0-9, '-' and '.'"
    namespace = metadata.get("namespace")
    if namespace is not None and (not isinstance(namespace, str) or not NAME.fullmatch(namespace)):
        yield f"metadata.namespace is {namespace!r} -> name a namespace, or remove it if the kind has no namespace"
    for field_name in it.tree:
        if field_name not in _FIELDS:
            yield f"it has {field_name} -> give {', '.join(_FIELDS)} only"
    for field_name in metadata:
        if field_name not in _METADATA:
            yield f"it has metadata.{field_name} -> give {', '.join(_METADATA)} only"
    if not isinstance(it.tree.get("spec", {}), dict):
        yield "spec is not an object -> give one, or leave it out"
    for field_name in ("labels", "annotations"):
        entries = metadata.get(field_name) or {}
        if not isinstance(entries, dict) or not all(
            isinstance(value, str) for value in cast("dict[str, Any]", entries).values()
        ):
            yield f"metadata.{field_name} are not texts -> write each value in quotes"
