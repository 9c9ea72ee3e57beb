"""A whole cluster as one component, from the settings of a stack file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pulumi

from metal_ipi.provider.types import Secret
from metal_ipi.stacks import program
from metal_ipi.stacks.problems import Problem
from metal_ipi.stacks.settings import Settings, SettingsError, of_tree


@dataclass(frozen=True, kw_only=True)
class ClusterArgs:
    """Arguments of `Cluster`."""

    settings: Mapping[str, Any]
    """The settings, named as in a stack file, without `metal-ipi:`. They must be plain values, secrets too: the
    component marks them as secrets wherever it uses them."""
    directory: Path | None = None
    """The directory to which relative paths in the settings refer. None: the working directory."""


_THROUGH_A_HUB = Problem(
    path="metal-ipi:clusterApi",
    value="{hub: ...}",
    why="the component installs a cluster itself, without a hub",
    remedy="remove it, or install the cluster with a stack file of its own",
)


class Cluster(pulumi.ComponentResource):
    """An OpenShift or OKD cluster on bare metal, installed, checked and kept as its settings say. One per stack.

    The settings are those of a stack file. They must be known before anything is made. All problems with them are
    reported at once, before anything is changed.
    """

    cluster: pulumi.Output[dict[str, str]]
    """`name`, `domain` and `version`."""
    api: pulumi.Output[dict[str, str]]
    """`url`; and `address`, if the API has an address of its own."""
    ingress: pulumi.Output[dict[str, str]] | None
    """`address`: the address of `*.apps`; none if it has none of its own."""
    service_addresses: pulumi.Output[dict[str, Any]] | None
    """`pools`: the addresses for services of type LoadBalancer, by pool; none if the stack does not install MetalLB."""
    cost: pulumi.Output[dict[str, Any]] | None
    """The cost of what is ordered; none if nothing is ordered."""
    dns: pulumi.Output[dict[str, Any]] | None
    """`needed`: the records that you must set by hand; none if this program sets them."""
    bootstrap: pulumi.Output[dict[str, bool]]
    """`present`: whether the bootstrap machine exists."""
    nodes: pulumi.Output[list[dict[str, Any]]]
    """`name`, `role`, `public_ipv4`, `private_ipv4`, `ipv6` (dual stack) and `checks` of each node, known once its
    checks passed."""
    kubeconfig: pulumi.Output[Secret[str]]
    """An administrator's kubeconfig. Secret."""
    kubeadmin_password: pulumi.Output[Secret[str]]
    """The first password of user kubeadmin. Secret."""

    def __init__(self, name: str, args: ClusterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        """Raises SettingsError before anything is registered."""
        settings = _beginning_at(args.directory or Path.cwd(), of_tree(dict(args.settings)))
        if settings.cluster_api is not None:
            raise SettingsError(pulumi.get_stack(), [_THROUGH_A_HUB])
        boot = program.boot_spec(settings)
        super().__init__("metal-ipi:index:Cluster", name, None, opts)
        outputs = program.declare(settings, boot, parent=self)
        found = {key: pulumi.Output.from_input(value) for key, value in outputs.items()}
        self.cluster, self.api = found["cluster"], found["api"]
        self.service_addresses, self.cost, self.dns = map(found.get, ("serviceAddresses", "cost", "dns"))
        self.ingress = found.get("ingress")
        self.bootstrap, self.nodes = found["bootstrap"], found["nodes"]
        self.kubeconfig, self.kubeadmin_password = found["kubeconfig"], found["kubeadminPassword"]
        self.register_outputs(dict(found))


def _beginning_at(directory: Path, settings: Settings) -> Settings:
    """The settings with absolute paths; other code would resolve relative ones against metal-ipi's own directory."""

    def absolute(path: str | None) -> str | None:
        return None if path is None else str(directory.absolute() / path)

    install, boot, cost = settings.install, settings.boot, settings.cost
    places = {name: absolute(getattr(install, name)) for name in ("work_directory", "log_directory")}
    return settings.model_copy(
        update={
            "install": install.model_copy(update=places),
            "boot": boot.model_copy(update={"stream_file": absolute(boot.stream_file)}),
            "cost": cost.model_copy(update={"price_file": absolute(cost.price_file)}),
        }
    )
