"""A libvirt without machines: the program `virsh`, with its domains in a file.

It knows the commands that the provider uses, and refuses every other one. Words are those of libvirt 9.0.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

BRIDGES = ("br0",)
_CAPABILITIES = (
    '<capabilities><guest><os_type>hvm</os_type><arch name="{architecture}"><wordsize>64</wordsize>'
    '<domain type="qemu"/>{kvm}</arch></guest></capabilities>'
)


@dataclass
class FakeVirsh:
    """What the tests see of it, and tell it."""

    directory: Path
    """A directory to put on PATH."""
    _file: Path = field(init=False)

    def __post_init__(self) -> None:
        self.directory.mkdir(parents=True)
        self._file = self.directory / "libvirt.json"
        self.tell(domains={}, commands=[], refuse="", kvm=True, architecture="x86_64", seconds=0)
        program = self.directory / "virsh"
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -SE {__file__} {self._file} "$@"\n')
        program.chmod(0o755)

    def tell(self, **values: Any) -> None:
        """Change what it knows."""
        known = json.loads(self._file.read_text()) if self._file.exists() else {}
        self._file.write_text(json.dumps({**known, **values}))

    def add(self, name: str, description: str, state: str = "running") -> None:
        """A domain that was there before."""
        self.tell(domains={**self.told("domains"), name: {"xml": description, "state": state}})

    def told(self, name: str) -> Any:
        """What it knows."""
        return json.loads(self._file.read_text())[name]

    @property
    def states(self) -> dict[str, str]:
        """State of each domain."""
        return {name: domain["state"] for name, domain in self.told("domains").items()}

    @property
    def commands(self) -> list[str]:
        """The commands that changed something."""
        return [command for command in self.told("commands") if command.split()[0] in ("create", "resume", "destroy")]


def _refuse(*lines: str) -> int:
    sys.stderr.write("".join(f"error: {line}\n" for line in lines))
    return 1


def _create(known: dict[str, Any]) -> int:
    description = Path("/dev/stdin").read_text()
    root = ET.fromstring(description)
    name, bridge = root.findtext("name") or "", root.find("devices/interface/source")
    assert bridge is not None
    image = root.find("devices/disk/source")
    failed = "Failed to create domain from /dev/stdin"
    if name in known["domains"]:
        return _refuse(failed, f"operation failed: domain '{name}' already exists with uuid 0")
    if bridge.get("bridge") not in BRIDGES:
        return _refuse(failed, f"Cannot get interface MTU on '{bridge.get('bridge')}': No such device")
    if image is not None and not Path(image.get("file", "")).exists():
        return _refuse(failed, f"Cannot access storage file '{image.get('file')}': No such file or directory")
    known["domains"][name] = {"xml": description, "state": "paused"}
    return 0


def _run(known: dict[str, Any], uri: str, command: list[str]) -> int:
    domains = known["domains"]
    name = command[1] if len(command) > 1 else ""
    if known["refuse"]:
        return _refuse("failed to connect to the hypervisor", known["refuse"])
    match command:
        case ["capabilities"]:
            kvm = '<domain type="kvm"/>' if known["kvm"] else ""
            print(_CAPABILITIES.format(architecture=known["architecture"], kvm=kvm))
        case ["list", "--all", "--name"]:
            print("\n".join(domains))
        case ["create", "/dev/stdin", "--paused"]:
            return _create(known)
        case ["dumpxml" | "domstate" | "resume" | "destroy", _] if name not in domains:
            return _refuse(f"failed to get domain '{name}'")
        case ["dumpxml", _]:
            print(domains[name]["xml"])
        case ["domstate", _]:
            print(domains[name]["state"])
        case ["resume", _]:
            domains[name]["state"] = "running"
        case ["destroy", _]:
            del domains[name]
        case _:
            return _refuse(f"unknown command: '{' '.join(command)}' at {uri}")
    return 0


def main() -> int:
    """One command: `virsh --quiet --connect URI COMMAND ...`."""
    file = Path(sys.argv[1])
    known: dict[str, Any] = json.loads(file.read_text())
    quiet, connect, uri, *command = sys.argv[2:]
    assert (quiet, connect) == ("--quiet", "--connect"), sys.argv
    if known["seconds"]:
        import time

        time.sleep(known["seconds"])
    status = _run(known, uri, command)
    known["commands"].append(f"{' '.join(command)} at {uri}")
    file.write_text(json.dumps(known))
    return status


if __name__ == "__main__":
    sys.exit(main())
