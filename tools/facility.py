"""Controls the lab through its command line (`python -m lab`) and its file of facts. Imports nothing of the lab."""

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
    """The lab that a stack needs."""

    machines: str
    """One of KINDS."""
    installer: str
    """One of INSTALLERS."""
    rack: int | None
    """Number of servers with a BMC; 0: machines are ordered; None: keep those of a running lab, else 0."""
    kube_vip: bool
    """Whether machines announce the API's address (kube-vip)."""
    metallb: bool
    """Whether nodes announce the addresses of services (MetalLB)."""
    day_two: bool
    """Whether something is installed after the cluster is complete."""
    small_kubernetes: bool
    """Whether a small imitation replaces the real Kubernetes API."""
    proxy: bool = False
    """Whether machines use a forward proxy to reach the internet."""
    disconnected: bool = False
    """Whether no names and servers outside the site can be reached."""

    @property
    def options(self) -> list[str]:
        """The options that `lab setup` and `lab up` share."""
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
    """The paths, with the lab's runtime directory."""

    def setup(self, wanted: Wanted, *, hub: bool = False) -> None:
        """Installs and builds what the lab needs. The lab prints what it does, and does nothing if all is there."""
        more = {"--kube-vip": wanted.kube_vip, "--metallb": wanted.metallb, "--hub": hub}
        self._call(
            "setup", *wanted.options, *(name for name, so in more.items() if so), what="the lab could not be set up"
        )

    def up(self, wanted: Wanted) -> dict[str, Any]:
        """Starts the lab if it is not running; returns its facts."""
        rack = "any" if wanted.rack is None else str(wanted.rack)
        self._call("up", *self._state, *wanted.options, "--rack", rack, what="the lab could not be started")
        return self.facts()

    def reserve(self, reservations: Mapping[str, str]) -> None:
        """Reserves hardware in the lab (reservation id to plan). Existing reservations stay."""
        if reservations:
            command = [sys.executable, "-m", "lab.metal_api.reserve", *self._state]
            pairs = [f"{identity}={plan}" for identity, plan in reservations.items()]
            self._call("run", *self._state, "--", *command, *pairs, what="the lab could not reserve hardware")

    def hub(self) -> None:
        """Starts the hub in the running lab, if it is not running."""
        self._call("hub", *self._state, what="the hub could not be started")

    def cluster_api(self, providers: Path) -> None:
        """Installs Cluster API in the running hub, and the providers in a folder (see lab/cluster_api/providers.py)."""
        self._call(
            *("cluster-api", *self._state, "--providers", str(providers)), what="Cluster API could not be installed"
        )

    def hub_down(self) -> None:
        """Stops the hub; raises LabError if anything of it is left."""
        self._call("hub-down", *self._state, what="the hub was not taken down cleanly")

    def down(self) -> None:
        """Stops the lab; raises LabError if anything of it is left."""
        self._call("down", *self._state, what="the lab was not taken down cleanly")

    def facts(self) -> dict[str, Any]:
        """The facts of the running lab."""
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
        """The facts of the running hub: address, kubeconfig, images."""
        return self._told(self.layout.lab / "hub" / "facts.json", "the hub's", "start the hub with `make hub`")

    def enter(self, command: Sequence[str]) -> list[str]:
        """The command line that runs a command inside the lab's namespaces."""
        return [sys.executable, "-m", "lab", "run", *self._state, "--", *command]

    def environment(self, facts: dict[str, Any]) -> dict[str, str]:
        """Environment variables for programs in the lab: they trust only the lab's certificates, and openshift-install
        makes a FIPS cluster although neither it nor this computer supports FIPS (installer, pkg/types/validation)."""
        trust = {name: facts["ca_path"] for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")}
        return {**trust, "OPENSHIFT_INSTALL_SKIP_HOSTCRYPT_VALIDATION": "1"}

    @property
    def _state(self) -> list[str]:
        return ["--state", str(self.layout.lab)]

    def _call(self, *arguments: str, what: str) -> None:
        # The lab's output is progress, so it goes to stderr. stdout is only for requested results.
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
                remedy=f"correct that and run the same command again; logs are in {self.layout.lab}",
            )
