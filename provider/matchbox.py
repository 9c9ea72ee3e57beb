"""The boot tree for a site whose boot service is matchbox: profiles and groups in matchbox's data directory.

A machine has a profile and a group while it must boot from the network. Without a group matchbox answers `/ipxe` with
404, which ends iPXE like a missing script: the firmware boots from the disk. The machine's iPXE script itself is stored
in `generic/`, where matchbox does not serve it without a group: later runs read from it what was published.

Source: poseidon/matchbox, docs/matchbox.md (profiles, groups, selector `mac`) and matchbox/http/ipxe.go: kernel with
its arguments on one line, each initrd unchanged.
"""

from __future__ import annotations

import json
from typing import Any

from metal_ipi.provider.errors import InvalidInputs

GROUPS, PROFILES, SCRIPTS = "groups", "profiles", "generic"
"""Directories in the data directory."""


def name(mac: str) -> str:
    """The name of a machine's profile and group; `mac` as 52-54-00-12-34-56."""
    return f"metal-ipi-{mac}"


def profile(mac: str, script: str) -> str:
    """The profile that boots the same as an iPXE script. Raises InvalidInputs for other iPXE commands."""
    boot: dict[str, Any] = {"kernel": "", "initrd": [], "args": []}
    for line in script.splitlines():
        command, _, rest = line.partition(" ")
        if command == "kernel":
            boot["kernel"], *boot["args"] = rest.split()
        elif command == "initrd":
            boot["initrd"].append(rest)
        elif line and line != "boot" and not line.startswith("#"):
            raise InvalidInputs(
                f"matchbox has no place for `{command}` of an iPXE script: remove it, or do not use matchbox"
            )
    return json.dumps({"id": name(mac), "name": name(mac), "boot": boot}, indent=2) + "\n"


def group(mac: str) -> str:
    """The group that assigns a machine its profile."""
    selector = {"mac": mac.replace("-", ":")}
    return json.dumps({"id": name(mac), "name": name(mac), "profile": name(mac), "selector": selector}, indent=2) + "\n"
