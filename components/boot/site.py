"""The site's boot service: a static tree that any web server can serve, and nothing else.

    boot/boot.ipxe                    the chain script: where DHCP sends iPXE to
    boot/mac-52-54-00-12-34-56.ipxe   a machine's own script, only while it is to boot from the network

A machine without a script of its own leaves iPXE, and its firmware goes on to the next device of its boot order: the
disk. So an installed machine never gets into the installer again, and boots also while the web server is down.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from components.boot.stream import PxeArtifacts

_CHAIN = """\
#!ipxe
# A machine has a script of its own while it is to boot from the network. Without one the next device boots: the disk.
chain --replace mac-${net0/mac:hexhyp}.ipxe || exit
"""


def chain_script() -> str:
    """The script that every machine's iPXE is sent to; names are relative to its own URL."""
    return _CHAIN


@dataclass(frozen=True, kw_only=True)
class MatchboxMachine:
    """What matchbox has to know of one machine."""

    name: str
    """Its host name: the name of its profile and of its group."""
    mac: str
    """As 52:54:00:12:34:56."""
    artifacts: PxeArtifacts
    """What it boots."""
    arguments: tuple[str, ...]
    """The kernel arguments (`ipxe.installer_arguments`)."""
    ignition: str
    """The live system's Ignition (`installer.live_config`); secret."""


def matchbox_ignition_url(endpoint: str, mac: str) -> str:
    """Where matchbox at `endpoint` serves a machine's Ignition: what its kernel arguments have to name."""
    return f"{endpoint.rstrip('/')}/ignition?mac={mac.lower().replace(':', '-')}"


def matchbox_files(machine: MatchboxMachine) -> dict[str, str]:
    """The same boot as files below matchbox's data directory (/var/lib/matchbox), by path.

    Source: poseidon/matchbox, docs/matchbox.md (profiles, groups, selector `mac`) and docs/ignition.md: a file
    that ends in .ign is served as it is, not as a template.
    """
    artifacts = machine.artifacts
    profile = {
        "id": machine.name,
        "name": f"{artifacts.release} for {machine.name}",
        "ignition_id": f"{machine.name}.ign",
        "boot": {
            "kernel": artifacts.kernel.url,
            "initrd": [f"--name main {artifacts.initramfs.url}"],
            "args": list(machine.arguments),
        },
    }
    group = {
        "id": machine.name,
        "name": machine.name,
        "profile": machine.name,
        "selector": {"mac": machine.mac.lower()},
    }
    return {
        f"profiles/{machine.name}.json": json.dumps(profile, indent=2) + "\n",
        f"groups/{machine.name}.json": json.dumps(group, indent=2) + "\n",
        f"ignition/{machine.name}.ign": machine.ignition,
    }
