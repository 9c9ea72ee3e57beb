"""Turns the objects of a cluster into its settings, as in a stack file, and into the program of these settings."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from metal_ipi.cluster_api.engine.engine import Declaration
from metal_ipi.provider import configuration
from metal_ipi.provider.configuration import Settings as Connections
from metal_ipi.stacks import connections, program
from metal_ipi.stacks.platforms.section import at, items
from metal_ipi.stacks.problems import NAMESPACE, Problem, SettingsError
from metal_ipi.stacks.settings import CLUSTER, Settings

Tree = dict[str, Any]
FILES = Path(tempfile.gettempdir()) / "metal-ipi"
"""The directory for temporary files: the rest of a pod's file system is read-only."""


def merged(tree: Mapping[str, Any], secrets: Mapping[str, str]) -> Tree:
    """Settings with their secrets, by the keys of a Secret: paths, with `.0` for the first of a list, as in
    `platform.servers.0.bmc.password`. Raises SettingsError for a path that is not a setting.

    Folders for temporary files are set here.
    """
    result: Tree = json.loads(json.dumps(tree))
    for path, value in sorted(secrets.items()):
        *parts, last = path.split(".")
        place: Any = result
        try:
            for part in parts:
                place = place[int(part)] if isinstance(place, list) else place.setdefault(part, {})
            place[int(last) if isinstance(place, list) else last] = value
        except (IndexError, TypeError, ValueError, AttributeError):
            problem = Problem(
                path=f"{NAMESPACE}:{path}",
                value="[secret]",
                why="there is no such setting",
                remedy="correct the key of the Secret that spec.secretsRef names",
            )
            raise SettingsError(str(result.get("clusterName")), [problem]) from None
    install = result.setdefault("install", {})
    if isinstance(install, dict):
        install.update(workDirectory=str(FILES / "install"), logDirectory=str(FILES / "logs"))
    return result


def validated(tree: Mapping[str, Any]) -> Settings:
    """The settings. Raises SettingsError with all that is wrong with them."""
    return CLUSTER.validated(dict(tree), str(tree.get("clusterName")))


def only(tree: Mapping[str, Any], workers: frozenset[str]) -> Tree:
    """The same settings with these workers only, and the one that lends its server."""
    kept = {*workers, str(at(dict(tree), "platform.bootstrap.server"))}
    platform = dict(cast("Tree", tree.get("platform") or {}))
    platform["servers"] = [
        server
        for server in items(platform.get("servers"))
        if not str(server.get("name")).startswith("worker-") or server.get("name") in kept
    ]
    return {**tree, "platform": platform}


def declaration(tree: Mapping[str, Any]) -> Declaration:
    """The program of settings that are valid."""
    text = json.dumps(tree, sort_keys=True)

    def declare() -> Mapping[str, Any]:
        settings = CLUSTER.of_tree(dict(tree))
        return program.declare(settings, program.boot_spec(settings))

    return Declaration(
        stack=str(tree["clusterName"]), fingerprint=hashlib.sha256(text.encode()).hexdigest(), program=declare
    )


def connected(settings: Settings) -> Connections:
    """The provider's configuration, for deletions, which need no program. Reads the stream metadata."""
    found, problems = configuration.parse(
        connections.provider_sections(settings, program.boot_spec(settings).artifacts.iso)
    )
    assert not problems, "settings are valid"
    return found
