"""What our program gives the machines of a facility, rendered from the real installer's files."""

from __future__ import annotations

import json

from tests.conformance import ignition
from tests.conformance.facilities import Facility
from tests.mocks import plain

_DISK, _IN_PLACE = "/etc/metal-ipi/disk.ign", "/etc/metal-ipi/pointer.ign"


def live(facility: Facility, machine: str) -> str:
    """The Ignition of the live system that installs a machine."""
    (text,) = facility.uploaded(f"-installers/{machine}.ign").values()
    return text


def pointer(facility: Facility, role: str) -> str:
    """What a machine of a role is configured by once it is installed, as it gets it: as userdata, or on its disk."""
    name = f"{facility.config['clusterName']}-{role}-0"
    if facility.name in ("rack", "arbiter"):
        return ignition.files(json.loads(live(facility, name)))[_DISK].decode()
    return str(plain(facility.recorder.one(f"{name}-device").inputs["userData"]))


def bootstrap(facility: Facility) -> str:
    """What configures the bootstrap machine, as it gets it."""
    if facility.name == "rack":
        (text,) = facility.uploaded("/bootstrap.ign").values()
        return text
    return str(plain(facility.recorder.one("da11-bootstrap").inputs["userData"]))


def in_place_pointer(facility: Facility) -> str:
    """What a single node is configured by once it is installed, besides what bootkube left."""
    return ignition.files(json.loads(live(facility, "single-control-plane-0")))[_IN_PLACE].decode()
