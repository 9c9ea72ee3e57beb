"""sushy-tools' Redfish application; each BMC has its own instance.

Its module has the application, with everything that belongs to it, in a global variable, so each BMC has an instance of
the module. What it shows beside its system (chassis, drives) comes from its configuration.
"""

from __future__ import annotations

import importlib.util
import logging
import sys
import warnings
from pathlib import Path
from typing import Any

from lab.bmc.driver import SystemsDriver
from lab.machines.base import MachineSpec

_MODULE = "sushy_tools.emulator.main"
STORAGE = "scsi"


def load(driver: SystemsDriver, spec: MachineSpec, name: str, directory: Path) -> Any:
    """The WSGI application of a BMC; `directory` is for sushy-tools' files."""
    found = importlib.util.find_spec(_MODULE)
    assert found is not None and found.origin is not None
    # Flask finds templates by the module's name.
    named = importlib.util.spec_from_file_location(f"{_MODULE}_{name.replace('-', '_')}", found.origin)
    assert named is not None and named.loader is not None
    module = importlib.util.module_from_spec(named)
    sys.modules[named.name] = module
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # WebOb, which sushy-tools imports, imports cgi
        named.loader.exec_module(module)
    application = module.app

    # A class attribute in the place of the property that would choose among sushy-tools' own drivers.
    application.__class__ = type("Bmc", (type(application),), {"systems": driver})
    application.config.update(_configuration(spec, name, directory))
    application.logger.setLevel(logging.WARNING)
    return application


def _configuration(spec: MachineSpec, name: str, directory: Path) -> dict[str, Any]:
    drives = [
        {"Id": disk.serial, "Name": f"Drive {number}", "CapacityBytes": disk.size_mib << 20, "Protocol": "SAS"}
        for number, disk in enumerate(spec.disks)
    ]
    controller = {"MemberId": "0", "Name": "virtio-scsi", "SpeedGbps": 12}
    storage = {
        "Id": STORAGE,
        "Name": "Local Storage",
        "StorageControllers": [controller],
        "Drives": [drive["Id"] for drive in drives],
    }
    return {
        "SUSHY_EMULATOR_STATE_DIR": str(directory),
        "SUSHY_EMULATOR_CHASSIS": [{"Id": "1", "Name": f"{name}-chassis", "UUID": spec.id}],
        "SUSHY_EMULATOR_STORAGE": {spec.id: [storage]},
        "SUSHY_EMULATOR_DRIVES": {(spec.id, STORAGE): drives},
    }
