"""Programs of simulated machines that would talk to a kernel, to systemd or to a disk: what each does instead.

An option that none of our scripts needs is refused, not ignored: a wrong answer would be worse than none.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, Protocol

from lab.machines.base import MachineSpec
from lab.machines.simulated.disk import Disks
from lab.machines.simulated.kernel import Kernel
from lab.machines.simulated.surroundings import Surroundings


class Refused(Exception):
    """A program fails; the text is what it says."""


class Arguments(argparse.ArgumentParser):
    """The arguments that a program supports; all others are refused."""

    def __init__(self, *flags: str) -> None:
        super().__init__(add_help=False, allow_abbrev=False)
        for flag in flags:
            self.add_argument(*flag.split("/"), action="store_true")

    def error(self, message: str) -> NoReturn:
        """Report an error of argparse."""
        raise Refused(f"simulated machines do not know this: {message}")


class Power(Protocol):
    """What an operating system can do to the machine that it runs on."""

    def reboot(self) -> None: ...

    def shutdown(self) -> None: ...

    def kexec(self, kernel: Kernel) -> None: ...


@dataclass(kw_only=True)
class Host:
    """The machine that programs run on."""

    spec: MachineSpec
    directory: Path
    """The machine's directory."""
    around: Surroundings
    root: Path
    disks: Disks
    power: Power
    line: Callable[[str], None]
    """Prints on the console."""
    activating: Callable[[], Collection[str]]
    """The units that are activating."""
    loaded: Kernel | None = None
    """The kernel that `kexec --load` loaded."""

    def path(self, call: Call, name: str) -> Path:
        """The path on this system of a file of the machine; refuses paths outside of the machine."""
        inside = os.path.normpath(os.path.join(call.directory, name))  # noqa: PTH118 - a path of the machine
        if inside.startswith("/usr/local/"):
            inside = "/var/usrlocal/" + inside.removeprefix("/usr/local/")
        found = (self.root / inside.lstrip("/")).resolve()
        if not found.is_relative_to(self.root.resolve()):
            raise Refused(f"{name}: simulated machines follow no absolute links")
        return found


@dataclass(frozen=True, kw_only=True)
class Call:
    """One run of a program."""

    name: str
    directory: str
    """Its working directory."""
    arguments: tuple[str, ...]

    @classmethod
    def of(cls, text: bytes) -> Call:
        """What the program sent: its fields as one JSON object."""
        said = json.loads(text)
        return cls(name=said["name"], directory=said["directory"], arguments=tuple(said["arguments"] or ()))


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The output and exit status of a program."""

    status: int = 0
    stdout: str = ""
    stderr: str = ""
    then: str = ""
    """A command line of the shell that does the rest, with the host's programs."""
