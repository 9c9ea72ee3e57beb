"""From servers' NMState to the keyfiles of their machines, by nmstatectl, before any resource is registered."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pulumi

from metal_ipi.components.boot.host_network import PROGRAM, HostNetwork, HostNetworkError, Keyfiles, keyfiles
from metal_ipi.components.machines.node import Node
from metal_ipi.components.waiting import not_known
from metal_ipi.stacks.platforms.contract import Facility

_REMEDY = "put it on PATH (package nmstate, or `cargo install nmstatectl`; `make` builds it where there is cargo)"


@dataclass(frozen=True, kw_only=True)
class HostNetworks:
    """The keyfiles of all machines that have networks of their own."""

    made: Mapping[Node, Keyfiles] = field(default_factory=dict[Node, Keyfiles])
    asked: bool = True
    """Whether nmstatectl was available. If not, the keyfiles are unknown in the preview."""

    def of(self, node: Node, network: HostNetwork | None) -> pulumi.Output[Keyfiles | None]:
        """A machine's keyfiles; None if it uses DHCP or a static network."""
        if network is not None and not self.asked:
            return not_known()
        return pulumi.Output.from_input(self.made.get(node))


def host_networks(site: Facility, nodes: Sequence[Node]) -> HostNetworks:
    """Generate the keyfiles of all machines with nmstatectl.

    Raises HostNetworkError with all of its messages. If nmstatectl is missing, a preview logs that and goes on.
    """
    networks = {node: network for node in nodes if (network := site.host_network(node)) is not None}
    if not networks:
        return HostNetworks()
    program = shutil.which(PROGRAM)
    if program is None:
        servers = len({network.path for network in networks.values()})
        said = f"the networks of {servers} servers (networkConfig) need {PROGRAM}, which is not on PATH"
        if not pulumi.runtime.is_dry_run():
            raise HostNetworkError(f"{said}, and nothing was changed\n  -> {_REMEDY}")
        pulumi.log.warn(f"{said}: they were not checked by it. To check them, {_REMEDY}")
        return HostNetworks(asked=False)
    made: dict[Node, Keyfiles] = {}
    problems: list[str] = []

    def ask(network: HostNetwork) -> Keyfiles | str:
        try:
            return keyfiles(network, program)
        except HostNetworkError as error:
            return str(error)

    with ThreadPoolExecutor() as pool:
        for (node, network), found in zip(networks.items(), pool.map(ask, networks.values()), strict=True):
            if isinstance(found, Keyfiles):
                made[node] = found
            elif (problem := f"{network.path}.networkConfig\n      {found}") not in problems:
                problems.append(problem)
    if problems:
        lines = "\n".join(f"  {number}. {problem}" for number, problem in enumerate(sorted(problems), start=1))
        raise HostNetworkError(f"{PROGRAM} refuses these networks; nothing was changed\n{lines}")
    return HostNetworks(made=made)
