"""What layers of container images are made of: Debian packages, Python packages, programs, files of our own.

Each kind can say what it is made of, and make its files: in a directory of its own, on top of the layers below.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from binaries.release import architecture
from lab.errors import ImageError
from lab.node_image import efi, packages
from lab.node_image.contents import SIGNED
from lab.node_image.packages import run

Report = Callable[[str], None]

_STATUS = "var/lib/dpkg/status"
"""Which packages an image has, in dpkg's own words: apt takes what depends on them from there."""
_NOT_NEEDED = ("usr/share/info", "usr/share/lintian", "usr/share/locale", "usr/share/man", "usr/share/bug")
_DOCUMENTATION = "usr/share/doc"
"""Of it licences stay."""
_CERTIFICATES = "usr/share/ca-certificates"
_BUSYBOX = "usr/bin/busybox"
_COMPILE = ("-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash")
"""Nobody can write into a container's files, so Python would compile its modules at each start. Dates are lost in
images, so compiled modules go by the hash of their source."""


@dataclass(frozen=True, kw_only=True)
class Making:
    """A layer that is being made."""

    below: Path
    """A root file system with the files of the layers below: programs in it can be run with `chroot`."""
    fresh: Path
    """An empty directory for the files of this layer."""
    work: Path
    """An empty directory for files on the way."""
    report: Report


class Kind(Protocol):
    """A kind of layer."""

    @property
    def made_of(self) -> list[Any]:
        """All that the layer's files follow from, for JSON; the Debian release and the layers below apart."""
        ...

    def make(self, making: Making) -> None:
        """Make the layer's files. Raises ImageError."""
        ...


@dataclass(frozen=True)
class Debian:
    """Whole Debian packages, with all that they depend on and the layers below do not have.

    Maintainer scripts do not run. What they do for the packages that we use is done here: the bundle of certificates,
    compiled modules of Python. busybox stands in for the shell and all small programs that no package beside it brings.
    """

    names: tuple[str, ...]

    @property
    def made_of(self) -> list[Any]:
        """The packages' names."""
        return ["debian", self.names]

    def make(self, making: Making) -> None:
        """Download and unpack them."""
        status = making.below / _STATUS
        known = status.read_text() if status.exists() else ""
        (making.work / "status").write_text(known)
        found = packages.fetch(self.names, making.work / "packages", making.work / "status")
        packages.unpack(found, making.fresh)
        stanzas = [f"{run('dpkg-deb', '--field', each).rstrip()}\nStatus: install ok installed\n" for each in found]
        _write(making.fresh / _STATUS, "\n".join([known, *stanzas] if known else stanzas))
        _trim(making.fresh)
        if (making.fresh / _CERTIFICATES).is_dir():
            _bundle(making.fresh)
        if (making.fresh / _BUSYBOX).exists():
            _link_busybox(making.fresh)
        if (making.fresh / "usr/bin/python3").exists():
            _chroot(
                making.fresh, "/usr/bin/python3", *_COMPILE, "/usr/lib/python3", f"/usr/lib/{_python(making.fresh)}"
            )


@dataclass(frozen=True)
class DebianFiles:
    """Single files of Debian packages, and no more."""

    packages: tuple[str, ...]
    files: tuple[str, ...]
    """Paths from the root without the first slash; a link becomes the file behind it."""

    @property
    def made_of(self) -> list[Any]:
        """The packages' names and the paths."""
        return ["debian files", self.packages, self.files]

    def make(self, making: Making) -> None:
        """Download the packages, and take the files."""
        status = making.below / _STATUS
        found = packages.fetch(
            self.packages, making.work / "packages", status if status.exists() else Path("/dev/null")
        )
        packages.unpack(found, making.work / "debian")
        for name in self.files:
            source = making.work / "debian" / name
            if not source.is_file():
                raise ImageError(f"/{name} is in none of Debian's packages {' '.join(self.packages)}")
            _place(making.fresh / name, source.read_bytes(), 0o755)


