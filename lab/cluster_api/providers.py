"""Providers that are given in a folder, and the image that is made of them for the hub.

<folder>/clusterctl.yaml     where their components are, as clusterctl reads it
<folder>/image.json          Given, JSON
<folder>/python              Python modules
"""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from lab.facts import Facts
from lab.hub import images
from lab.hub.layers import Debian, Files, Kind, Making, Program, Wheels
from lab.hub.recipe import Recipe
from lab.layout import Layout
from lab.node_image.packages import run
from lab.openshift import build
from lab.openshift.real import RELEASE, openshift_install

Object = dict[str, Any]

_USER = 65532
"""Whom pods of providers run as, as the core's do."""
_ENVIRONMENT = "opt/providers"
_MODULES = "opt/modules"
_OF_LAB = "etc/lab"
OPTIONS = {
    "InfrastructureProvider": "infrastructure",
    "BootstrapProvider": "bootstrap",
    "ControlPlaneProvider": "control-plane",
}
"""clusterctl's options, and the first part of a provider's label, by type."""


@dataclass(frozen=True, kw_only=True)
class Given:
    """One program that serves all of the folder's providers."""

    name: str
    """The last part of the image's name in their components."""
    module: str
    """The Python module to start."""
    requirements: str
    """A file with all packages of the Python package index that it needs, each pinned; relative to the folder."""


@dataclass(frozen=True, kw_only=True)
class Modules:
    """Python modules of a folder, compiled."""

    folder: Path

    @property
    def made_of(self) -> list[Any]:
        """A hash of all files."""
        digest = hashlib.sha256()
        for path in sorted(each for each in self.folder.rglob("*") if each.is_file()):
            content = path.read_bytes()
            digest.update(f"{path.relative_to(self.folder)} {len(content)}\n".encode() + content)
        return ["modules", digest.hexdigest()]

    def make(self, making: Making) -> None:
        """Copy and compile them with the image's own Python."""
        place = making.below / _MODULES
        shutil.copytree(self.folder, place)
        compiler = ("-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash", f"/{_MODULES}")
        run("chroot", making.below, f"/{_ENVIRONMENT}/bin/python3", *compiler)
        (making.fresh / _MODULES).parent.mkdir(parents=True)
        place.rename(making.fresh / _MODULES)


@dataclass(frozen=True, kw_only=True)
class RealInstaller:
    """The real openshift-install, from PATH or built."""

    @property
    def made_of(self) -> list[Any]:
        """The release, what pins it, and whether it is one that was found on PATH."""
        pins = sorted(path for path in openshift_install.PINS.iterdir() if path.is_file())
        found = openshift_install.on_path()
        return ["openshift-install", RELEASE, found is not None, *(path.read_text() for path in pins)]

    def make(self, making: Making) -> None:
        """Copy it."""
        openshift_install.ensure(making.report)
        openshift_install.place(making.fresh)


def _installer(facts: Facts) -> Kind:
    """The layer with the lab's openshift-install."""
    if facts.release == RELEASE:
        return RealInstaller()
    return Program(path="usr/local/bin/openshift-install", ensure=lambda _: Path(facts.installer), pins=build.SOURCES)


def image(folder: Path, layout: Layout, facts: Facts) -> Recipe:
    """The image: the program, the lab's openshift-install, and whom a system of this lab trusts."""
    given = Given(**json.loads((folder / "image.json").read_text()))
    trusted, api_servers = f"{_OF_LAB}/ca.pem", f"{_OF_LAB}/kubernetes.json"
    return Recipe(
        name=given.name,
        layers=(
            images.PYTHON,
            Debian(("libstdc++6",)),  # wheels of programs in C++ have it from the system
            Wheels(folder / given.requirements, _ENVIRONMENT),
            images.basis({"providers": _USER}),
            _installer(facts),
            Modules(folder=folder / "python"),
            Files(texts={trusted: layout.ca.read_text(), api_servers: layout.api_servers.read_text()}),
        ),
        entrypoint=(f"/{_ENVIRONMENT}/bin/python3", "-m", given.module),
        environment=(
            ("PATH", f"/{_ENVIRONMENT}/bin:{images.PATH}"),
            images.LANGUAGE,
            ("PYTHONPATH", f"/{_MODULES}"),
            ("SSL_CERT_FILE", f"/{trusted}"),
            ("REQUESTS_CA_BUNDLE", f"/{trusted}"),
            ("LAB_OPENSHIFT_KUBERNETES", f"/{api_servers}"),
        ),
        user=_USER,
    )


def listed(folder: Path) -> list[Object]:
    """The folder's providers: `name`, `type` and `url` of each."""
    return yaml.safe_load((folder / "clusterctl.yaml").read_text())["providers"]


def version(provider: Object) -> str:
    """A provider's version, from the place of its components."""
    return Path(str(provider["url"])).parent.name


def label(provider: Object) -> str:
    """What clusterctl calls a provider, in its inventory and where images are named: `infrastructure-<name>`."""
    return f"{OPTIONS[provider['type']]}-{provider['name']}"
