"""One machine and what is to run on it: the inputs of an installation, and what the state knows of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from provider.gates import Access, Node
from provider.given import Local, default
from provider.resources.installation import InstallationArgs

CONTROL_PLANE, WORKER = "control-plane", "worker"


class Job(InstallationArgs):
    """An installation as the provider reads it."""

    recorded: Local[str | None] = default()
    """The disk that it is installed on, which the state tells; empty where that is not known, or another one is wanted;
    None where it never was installed."""

    @property
    def all_addresses(self) -> tuple[str, ...]:
        """The addresses which the node's serving certificate may name."""
        return self.addresses or (self.address,)

    @property
    def api(self) -> Mapping[str, Any] | None:
        """How the cluster's API is reached, by the names that gates use; None where there is no cluster."""
        return None if self.credentials is None else self.credentials.model_dump(by_alias=True)

    @property
    def installed(self) -> Node:
        """The machine as its disk runs it."""
        return self._node(self.host_key)

    @property
    def installing(self) -> Node:
        """The machine as the live system runs on it."""
        return self._node(self.live_host_key)

    @property
    def ssh_port(self) -> int:
        """The port of SSH."""
        return self.port or 22

    def access(self, *nodes: Node) -> Access:
        """How to log in, and where logs go."""
        return Access(nodes=nodes, user=self.user, private_key=self.private_key, log_directory=self.log_directory)

    def _node(self, host_key: str) -> Node:
        return Node(
            name=self.hostname,
            address=self.address,
            host_key=host_key,
            machine_id=self.machine_id,
            console=None,
            port=self.ssh_port,
        )
