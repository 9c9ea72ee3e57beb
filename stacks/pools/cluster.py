"""The cluster as the stack of a pool sees it: through outputs of the cluster's stack."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pulumi

from metal_ipi.components.install.previous_runs import has_output, machines_in
from metal_ipi.components.machines.node import Node
from metal_ipi.components.waiting import not_known
from metal_ipi.provider.types import ClusterCredentials
from metal_ipi.stacks.pools.splitting import asks_state, cluster_of, of_pool
from metal_ipi.stacks.pools.told import PUBLIC, SECRET
from metal_ipi.stacks.settings import Settings


class ClusterMissing(ValueError):
    """The cluster's stack does not exist, or has not been completed yet."""


def machines_of(settings: Settings, stack: str) -> frozenset[str]:
    """The machines in the state of the cluster's stack, by short host name. `stack` is its name.

    Empty if the split does not depend on them.
    """
    if settings.rehearsal or not asks_state(settings):
        return frozenset()
    return machines_in(_full(stack))


def pool_of(settings: Settings) -> Settings:
    """The settings of the running stack, which is a pool's. Raises SettingsError and ClusterMissing."""
    assert settings.pool is not None
    stack = cluster_of(pulumi.get_stack(), settings.pool)
    try:
        there = machines_of(settings, stack)
        # A preview may run before the cluster's stack has outputs for pools.
        told = pulumi.runtime.is_dry_run() or has_output(_full(stack), PUBLIC)
    except Exception as error:  # the SDK raises no narrower class
        raise ClusterMissing(_missing(stack, str(error))) from error
    if not told:
        raise ClusterMissing(_missing(stack, "it has no outputs for pools yet"))
    return of_pool(settings, stack, there)


@dataclass(kw_only=True)
class ReferencedMachine:
    """A machine of another stack; see `Machine`."""

    machine_id: pulumi.Output[str]
    public_ipv4: pulumi.Output[str]
    private_ipv4: pulumi.Output[str]
    public_ipv6: pulumi.Output[str]
    ipv6: str | None
    console: pulumi.Output[str]
    generation: pulumi.Output[str]
    """The generation that it runs; empty if it is not installed to disk."""

    @property
    def resource(self) -> pulumi.Resource:
        raise NotImplementedError("the resource is another stack's")


@dataclass(frozen=True, kw_only=True)
class ReferencedKeys:
    """The cluster's keys."""

    id: pulumi.Output[str]
    public_key: pulumi.Output[str]
    private_key: pulumi.Output[str]
    host_key_seed: pulumi.Output[str]


class ReferencedCluster:
    """The cluster of the running stack, which is a pool's. In a rehearsal all its values are unknown."""

    def __init__(self, settings: Settings, control_plane: Sequence[Node]) -> None:
        """
        Args:
            settings: those of the pool.
            control_plane: the cluster's control plane nodes.
        """
        assert settings.pool is not None
        self._control_plane = control_plane
        self.stack = cluster_of(pulumi.get_stack(), settings.pool)
        """The name of the cluster's stack."""
        self.reference: pulumi.StackReference | None = None
        """None in a rehearsal."""
        if not settings.rehearsal:
            self.reference = pulumi.StackReference("cluster", _full(self.stack))
        self._public, self._secret = self._output(PUBLIC), pulumi.Output.secret(self._output(SECRET))

    @property
    def project_stack(self) -> str:
        """`<project>/<stack>`, as in the markers in DNS."""
        return f"{pulumi.get_project()}/{self.stack}"

    @property
    def keys(self) -> ReferencedKeys:
        """The cluster's keys."""
        return ReferencedKeys(
            id=self._public.apply(lambda found: str(found["run"])),
            public_key=self._public.apply(lambda found: str(found["publicKey"])),
            private_key=self._secret.apply(lambda found: str(found["privateKey"])),
            host_key_seed=self._secret.apply(lambda found: str(found["hostKeySeed"])),
        )

    @property
    def worker_pointer(self) -> pulumi.Output[str]:
        """worker.ign of the installer; secret."""
        return self._secret.apply(lambda found: str(found["workerPointer"]))

    @property
    def credentials(self) -> ClusterCredentials:
        """The administrator's credentials for the API."""
        return ClusterCredentials(
            url=self._public.apply(lambda found: str(found["apiUrl"])),
            ca_pem=self._secret.apply(lambda found: str(found["caPem"])),
            client_cert_pem=self._secret.apply(lambda found: str(found["clientCertPem"])),
            client_key_pem=self._secret.apply(lambda found: str(found["clientKeyPem"])),
        )

    @property
    def platform(self) -> pulumi.Output[Mapping[str, Any]]:
        """The outputs that the cluster's platform shares."""
        return self._public.apply(lambda found: found["platform"])

    @property
    def ingress_address(self) -> pulumi.Output[str]:
        """The address of `*.apps`, if it has one of its own."""
        return self._public.apply(lambda found: str(found["ingressAddress"]))

    def control_plane(self) -> dict[Node, ReferencedMachine]:
        """The cluster's control plane machines."""
        return {node: self._machine(node.hostname) for node in self._control_plane}

    def _machine(self, hostname: str) -> ReferencedMachine:
        def of(name: str) -> pulumi.Output[str]:
            return self._public.apply(lambda found: str(found["controlPlane"][hostname].get(name) or ""))

        return ReferencedMachine(
            machine_id=of("machineId"),
            public_ipv4=of("publicIpv4"),
            private_ipv4=of("privateIpv4"),
            public_ipv6=of("publicIpv6"),
            ipv6=None,
            console=of("console"),
            generation=of("generation"),
        )

    def _output(self, name: str) -> pulumi.Output[Any]:
        reference = self.reference
        if reference is None:
            return not_known()
        # The SDK's `get_output` makes an Output of each value in all outputs: 8,000 of them for a hundred nodes.
        value = reference.outputs.apply(lambda outputs: outputs.get(name))
        told = value.apply(lambda found: not_known() if found is None else found)
        # Whoever has one secret output gets all as secrets; the reference has the names of those that are.
        return reference.secret_output_names.apply(
            lambda names: told if name in names else pulumi.Output.unsecret(told)
        )


def _full(stack: str) -> str:
    return f"{pulumi.get_organization()}/{pulumi.get_project()}/{stack}"


def _missing(stack: str, why: str) -> str:
    return (
        f"the stack of the cluster, '{stack}', cannot be used by the stack of its pool: {why}\n"
        f"bring it up first, to its end, with the same settings: `make up STACK={stack}`, or"
        f" `pulumi up --stack {stack}`"
    )
