"""Reads and checks the settings of a cluster's stack. `stacks.model` has the tree itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from metal_ipi.stacks.conflicts import conflicts
from metal_ipi.stacks.model import PLATFORMS, Settings
from metal_ipi.stacks.outdated import current
from metal_ipi.stacks.platforms.section import Needed, Tree, at
from metal_ipi.stacks.problems import SettingsError
from metal_ipi.stacks.reading import Kind

__all__ = ["NEEDED", "OKD_PULL_SECRET", "Settings", "SettingsError", "load", "of_tree", "parse"]

# The publicly known pull secret from OKD's documentation. It gives no access; the installer only requires that there is
# one.
OKD_PULL_SECRET = '{"auths":{"fake":{"auth":"aWQ6cGFzcwo="}}}'  # noqa: S105

_OF_TYPES = (
    ("dns", ("rfc2136", "delegate"), ("server", "tsig.secret")),
    ("dns", ("route53",), ("accessKeyId", "secretAccessKey")),
    ("dns", ("cloudflare",), ("authToken",)),
    ("artifacts", ("ssh",), ("host", "user", "hostKey", "privateKey", "baseUrl")),
    ("artifacts", ("s3",), ("accessKeyId", "secretAccessKey")),
)
"""(section, types, keys): keys that the section needs if it has one of these types."""
NEEDED: Sequence[Needed] = (
    *(
        replace(each, when=lambda tree, each=each, kind=kind: _is(tree, "platform", kind) and each.when(tree))
        for kind, section in PLATFORMS.items()
        for each in section.needed
    ),
    *(
        Needed(path=f"{section}.{key}", when=lambda tree, section=section, types=types: _is(tree, section, *types))
        for section, types, keys in _OF_TYPES
        for key in keys
    ),
    Needed(path="clusterApi.hub.kubeconfig", when=lambda tree: at(tree, "clusterApi") is not None),
    *(
        Needed(path=f"dayTwo.registry.{key}", when=lambda tree: at(tree, "dayTwo.registry.type") == "s3")
        for key in ("accessKeyId", "secretAccessKey")
    ),
    Needed(path="boot.streamFile", when=lambda tree: not at(tree, "boot.streamUrl")),
    Needed(path="install.pullSecret", when=lambda tree: at(tree, "install.distribution") != "okd"),
)
"""Settings that are required except in a rehearsal."""


def _is(tree: Tree, section: str, *types: str) -> bool:
    """Whether a section has one of these types."""
    return at(tree, f"{section}.type") in types


CLUSTER = Kind(model=Settings, needed=NEEDED, conflicts=conflicts, current=current)
"""The kind of stack of a cluster."""


def load() -> Settings:
    """Read and validate the running stack's configuration. Raises SettingsError with every problem."""
    return CLUSTER.load()


def of_tree(tree: Tree) -> Settings:
    """Validate settings from another place, with their names in a stack file. Raises SettingsError, as `load` does."""
    return CLUSTER.of_tree(dict(tree))


def parse(values: dict[str, str], stack: str) -> Settings:
    """Validate configuration values as the engine passes them: every value a string, objects as JSON. Raises
    SettingsError."""
    return CLUSTER.parse(values, stack)
