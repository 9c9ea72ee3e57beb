"""The lab's release image: what of OpenShift's release image can be had, laid out as the images that name it.

Real are the machine config operator, its controller and server, and the program that renders the API's manifests and
feature gates; templates and resource definitions come from the same Go modules. Everything else that a release image
holds is stood in for on the machines, by name: lab/openshift/README.md lists it.

A registry of the lab is a tree of files: `<image>/bin/<program>` is a program of an image, `<image>/files.tar` is what
else it has, `<image>/entrypoint` names the program that runs when a pod names none.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from binaries.cache import Report, filling
from binaries.go_tool import GoTool
from lab.openshift.real import RELEASE

REGISTRY = "registry.facility.test/openshift"
RELEASE_IMAGE = "registry.ci.openshift.org/origin/release:4.19"
"""What openshift-install calls it that was built without being told another (pkg/asset/releaseimage/default.go)."""
OPERATOR, API = (f"{REGISTRY}/{name}:{RELEASE}" for name in ("machine-config-operator", "cluster-config-api"))
IMAGES = (
    *("baremetal-runtimecfg", "cluster-config-api", "coredns", "haproxy-router", "keepalived-ipfailover"),
    *("kube-rbac-proxy", "machine-config-operator", "oauth-proxy", "pod", "rhel-coreos", "rhel-coreos-extensions"),
)
"""The images that the release names: those that the machine config operator asks for, and the two that there are."""

_API_MODULE = "github.com/openshift/api"
_OPERATOR_MODULE = "github.com/openshift/machine-config-operator"
_PINS = Path(__file__).with_name("machine-config")
_LINK = (
    "-s",
    "-w",
    f"-X {_OPERATOR_MODULE}/pkg/version.Raw=v{RELEASE}",
    f"-X {_OPERATOR_MODULE}/pkg/version.Hash=none",
)
# As hack/build-go.sh has them, and without what needs C libraries.
_TAGS = (
    "containers_image_openpgp",
    "containers_image_ostree_stub",
    "exclude_graphdriver_btrfs",
    "exclude_graphdriver_devicemapper",
)
_RENDER = GoTool(program="render", package=f"{_API_MODULE}/payload-command/cmd/render", pins=_PINS, minutes="seconds")
_MACHINE_CONFIG = tuple(
    GoTool(
        program=name,
        package=f"{_OPERATOR_MODULE}/cmd/{name}",
        pins=_PINS,
        link=_LINK,
        tags=_TAGS,
        minutes=minutes,
    )
    for name, minutes in (
        ("machine-config-operator", "about 3 minutes"),
        ("machine-config-controller", "about a minute"),
        ("machine-config-server", "seconds"),
    )
)
_MERGE = GoTool(program="ignition-merge", package="./ignition-merge", pins=_PINS, minutes="seconds")
# Definitions that the cluster version operator applies from the release, of those kinds that the lab has objects of.
# Those of a feature set have its name, and an annotation that says so.
_OPERATED = (
    ("config", "0000_00_cluster-version-operator_01_clusteroperators"),
    ("config", "0000_00_cluster-version-operator_01_clusterversions"),
    ("machineconfiguration", "0000_80_machine-config_01_controllerconfigs"),
    ("machineconfiguration", "0000_80_machine-config_01_machineconfigpools"),
    ("machineconfiguration", "0000_80_machine-config_01_machineconfigs"),
)


@dataclass(frozen=True, kw_only=True)
class Release:
    """A release image in the user's cache."""

    directory: Path

    def publish(self, registry: Path) -> None:
        """Put its images where machines pull them from. The files are links: nobody changes them there."""
        for source in sorted(path for path in self.directory.rglob("*") if path.is_file()):
            target = registry / source.relative_to(self.directory)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.unlink(missing_ok=True)
            try:
                target.hardlink_to(source)
            except OSError:  # another file system
                shutil.copyfile(source, target)


