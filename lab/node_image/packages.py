"""Debian packages, downloaded and unpacked by the host's own apt, without installing anything.

The host's apt brings its mirrors, proxies and keys: what it trusts, the image trusts, and the image is of the host's
release. Maintainer scripts do not run; what they would do for the few files that we take, `rootfs` does.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from lab.errors import ImageError

_MERGED = ("bin", "sbin", "lib", "lib64")
"""Directories that have moved under /usr; packages of Debian 12 still name some files at their old place."""


def fetch(names: Sequence[str], directory: Path, status: Path = Path("/dev/null")) -> list[Path]:
    """Download packages and everything they depend on into `directory`; the .deb files.

    `status` is a file of dpkg's: what is installed there is not downloaded. An empty one makes apt ignore what the host
    has installed.
    """
    (directory / "partial").mkdir(parents=True)
    run(
        "apt-get",
        *("-o", f"Dir::State::status={status}", "-o", f"Dir::Cache::archives={directory}", "-o", "Debug::NoLocking=1"),
        *("-o", "APT::Install-Recommends=false", "-o", "APT::Sandbox::User=", "-qq", "-y"),
        *("--download-only", "install", *names),
    )
    return sorted(directory.glob("*.deb"))


def unpack(packages: Sequence[Path], directory: Path) -> None:
    """Unpack packages over each other into `directory`, with /bin, /sbin and /lib under /usr."""
    for name in _MERGED:
        (directory / "usr" / name).mkdir(parents=True)
        (directory / name).symlink_to(f"usr/{name}")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda package: _unpack(package, directory), packages))


def _unpack(package: Path, directory: Path) -> None:
    run(
        "sh",
        "-c",
        'dpkg-deb --fsys-tarfile "$1" | tar -x --keep-directory-symlink -C "$2"',
        "unpack",
        package,
        directory,
    )


class Tools:
    """Programs of the unpacked packages, run with their own libraries: nothing has to be installed for them."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        """Where the packages are unpacked."""
        self._libraries = directory / "usr/lib/x86_64-linux-gnu"

    def run(self, program: str, *arguments: str | os.PathLike[str], **environment: str) -> str:
        """Run a program, named by its path in the packages, as `run` does."""
        loader = self._libraries / "ld-linux-x86-64.so.2"
        command = (loader, "--library-path", self._libraries, self.directory / program, *arguments)
        return run(*command, GCONV_PATH=str(self._libraries / "gconv"), **environment)


def run(*command: str | os.PathLike[str], **environment: str) -> str:
    """Run a program of the build; what it printed, errors last, or an ImageError that quotes the end of it."""
    words = [os.fspath(word) for word in command]
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C", **environment}
        )
    except OSError as error:
        raise ImageError(f"{words[0]}: {error.strerror or error}; it is needed to make an image") from error
    if done.returncode:
        detail = "\n".join((done.stderr.strip() or done.stdout.strip()).splitlines()[-15:])
        raise ImageError(f"{' '.join(words[:2])} failed with status {done.returncode}:\n{detail}")
    return done.stdout + done.stderr
