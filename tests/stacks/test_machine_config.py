"""What nodes are to have from their first boot on: what the installer is given for it, and what cannot be."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from metal_ipi.components.boot.ignition import data_of
from tests.mocks import plain
from tests.stacks.answers import declared, problems, settings, tells
from tests.stacks.rack import rack_text

_DISK = "/dev/disk/by-id/x"
_STREAM = {"streamFile": "stacks/rhcos-4.21.json"}
_STATIC = {"platform__networkBoot": "static", "platform__interface": "eno1"}
_TANG = {"url": "http://192.0.2.7", "thumbprint": "jwGN5tRFK-kF6pIX89ssF3khxxX"}


def test_the_installer_is_given_manifests_of_it() -> None:
    wanted = {"ntpServers": ["192.0.2.7"], "containerStorage": {"roles": ["worker"], "device": _DISK}}
    stdin = declared(machineConfig=wanted).inputs("install-assets-create")["stdin"]
    given: dict[str, str] = json.loads(plain(stdin))["manifests"]
    assert set(given) == {"99-master-chrony.yaml", "99-worker-chrony.yaml", "99-worker-container-storage.yaml"}
    (file,) = yaml.safe_load(given["99-master-chrony.yaml"])["spec"]["config"]["storage"]["files"]
    assert data_of(file["contents"]["source"]).startswith("server 192.0.2.7 iburst\n")


@pytest.mark.parametrize(
    ("text", "path", "why"),
    [
        (
            settings(machineConfig={"diskEncryption": {"tpm2": True}}, boot={**_STREAM, "diskless": True}),
            "machineConfig.diskEncryption",
            "machines without a disk run from memory",
        ),
        (
            settings(
                machineConfig={"containerStorage": {"device": _DISK}},
                boot={**_STREAM, "install": {"device": {"deviceName": _DISK}}},
            ),
            "machineConfig.containerStorage.device",
            "system of control-plane-0, control-plane-1, control-plane-2, worker-0, worker-1, worker-2 is",
        ),
        (
            rack_text(machineConfig={"diskEncryption": {"tang": [_TANG]}}, **_STATIC),
            "machineConfig.diskEncryption.tang",
            "no Tang server is reached before the disk is open",
        ),
    ],
)
def test_what_contradicts(text: dict[str, Any], path: str, why: str) -> None:
    assert tells(problems(text), path, why)