@dataclass(frozen=True)
class Wheels:
    """A virtual environment of the image's own Python with pinned packages from the Python package index."""

    requirements: Path
    into: str
    """Its place, from the root without the first slash."""

    @property
    def made_of(self) -> list[Any]:
        """The requirements and the place."""
        return ["wheels", self.requirements.read_text(), self.into]

    def make(self, making: Making) -> None:
        """Download wheels that fit the image's Python, and have it install them."""
        root, place = making.below, f"/{self.into}"
        wheels = root / "wheels"
        wheels.mkdir()
        run(
            *(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"),
            *("--only-binary=:all:", "--implementation", "cp", *_fitting(root)),
            *("--requirement", self.requirements, "--dest", wheels),
        )
        found = packages.fetch(("python3-pip-whl",), making.work / "packages", root / _STATUS)
        packages.unpack(found, making.work / "debian")
        (pip,) = (making.work / "debian/usr/share/python-wheels").glob("pip-*.whl")
        shutil.copy(pip, root)
        _chroot(root, "/usr/bin/python3", "-m", "venv", "--without-pip", place)
        _chroot(
            *(root, f"{place}/bin/python3", f"/{pip.name}/pip", "install", "--quiet", "--no-index", "--no-deps"),
            *("--no-compile", "--no-cache-dir", "--root-user-action=ignore"),
            *(f"/wheels/{path.name}" for path in sorted(wheels.iterdir())),
        )
        shutil.rmtree(wheels)
        (root / pip.name).unlink()
        _chroot(root, f"{place}/bin/python3", *_COMPILE, place)
        (making.fresh / self.into).parent.mkdir(parents=True)
        (root / self.into).rename(making.fresh / self.into)


@dataclass(frozen=True, kw_only=True)
class Program:
    """A program that is no Debian package."""

    path: str
    """Its place, from the root without the first slash."""
    ensure: Callable[[Report], Path]
    """Where it is, downloaded or built first if need be."""
    pins: Path
    """The directory with all that says which program it is."""

    @property
    def made_of(self) -> list[Any]:
        """The place and the pins, not the program: it may have been built by one Go or another."""
        files = sorted(path for path in self.pins.rglob("*") if path.is_file() and path.suffix != ".pyc")
        return ["program", self.path, *(path.read_text() for path in files)]

    def make(self, making: Making) -> None:
        """Make the program and copy it."""
        _place(making.fresh / self.path, self.ensure(making.report).read_bytes(), 0o755)


@dataclass(frozen=True, kw_only=True)
class Files:
    """Small files and directories of our own."""

    texts: Mapping[str, str] = field(default_factory=dict[str, str])
    """By their paths from the root without the first slash. What is in a `bin` can be run."""
    directories: Mapping[str, int] = field(default_factory=dict[str, int])
    """Their modes, by their paths."""

    @property
    def made_of(self) -> list[Any]:
        """Everything."""
        return ["files", dict(self.texts), dict(self.directories)]

    def make(self, making: Making) -> None:
        """Write them."""
        for path, mode in self.directories.items():
            (making.fresh / path).mkdir(parents=True, exist_ok=True)
            (making.fresh / path).chmod(mode)
        for path, text in self.texts.items():
            _place(making.fresh / path, text.encode(), 0o755 if Path(path).parent.name == "bin" else 0o644)


@dataclass(frozen=True)
class BootLoader:
    """The image that UEFI firmware boots an ISO from: shim and GRUB as Microsoft and Debian signed them."""

    path: str
    """Its place, from the root without the first slash."""
    configuration: str
    """What GRUB reads first."""

    @property
    def made_of(self) -> list[Any]:
        """The place and the configuration; the rest is Debian's."""
        return ["boot loader", self.path, self.configuration]

    def make(self, making: Making) -> None:
        """Make a FAT file system with them."""
        debian = making.work / "debian"
        packages.unpack(packages.fetch((*SIGNED, "mtools"), making.work / "packages"), debian)
        image = efi.disc_image(packages.Tools(debian), making.work, self.configuration)
        _place(making.fresh / self.path, image, 0o644)


def _fitting(root: Path) -> list[str]:
    """What tells pip which wheels fit the image: its Python, its C library and this machine's architecture."""
    libc = run("chroot", root, "/usr/bin/python3", "-c", "import os; print(os.confstr('CS_GNU_LIBC_VERSION'))")
    minor = int(libc.split(".")[-1])
    machine = architecture("x86_64", "aarch64")
    platforms = [f"manylinux_2_{number}_{machine}" for number in range(minor, 4, -1)]
    platforms += [f"{name}_{machine}" for name in ("manylinux2014", "manylinux2010", "manylinux1", "linux")]
    return ["--python-version", _python(root).removeprefix("python"), *(f"--platform={each}" for each in platforms)]


def _python(root: Path) -> str:
    """The name of a root's Python, e.g. `python3.11`."""
    return (root / "usr/bin/python3").readlink().name


def _chroot(root: Path, *command: str) -> None:
    """Run a program of a root file system in it."""
    settings = {"PATH": "/usr/sbin:/usr/bin", "HOME": "/", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0"}
    run("chroot", root, "/usr/bin/env", "-i", *(f"{name}={value}" for name, value in settings.items()), *command)


def _trim(root: Path) -> None:
    for name in _NOT_NEEDED:
        shutil.rmtree(root / name, ignore_errors=True)
    for directory, _, files in os.walk(root / _DOCUMENTATION, topdown=False):
        for name in files:
            if name != "copyright":
                Path(directory, name).unlink()


def _bundle(root: Path) -> None:
    """/etc/ssl/certs/ca-certificates.crt, as ca-certificates' own script makes it of all that the package has."""
    found = sorted((root / _CERTIFICATES).rglob("*.crt"))
    if not found:
        raise ImageError("the package ca-certificates has no certificates")
    _write(root / "etc/ssl/certs/ca-certificates.crt", "".join(path.read_text() for path in found))


def _link_busybox(root: Path) -> None:
    """A link for each of its programs that is not there."""
    for listed in run(root / _BUSYBOX, "--list-full").split():
        path = root / "usr" / listed.removeprefix("usr/")
        if not any(os.path.lexists(root / "usr" / folder / path.name) for folder in ("bin", "sbin")):
            path.symlink_to(f"/{_BUSYBOX}")


def _write(path: Path, text: str) -> None:
    _place(path, text.encode(), 0o644)


def _place(path: Path, data: bytes, mode: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    path.chmod(mode)
