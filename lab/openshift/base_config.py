"""What the lab's operating system adds to a machine's configuration: stand-ins for programs that it does not have.

CoreOS images may bring Ignition configs of their own (/usr/lib/ignition/base.d), which Ignition merges below the
machine's. So the real installer's files and the real machine config apply as they are, and what the lab changes of them
is this one list of units, each by its name: a drop-in that starts a program of the lab's in the place of one that comes
with OpenShift's release image or with RHCOS, a unit that RHCOS has and the lab's image lacks, or a mask.

Sources: openshift/installer, data/data/bootstrap; openshift/machine-config-operator, templates.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

_PROGRAM = "/usr/local/bin/lab-openshift"
_FACILITY = "/etc/lab-openshift/facility.json"


@dataclass(frozen=True, kw_only=True)
class StandIn:
    """A unit whose program is another one in the lab."""

    unit: str
    why: str
    runs: str = ""
    """What the lab's program does, by its name for it; empty: nothing."""


STAND_INS = (
    StandIn(unit="bootkube.service", runs="bootkube", why="bootkube.sh runs programs of the release image"),
    StandIn(unit="kubelet.service", runs="kubelet", why="kubelet comes with the release's node image"),
    StandIn(
        unit="machine-config-daemon-firstboot.service",
        runs="firstboot",
        why="the machine config daemon is run from the release image; it restarts the machine, as the real one does",
    ),
    StandIn(unit="machine-config-daemon-pull.service", why="it pulls the release's image of the machine config daemon"),
    StandIn(
        unit="ovs-configuration.service", runs="br-ex", why="configure-ovs.sh wants NetworkManager and Open vSwitch"
    ),
    StandIn(unit="nodeip-configuration.service", why="it runs a program of the release image"),
    StandIn(unit="node-image-pull.service", why="it pulls the release's node image"),
    StandIn(unit="node-image-overlay.service", why="it puts the release's node image over the system"),
    StandIn(unit="crio-configure.service", why="it asks the release image for a name"),
    StandIn(unit="release-image.service", why="it pulls the release image"),
    StandIn(unit="progress.service", why="report-progress.sh wants oc; the stand-in for bootkube reports by itself"),
)
"""Units of the real configuration that start something else in the lab."""

MASKED = {
    "chown-gatewayd-key.service": "the image has no systemd-journal-gatewayd",
    "systemd-journal-gatewayd.socket": "the image has no systemd-journal-gatewayd",
    "node-valid-hostname.service": "mco-hostname wants hostnamectl; the name is in /etc/hostname",
    "nmstate-configuration.service": "the image has no nmstate",
    "wait-for-br-ex-up.service": "it waits for an event of NetworkManager's",
    "wait-for-primary-ip.service": "it waits for nmstate",
    "wait-for-ipsec-connect.service": "the image has no IPsec",
    "NetworkManager-clean-initrd-state.service": "the image has no NetworkManager",
}
"""Units of the real configuration that do not start in the lab, and why."""

IMAGE_UNITS = (
    "crio.service",
    "openvswitch.service",
    "systemd-user-sessions.service",
    "getty.target",
    "NetworkManager.service",
)
"""Units that RHCOS's image has, that others require, and that have nothing to do in the lab."""


def render(facility: Mapping[str, str] | None) -> str:
    """The config, JSON. `facility` says who runs API servers: server, name and authority; None: nobody does."""
    units: list[dict[str, Any]] = []
    for each in STAND_INS:
        starts = f"{_PROGRAM} {each.runs}" if each.runs else f'/usr/bin/echo "left out in the lab: {each.why}"'
        text = f"# The lab's stand-in: {each.why}.\n[Service]\nExecStartPre=\nExecStart=\nExecStart={starts}\n"
        units.append({"name": each.unit, "dropins": [{"name": "50-lab.conf", "contents": text}]})
    units += [{"name": name, "mask": True} for name in MASKED]
    for name in IMAGE_UNITS:
        service = "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/usr/bin/true\n"
        text = f"[Unit]\nDescription={name} (lab: nothing)\n" + service * name.endswith(".service")
        units.append({"name": name, "contents": text})
    files = [_file(_FACILITY, json.dumps(dict(facility)))] if facility is not None else []
    document = {"ignition": {"version": "3.2.0"}, "storage": {"files": files}, "systemd": {"units": units}}
    return json.dumps(document, indent=1) + "\n"


def _file(path: str, text: str) -> dict[str, Any]:
    return {"path": path, "mode": 0o600, "overwrite": True, "contents": {"source": f"data:,{quote(text)}"}}
