"""The official description of the API, read from where it is kept: it is not a part of this project."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import yaml

Json = dict[str, Any]
METHODS = ("get", "post", "put", "patch", "delete")


class _Loader(yaml.CSafeLoader):
    """Leaves times in examples as the texts they are in JSON."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read(path: Path) -> Json:
    """The description in one piece: what other files hold is put in its place, schemas below `components`."""
    return _Bundle().document(path)


def operations(document: Json) -> dict[tuple[str, str], Json]:
    """Every operation by its path, as the description writes it, and its method in capitals."""
    return {
        (path, method.upper()): entry[method]
        for path, entry in document["paths"].items()
        for method in METHODS
        if method in entry
    }


class _Bundle:
    """Follows the references from file to file."""

    def __init__(self) -> None:
        self._schemas: dict[str, Any] = {}
        self._files: dict[Path, Any] = {}

    def document(self, path: Path) -> Json:
        """All of it."""
        root: Json = self._file(path)
        paths = {name: self._whole(entry, path.parent) for name, entry in root["paths"].items()}
        schemes = self._whole(root["components"].get("securitySchemes", {}), path.parent)
        return {**root, "paths": paths, "components": {"schemas": self._schemas, "securitySchemes": schemes}}

    def _file(self, path: Path) -> Any:
        if path not in self._files:
            self._files[path] = yaml.load(path.read_text(), _Loader)
        return self._files[path]

    def _whole(self, node: Any, base: Path) -> Any:
        if isinstance(node, list):
            return [self._whole(entry, base) for entry in cast("list[Any]", node)]
        if not isinstance(node, dict):
            return node
        reference = cast("Json", node).get("$ref")
        if not isinstance(reference, str):
            return {key: self._whole(value, base) for key, value in cast("Json", node).items()}
        path = (base / reference).resolve()
        if path.parent.name != "schemas":
            return self._whole(self._file(path), path.parent)
        name = path.stem
        if name not in self._schemas:
            self._schemas[name] = None  # being read: schemas refer to each other in circles
            self._schemas[name] = self._whole(self._file(path), path.parent)
        return {"$ref": f"#/components/schemas/{name}"}
