"""Runs the installer once: reads install-config.yaml, returns Ignition and credentials.

pulumi-command starts it as `python -m metal_ipi.components.install.driver`, with a request (JSON) on standard input. It
prints the assets as one JSON document, which the program keeps as a secret. Its work directory is deleted before and
after each run, so a later run never uses files of a killed one.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

import yaml

from metal_ipi.components.install.manifest_rules import object_text
from metal_ipi.components.install.manifests import identities

_ASSETS = {
    "worker": "worker.ign",
    "kubeconfig": "auth/kubeconfig",
    "kubeadminPassword": "auth/kubeadmin-password",
    "metadata": "metadata.json",
}
# The command, and the file for the machine that bootstraps: a bootstrap machine, or the only machine itself.
_COMMANDS = {
    False: ("ignition-configs", "bootstrap.ign"),
    True: ("single-node-ignition-config", "bootstrap-in-place-for-live-iso.ign"),
}
_RELEASE_IMAGE = "OPENSHIFT_INSTALL_RELEASE_IMAGE_OVERRIDE"
"""openshift/installer, pkg/asset/releaseimage/pullspec.go."""
_BAD_REQUEST = 64


class DriverError(Exception):
    """The installer created no assets; `code` is the exit code of this program."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


def create(
    *,
    installer: str,
    version: str,
    install_config: str,
    work_directory: Path,
    in_place: bool = False,
    manifests: Mapping[str, str] | None = None,
    release_image: str | None = None,
) -> dict[str, str]:
    """Run the installer and return the assets, text by name.

    Args:
        installer: the program, by path or by name on PATH.
        version: the release that the program must be for.
        install_config: install-config.yaml, secret.
        work_directory: created with mode 0700, and removed afterwards.
        in_place: the only machine bootstraps itself.
        manifests: manifests to add to the installer's own, by file name.
        release_image: the release image to install, by digest; None: the installer's own.

    Raises DriverError with the installer's message.
    """
    program = shutil.which(installer)
    if program is None:
        raise DriverError(
            f"there is no installer '{installer}'; put openshift-install {version} on PATH or set install.installer", 4
        )
    _require_version(program, version)
    with _prepared(work_directory, install_config):
        baremetal = _is_baremetal(install_config)
        if manifests or baremetal:
            _run(program, "manifests", work_directory)
        if baremetal:
            _leave_machines_out(work_directory)
        if manifests:
            _add(manifests, work_directory)
        what, bootstrap = _COMMANDS[in_place]
        _run(program, what, work_directory, release_image)
        files = {"bootstrap": bootstrap, **_ASSETS}
        return {name: (work_directory / file).read_text() for name, file in files.items()}


def fulfil(request: str, work_directory: Path | None = None) -> dict[str, str]:
    """Create the assets of a request (`assets.request_of` as JSON), in its work directory or in another one.

    A request from a state may be older, without fields that were added later. Raises DriverError, also if it is
    malformed.
    """
    try:
        asked: Any = json.loads(request)
        return create(
            installer=asked["installer"],
            version=asked["version"],
            install_config=asked["installConfig"],
            work_directory=work_directory or Path(asked["workDirectory"]),
            in_place=asked.get("inPlace", False),
            manifests=asked.get("manifests"),
            release_image=asked.get("releaseImage"),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise DriverError(f"the request is incomplete: {error!r}", _BAD_REQUEST) from error


def refusal(
    *, installer: str, version: str, install_config: str, work_directory: Path, manifests: Mapping[str, str]
) -> str:
    """The installer's error message for a configuration and manifests.

    Empty if it accepts them, or if there is no installer of that release. Takes half a second. Arguments as for
    `create`.
    """
    program = shutil.which(installer)
    if program is None:
        return ""
    try:
        _require_version(program, version)
    except DriverError:
        return ""  # `up` needs the installer, and reports the error
    try:
        with _prepared(work_directory, install_config):
            _run(program, "manifests", work_directory)
            _add(manifests, work_directory)
    except DriverError as error:
        return str(error)
    return ""


@contextlib.contextmanager
def _prepared(work_directory: Path, install_config: str) -> Generator[None, None, None]:
    """Create the work directory with the configuration, and remove it at the end. Raises DriverError."""
    shutil.rmtree(work_directory, ignore_errors=True)
    try:
        work_directory.mkdir(parents=True, mode=0o700)
        (work_directory / "install-config.yaml").write_text(install_config)
        yield
    except OSError as error:
        raise DriverError(f"the installer's assets cannot be made: {error}", 4) from error
    finally:
        shutil.rmtree(work_directory, ignore_errors=True)
        with contextlib.suppress(OSError):  # another stack's installer may still use it
            work_directory.parent.rmdir()


def _run(program: str, what: str, work_directory: Path, release_image: str | None = None) -> None:
    command = [program, "create", what, "--dir", str(work_directory)]
    env = {**os.environ, **({_RELEASE_IMAGE: release_image} if release_image else {})}
    result = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise DriverError(f"openshift-install create {what} failed:\n{result.stderr.strip()}", result.returncode)


def _add(manifests: Mapping[str, str], work_directory: Path) -> None:
    """Add manifests to the installer's own. Raises DriverError if one would replace a file or an object of the
    installer's."""
    theirs = [path for folder in ("manifests", "openshift") for path in sorted((work_directory / folder).glob("*.*"))]
    names = {path.name for path in theirs}
    objects = {each: path.name for path in theirs for each in identities(path.read_text())}
    for name, text in manifests.items():
        if name in names:
            raise DriverError(f"install.manifests: {name}: the installer has a file of this name; rename it", 4)
        for each in identities(text) & objects.keys():
            made = f"the installer makes {object_text(each)} itself ({objects[each]})"
            raise DriverError(f"install.manifests: {name}: {made}; remove it", 4)
        (work_directory / "openshift" / name).write_bytes(text.encode())


def _is_baremetal(install_config: str) -> bool:
    tree = yaml.safe_load(install_config)
    return isinstance(tree, dict) and "baremetal" in (tree.get("platform") or {})


def _leave_machines_out(work_directory: Path) -> None:
    """Delete the installer's manifests of machines and hosts, as openshift-docs (installing-*-user-infra) says for
    clusters whose machines are installed by other means. Otherwise the cluster would wait for workers of its machine
    API."""
    for kind in ("hosts", "master-machines", "worker-machineset", "arbiter-machines", "arbiter_hosts"):
        for path in (work_directory / "openshift").glob(f"99_openshift-cluster-api_{kind}-*.yaml"):
            path.unlink()


def _require_version(program: str, version: str) -> None:
    try:
        result = subprocess.run([program, "version"], capture_output=True, text=True, check=False)
    except OSError as error:
        raise DriverError(f"{program} cannot be run: {error.strerror}", 4) from error
    first, _, _ = result.stdout.partition("\n")
    words = first.split()
    if result.returncode != 0 or len(words) < 2:
        raise DriverError(f"'{program} version' does not print its release:\n{result.stderr.strip()}", 4)
    if words[1].removeprefix("v") != version:
        raise DriverError(
            f"{program} is for release {words[1]}, but openshiftVersion is {version};"
            " use the installer of that release",
            3,
        )


def main() -> int:
    """Read the request from standard input, print the assets."""
    os.umask(0o077)
    try:
        assets = fulfil(sys.stdin.read())
    except DriverError as error:
        print(error, file=sys.stderr)
        return error.code
    json.dump(assets, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
