"""The user's manifests of a cluster: Secrets that its control plane names, whose keys are files.

They are written into folders, which the program reads and checks like those of `install.manifests`. Once the cluster is
formed the Secrets are not read any more, because the installer uses them once.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import json
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from metal_ipi.cluster_api.api import SECRET, Api, Object
from metal_ipi.cluster_api.engine.state import Entry
from metal_ipi.cluster_api.settings import FILES, Tree
from metal_ipi.components.cluster_api.objects import FOLDER, FOLDERS

_FILES = FILES / "manifests"


class ManifestsRefused(ValueError):
    """A Secret with manifests cannot be used; the message names it and says what to do."""


@dataclass(frozen=True, kw_only=True)
class Manifests:
    """The content of the Secrets, as folders."""

    folders: Mapping[str, Path] = field(default_factory=dict[str, Path])
    """By the names of the Secrets."""

    def added(self, tree: Tree) -> Tree:
        """Settings that name these folders beside those which they name themselves."""
        if not self.folders:
            return tree
        install: dict[str, Any] = tree.get("install") or {}
        folders = [*(install.get("manifests") or []), *(str(each) for each in self.folders.values())]
        return {**tree, "install": {**install, "manifests": folders}}

    def with_secret_names(self, message: str) -> str:
        """A message with the Secrets' names in place of the folders."""
        for name, folder in self.folders.items():
            message = message.replace(str(folder), f"Secret {name}")
        return message


UNKNOWN = Manifests(folders={"(not known)": _FILES / "not-known"})
"""Used if it is not known which Secrets the control plane names, for example before it exists: settings that need
manifests are not refused. No folder is read when settings are checked."""


async def provided(api: Api, control_plane: Object, owner: str) -> Manifests:
    """Fetch what a control plane names; `owner` is for `forget`. Raises ManifestsRefused, ApiError."""
    namespace = control_plane["metadata"]["namespace"]
    names = [str(each["name"]) for each in control_plane["spec"].get("manifestSecretRefs") or ()]
    found = {name: await _files(api, namespace, name) for name in names}
    return Manifests(folders=await asyncio.to_thread(_written, found, _FILES / owner)) if found else Manifests()


def taken_in(assets: Entry | None) -> Manifests:
    """The manifests with which a cluster was installed; `assets` are the installer's. The folder is empty: the program
    then uses the manifests in the state (`stacks.assets.user_manifests`)."""
    request = json.loads(assets.inputs["stdin"]) if assets is not None else {}
    return Manifests(folders={"(taken in)": _FILES / "taken-in"} if request.get("manifests") else {})


def forget(owner: str) -> None:
    """Remove what was fetched."""
    shutil.rmtree(_FILES / owner, ignore_errors=True)


async def _files(api: Api, namespace: str, name: str) -> dict[str, bytes]:
    found = await api.get(SECRET, namespace, name)
    where = f"Secret {namespace}/{name}, which spec.manifestSecretRefs of the OpenShiftControlPlane names,"
    if found is None:
        raise ManifestsRefused(f"{where} does not exist: create it, or remove its name")
    folder = (found["metadata"].get("annotations") or {}).get(FOLDER)
    if folder not in FOLDERS:
        raise ManifestsRefused(
            f"{where} has {folder or 'nothing'} in {FOLDER}, but the annotation must name the installer's folder: set "
            "it to "
            f"{' or '.join(FOLDERS)}"
        )
    try:
        return {key: base64.b64decode(text, validate=True) for key, text in (found.get("data") or {}).items()}
    except binascii.Error as error:
        raise ManifestsRefused(f"{where} cannot be read: {error}") from None


def _written(found: Mapping[str, Mapping[str, bytes]], base: Path) -> dict[str, Path]:
    """A folder for each Secret, which appears complete. An existing folder is unchanged, because its name is a hash of
    its content."""
    digest = hashlib.sha256(repr(sorted((name, sorted(files.items())) for name, files in found.items())).encode())
    there = base / digest.hexdigest()[:16]
    if not there.is_dir():
        base.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryDirectory(dir=base) as folder:
            (new := Path(folder) / "new").mkdir()
            for name, files in found.items():
                (new / name).mkdir()
                for file, content in files.items():
                    (new / name / file).write_bytes(content)
            try:
                new.rename(there)
            except OSError:
                if not there.is_dir():  # else somebody was faster
                    raise
    return {name: there / name for name in found}
