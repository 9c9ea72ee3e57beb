"""One machine and what it must run: the inputs of an installation, and what the state knows about it."""

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
    """The inputs of an installation, as the provider reads them."""

    recorded: Local[str | None] = default()
    """The disk that it is installed on, from the state. Empty: unknown, or another disk is wanted. None: it was never
    installed."""

    @property
    def has_etcd(self) -> bool:
        """Whether it runs a member of etcd: control plane machines and arbiters do."""
        return self.role != WORKER

    @property
    def all_addresses(self) -> tuple[str, ...]:
        """The addresses that the node's serving certificate may contain."""
        return self.addresses or (self.address,)

    @property
    def api(self) -> Mapping[str, Any] | None:
        """The cluster's API and credentials, with the names that gates use; None if there is no cluster."""
        return None if self.credentials is None else self.credentials.model_dump(by_alias=True)

    @property
    def installed(self) -> GateNode:
        """SSH access to the system on the machine's disk."""
        return self._node(self.host_key)

    @property
    def installing(self) -> GateNode:
        """SSH access to the live system on the machine."""
        return self._node(self.live_host_key)

    @property
    def ssh_port(self) -> int:
        """The SSH port."""
        return self.port or 22

    def arguments_now(self) -> tuple[str, ...]:
        """Kernel arguments for an installer that is published or started now. They are not part of a generation or a
        diff.

        - The time until which it may be used. After that, a script that was left on the web server boots a live system
          that does nothing; the next run publishes another script.
        - If the machine was installed before, the disk: install.sh then uses only that one.
        """
        end = f"metal-ipi.not-after={int(time.time() + self.valid_hours * 3600)}"
        return (end,) if self.recorded is None else (end, f"metal-ipi.device={self.recorded}")

    def script_now(self) -> str:
        """The machine's iPXE script, as it is published now."""
        end = " ".join(self.arguments_now())
        return re.sub(r"^kernel .*$", lambda line: f"{line[0]} {end}", self.script or "", count=1, flags=re.MULTILINE)

    def access(self, *nodes: GateNode) -> GateLogs:
        """How to log in to nodes, and where logs are written."""
        return GateLogs(nodes=nodes, user=self.user, private_key=self.private_key, directory=self.log_directory)

    def _node(self, host_key: str) -> GateNode:
        return GateNode(name=self.hostname, address=self.address, host_key=host_key, port=self.port)
