"""The base of a cluster: keys, assets, preflight and the platform. There is no machine yet."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pulumi

from metal_ipi.components.boot.host_network import Keyfiles
from metal_ipi.components.boot.ipxe import BootSpec
from metal_ipi.components.cluster.pool import Access
from metal_ipi.components.install.assets import InstallAssets
from metal_ipi.components.install.stage import Stage
from metal_ipi.components.machines.contract import Platform
from metal_ipi.components.machines.node import Node
from metal_ipi.provider.types import ClusterKeys, ClusterKeysArgs, Preflight, Provider, ProviderArgs
from metal_ipi.stacks import api_address, assets, connections, mirror
from metal_ipi.stacks.host_networks import HostNetworks, host_networks
from metal_ipi.stacks.names import Nodes
from metal_ipi.stacks.platforms.contract import Facility
from metal_ipi.stacks.platforms.registry import facility
from metal_ipi.stacks.preflight import plan
from metal_ipi.stacks.protection import protection
from metal_ipi.stacks.sections.forms import PROJECT
from metal_ipi.stacks.settings import Settings


@dataclass(frozen=True, kw_only=True)
class Base:
    """What all steps work with."""

    settings: Settings
    site: Facility
    nodes: Nodes
    networks: HostNetworks
    boot: BootSpec
    """What machines boot, from where they fetch it."""
    stage: Stage
    """How far earlier runs came."""
    ours: pulumi.ResourceOptions
    """For resources of our own provider."""
    components: pulumi.ResourceOptions
    """For components, which hand the provider on to their children."""
    invoke: pulumi.InvokeOptions
    """For functions of our own provider."""
    keys: ClusterKeys
    access: Access
    assets: InstallAssets
    platform: Platform
    api_address: pulumi.Output[str] | None
    """The API's own address; None where its names resolve to the machines that serve it."""
    ingress_address: pulumi.Output[str] | None
    """The address of `*.apps`; None where that resolves to the machines that take it."""

    def keyfiles(self, node: Node) -> pulumi.Output[Keyfiles | None]:
        """The profiles of a machine that has networks of its own; None for another one."""
        return self.networks.of(node, self.site.host_network(node))


def prepared(settings: Settings, boot: BootSpec, parent: pulumi.Resource | None) -> Base:
    """Keys, assets, preflight and the platform: all that comes before there is a machine. Raises ManifestsError and
    HostNetworkError before any resource is registered."""
    site, nodes, manifests = facility(settings), Nodes.of(settings), assets.user_manifests(settings)
    networks = host_networks(site, nodes.all)
    stage = assets.stage_of(settings, site, nodes, manifests)
    # A rehearsal has words for secrets. On a system without FIPS mode the installer refuses that.
    if pulumi.runtime.is_dry_run() and not (stage.formed or settings.rehearsal or settings.install.fips):
        assets.refuse(settings, site, manifests)
    child = pulumi.ResourceOptions(parent=parent, transformations=protection(settings, nodes, stage))
    provider = Provider("metal-ipi", ProviderArgs(**connections.provider_sections(settings, boot.artifacts.iso)), child)
    ours = pulumi.ResourceOptions.merge(child, pulumi.ResourceOptions(provider=provider))
    components = pulumi.ResourceOptions.merge(child, pulumi.ResourceOptions(providers=[provider]))
    key_type = settings.install.key_type
    keys = ClusterKeys(assets.KEYS, ClusterKeysArgs(key_type=key_type if settings.install.fips else None), ours)
    access = Access(
        private_key=keys.private_key,
        host_key_seed=keys.host_key_seed,
        log_directory=str(PROJECT / settings.install.log_directory / pulumi.get_stack()),
        host_key_type=key_type,
    )
    config = keys.public_key.apply(lambda key: assets.config(settings, site, key))
    wanted = assets.arguments(settings, site, manifests, config, stage.renewal)
    made = InstallAssets(assets.ASSETS, wanted, components)
    planned = plan(settings, boot.artifacts, pulumi.get_stack())
    checked = Preflight("preflight", planned, run=keys.id, opts=ours)
    copied = mirror.copied(settings, boot.artifacts, keys, checked, ours)
    platform = site.component(keys, [checked, *copied], components)
    return Base(
        settings=settings,
        site=site,
        nodes=nodes,
        networks=networks,
        boot=replace(boot, artifacts=mirror.served(settings, boot.artifacts)),
        stage=stage,
        ours=ours,
        components=components,
        invoke=pulumi.InvokeOptions(provider=provider),
        keys=keys,
        access=access,
        assets=made,
        platform=platform,
        api_address=api_address.api_address(settings, platform),
        ingress_address=api_address.ingress_address(settings, platform),
    )