def ensure(report: Report) -> Release:
    """The release image, its programs built if need be. Raises ProgramMissing."""
    programs = [tool.ensure(report) for tool in (_RENDER, *_MACHINE_CONFIG)]
    directory = _directory(programs)
    if not directory.exists():
        _assemble(programs, directory)
    return Release(directory=directory)


def cached() -> Release | None:
    """The same, if nothing has to be built."""
    found = [tool.cached() for tool in (_RENDER, *_MACHINE_CONFIG)]
    programs = [program for program in found if program is not None]
    if len(programs) < len(found) or not _directory(programs).exists():
        return None
    return Release(directory=_directory(programs))


def ignition_merge(report: Report) -> Path:
    """The program that merges Ignition configs by Ignition's own code, built if need be. Raises ProgramMissing."""
    return _MERGE.ensure(report)


def cached_merge() -> Path | None:
    """The same, if nothing has to be built."""
    return _MERGE.cached()


def program(name: str, release: Release) -> Path:
    """One of the real programs of a release image, by name."""
    (found,) = release.directory.glob(f"**/bin/{name}")
    return found


def _directory(programs: list[Path]) -> Path:
    """Beside the machine config server, whose directory is named by its pins; a changed layout has another name."""
    return programs[-1].with_name("release-2")


def _assemble(programs: list[Path], finished: Path) -> None:
    api, operator = (_RENDER.source(module) for module in (_API_MODULE, _OPERATOR_MODULE))
    definitions = api / "payload-manifests" / "crds"
    render, *machine_config = programs
    with filling(finished) as fresh:
        _image(fresh / API, [render], _tree(definitions, "usr/share/bootkube/manifests/manifests"))
        _image(
            fresh / OPERATOR,
            machine_config,
            {
                **_tree(operator / "templates", "etc/mcc/templates"),
                **_tree(operator / "manifests" / "machineconfigserver", "manifests/machineconfigserver"),
            },
        )
        (fresh / OPERATOR / "entrypoint").write_text("machine-config-operator\n")
        operated = {
            f"release-manifests/{path.name}": path
            for group, name in _OPERATED
            for path in (api / group / "v1" / "zz_generated.crd-manifests").glob(f"{name}[.-]*crd.yaml")
        }
        names = {name: f"{REGISTRY}/{name}:{RELEASE}" for name in IMAGES}
        _image(fresh / RELEASE_IMAGE, [], operated, image_references(names))


def _image(
    directory: Path, programs: Iterable[Path], files: Mapping[str, Path], texts: Mapping[str, str] | None = None
) -> None:
    (directory / "bin").mkdir(parents=True)
    for each in programs:
        try:
            (directory / "bin" / each.name).hardlink_to(each)
        except OSError:  # another file system
            shutil.copy(each, directory / "bin" / each.name)
    with tarfile.open(directory / "files.tar", "w") as archive:
        for name, source in sorted(files.items()):
            _add(archive, name, source.read_bytes(), 0o755 if os.access(source, os.X_OK) else 0o644)
        for name, text in (texts or {}).items():
            _add(archive, name, text.encode(), 0o644)


def _add(archive: tarfile.TarFile, name: str, data: bytes, mode: int) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(data), mode
    archive.addfile(entry, io.BytesIO(data))


def _tree(source: Path, target: str) -> dict[str, Path]:
    return {f"{target}/{path.relative_to(source)}": path for path in source.rglob("*") if path.is_file()}


def image_references(names: Mapping[str, str]) -> dict[str, str]:
    """The file of the release image that lists all images, by their names in the release (an ImageStream)."""
    tags = [{"name": name, "from": {"kind": "DockerImage", "name": image}} for name, image in names.items()]
    stream = {
        "kind": "ImageStream",
        "apiVersion": "image.openshift.io/v1",
        "metadata": {"name": RELEASE},
        "spec": {"tags": tags},
    }
    return {"release-manifests/image-references": json.dumps(stream, indent=2) + "\n"}
