"""Run the stand-in for openshift-install in a directory."""

from __future__ import annotations

import base64
import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

DOMAIN = "lab.example.test"
SSH_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA tests"


def install_config(**changes: Any) -> dict[str, Any]:
    """A valid install-config with three control plane machines and a worker; None removes a key."""
    config: dict[str, Any] = {
        "apiVersion": "v1",
        "baseDomain": "example.test",
        "metadata": {"name": "lab"},
        "controlPlane": {"name": "master", "replicas": 3},
        "compute": [{"name": "worker", "replicas": 1}],
        "networking": {"networkType": "OVNKubernetes"},
        "platform": {"none": {}},
        "pullSecret": json.dumps({"auths": {"registry.test": {"auth": "c2VjcmV0OnB1bGw="}}}),
        "sshKey": SSH_KEY,
    }
    config.update(changes)
    return {key: value for key, value in config.items() if value is not None}


def write_config(directory: Path, **changes: Any) -> None:
    directory.mkdir(exist_ok=True)
    (directory / "install-config.yaml").write_text(yaml.safe_dump(install_config(**changes)))


def contents(config: Mapping[str, Any]) -> dict[str, bytes]:
    """The files of an Ignition config, by path."""
    prefix = "data:text/plain;charset=utf-8;base64,"
    files = {entry["path"]: entry["contents"]["source"] for entry in config["storage"]["files"]}
    assert all(source.startswith(prefix) for source in files.values())
    return {path: base64.b64decode(source.removeprefix(prefix)) for path, source in files.items()}


@dataclass
class Facility:
    """Where the installer is run, and how it is told what it needs."""

    program: Path
    root: Path

    @property
    def assets(self) -> Path:
        return self.root / "assets"

    def install(self, *arguments: str, **extra: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self.program.with_name("openshift-install")), *arguments, "--dir", str(self.assets)],
            env={**os.environ, **extra},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
