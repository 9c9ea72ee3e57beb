"""One machine and what is to run on it: the inputs of an installation, and what the state knows of it."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import Any

from metal_ipi.provider.given import Local, default
from metal_ipi.provider.resources.gate_kinds import GateLogs, GateNode
from metal_ipi.provider.resources.installation import InstallationArgs

CONTROL_PLANE, ARBITER, WORKER = "control-plane", "arbiter", "worker"


class Job(InstallationArgs):
    """An installation as the provider reads it."""

    recorded: Local[str | None] = default()
    """The disk that it is installed on, which the state tells; empty where that is not known, or another one is wanted;
    None where it never was installed."""

    @property
    def has_etcd(self) -> bool:
        """Whether it has a member of etcd, as control plane machines and arbiters have."""
        return self.role != WORKER

    @property
    def all_addresses(self) -> tuple[str, ...]:
        """The addresses which the node's serving certificate may name."""
        return self.addresses or (self.address,)

    @property
    def api(self) -> Mapping[str, Any] | None:
        """How the cluster's API is reached, by the names that gates use; None where there is no cluster."""
        return None if self.credentials is None else self.credentials.model_dump(by_alias=True)

    @property
    def installed(self) -> GateNode:
        """The machine as its disk runs it."""
        return self._node(self.host_key)

    @property
    def installing(self) -> GateNode:
        """The machine as the live system runs on it."""
        return self._node(self.live_host_key)

    @property
    def ssh_port(self) -> int:
        """The port of SSH."""
        return self.port or 22

    def arguments_now(self) -> tuple[str, ...]:
        """The kernel arguments for an installer that is published or started now; no part of a generation or a diff.

        - Until when it may be used. A script that was left behind on the web server boots a live system that does
          nothing; the next run publishes another.
        - That the machine was installed before, and on which disk: install.sh keeps to that.
        """
        end = f"metal-ipi.not-after={int(time.time() + self.valid_hours * 3600)}"
        return (end,) if self.recorded is None else (end, f"metal-ipi.device={self.recorded}")

    def script_now(self) -> str:
        """The machine's iPXE script as it is published now."""
        end = " ".join(self.arguments_now())
        return re.sub(r"^kernel .*$", lambda line: f"{line[0]} {end}", self.script or "", count=1, flags=re.MULTILINE)

    def access(self, *nodes: GateNode) -> GateLogs:
        """How to log in, and where logs go."""
        return GateLogs(nodes=nodes, user=self.user, private_key=self.private_key, directory=self.log_directory)

    def _node(self, host_key: str) -> GateNode:
        return GateNode(name=self.hostname, address=self.address, host_key=host_key, port=self.port)
