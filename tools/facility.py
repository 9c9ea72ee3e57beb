"""The lab as the driver sees it: a command line (`python -m lab`) and one file of facts. Imports nothing of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.errors import LabError
from tools.layout import Layout

KINDS = ("libvirt", "simulated")
INSTALLERS = ("stand-in", "real")


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Which lab a stack wants."""

    machines: str
    """One of KINDS."""
    installer: str
    """One of INSTALLERS."""
    rack: int | None
    """So many servers with a BMC; 0: machines are ordered; None: what a running lab has, else as 0."""
    kube_vip: bool
    """Whether machines announce the API's address."""
    metallb: bool
    """Whether nodes announce the addresses of services."""
    day_two: bool
    """Whether something is installed when the cluster is complete."""
    small_kubernetes: bool
    """Whether it does without a real Kubernetes API."""
    proxy: bool = False
    """Whether machines reach the outside by a forward proxy."""
    disconnected: bool = False
    """Whether nothing outside of its site resolves or answers."""

    @property
    def options(self) -> list[str]:
        """What `lab setup` and `lab up` are told alike."""
        more = {
            "--small-kubernetes": self.small_kubernetes,
            "--disconnected": self.disconnected,
            "--day-two": self.day_two,
            "--proxy": self.proxy,
        }
        chosen = [name for name, so in more.items() if so]
        return ["--machines", self.machines, "--openshift", self.installer, *chosen]


@dataclass(frozen=True, kw_only=True)
class Facility:
    """The lab of a stack."""

    layout: Layout
    """Where its runtime directory is."""

    def setup(self, wanted: Wanted, *, hub: bool = False) -> None:
        """Install and build what the lab needs; the lab says what it does, and does nothing when all is there."""
        more = {"--kube-vip": wanted.kube_vip, "--metallb": wanted.metallb, "--hub": hub}
        self._call(
            "setup", *wanted.options, *(name for name, so in more.items() if so), what="the lab could not be set up"
        )

    def up(self, wanted: Wanted) -> dict[str, Any]:
        """Start the lab, or find it running; returns its facts."""
        rack = "any" if wanted.rack is None else str(wanted.rack)
        self._call("up", *self._state, *wanted.options, "--rack", rack, what="the lab could not be started")
        return self.facts()

    def reserve(self, reservations: Mapping[str, str]) -> None:
        """Have the lab reserve hardware, id → plan; what is reserved already is left as it is."""
        if reservations:
            command = [sys.executable, "-m", "lab.metal_api.reserve", *self._state]
            pairs = [f"{identity}={plan}" for identity, plan in reservations.items()]
            self._call("run", *self._state, "--", *command, *pairs, what="the lab could not reserve hardware")

    def hub(self) -> None:
        """Start the hub in the lab that runs, or find it running."""
        self._call("hub", *self._state, what="the hub could not be started")

    def cluster_api(self, providers: Path) -> None:
        """Install Cluster API in the hub that runs, and a folder's providers (see lab/cluster_api/providers.py)."""
        self._call(
            *("cluster-api", *self._state, "--providers", str(providers)), what="Cluster API could not be installed"
        )

    def hub_down(self) -> None:
        """End the hub; raises LabError when anything of it is left."""
        self._call("hub-down", *self._state, what="the hub was not taken down cleanly")

    def down(self) -> None:
        """End the lab; raises LabError when anything of it is left."""
        self._call("down", *self._state, what="the lab was not taken down cleanly")

    def facts(self) -> dict[str, Any]:
        """What the running lab tells about itself."""
        return self._told(self.layout.lab / "facts.json", "the lab's", "start the lab with `make up`")

    def _told(self, path: Path, whose: str, remedy: str) -> dict[str, Any]:
        try:
            return json.loads(path.read_text())
        except (OSError, ValueError) as error:
            raise LabError(
                f"{whose} facts cannot be read",
                why=f"{path}: {error}",
                remedy=remedy,
            ) from error

    def hub_facts(self) -> dict[str, Any]:
        """What the running hub tells about itself: address, kubeconfig, images."""
        return self._told(self.layout.lab / "hub" / "facts.json", "the hub's", "start the hub with `make hub`")

    def enter(self, command: Sequence[str]) -> list[str]:
        """The command line that runs a command inside the lab's namespaces."""
        return [sys.executable, "-m", "lab", "run", *self._state, "--", *command]

    def environment(self, facts: dict[str, Any]) -> dict[str, str]:
        """What makes clients inside trust the lab's certificates, and nothing else; and what has openshift-install make
        a cluster in FIPS mode although neither it nor this system is FIPS-capable (installer, pkg/types/validation)."""
        trust = {name: facts["ca_path"] for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")}
        return {**trust, "OPENSHIFT_INSTALL_SKIP_HOSTCRYPT_VALIDATION": "1"}

    @property
    def _state(self) -> list[str]:
        return ["--state", str(self.layout.lab)]

    def _call(self, *arguments: str, what: str) -> None:
        # What the lab prints is progress: it goes to stderr, so that stdout stays for what was asked for.
        result = subprocess.run(
            [sys.executable, "-m", "lab", *arguments],
            cwd=self.layout.root,
            check=False,
            stdout=sys.stderr.fileno(),
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        if result.returncode != 0:
            raise LabError(
                what,
                why=f"`python -m lab {arguments[0]}` ended with status {result.returncode}; its message is above",
                remedy=f"correct that and run this again; logs are in {self.layout.lab}",
            )
