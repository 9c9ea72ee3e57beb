"""The base of a cluster: keys, assets, preflight and the platform. It has no machines yet."""

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
from metal_ipi.stacks.platforms.contract import Facility, Keys
from metal_ipi.stacks.platforms.registry import facility
from metal_ipi.stacks.preflight import plan
from metal_ipi.stacks.protection import protection
from metal_ipi.stacks.sections.forms import PROJECT
from metal_ipi.stacks.settings import Settings


@dataclass(frozen=True, kw_only=True)
class Base:
    """What all steps use, in the stack of a cluster or of a pool."""

    settings: Settings
    site: Facility
    nodes: Nodes
    networks: HostNetworks
    boot: BootSpec
    """What machines boot, and the URLs from which they fetch it."""
    stage: Stage
    """How far earlier runs came."""
    ours: pulumi.ResourceOptions
    """Options for resources of our own provider."""
    components: pulumi.ResourceOptions
    """Options for components, which pass the provider on to their children."""
    invoke: pulumi.InvokeOptions
    """Options for functions of our own provider."""
    keys: Keys
    access: Access
    worker_pointer: pulumi.Output[str]
    """worker.ign of the installer."""
    platform: Platform
    api_address: pulumi.Output[str] | None
    """The API's own address; None if its names resolve to the machines that serve it."""
    ingress_address: pulumi.Output[str] | None
    """The address of `*.apps`; None if it resolves to the machines that take ingress."""

    def keyfiles(self, node: Node) -> pulumi.Output[Keyfiles | None]:
        """The NetworkManager profiles of a machine with networks of its own; None for other machines."""
        return self.networks.of(node, self.site.host_network(node))


@dataclass(frozen=True, kw_only=True)
class ClusterBase(Base):
    """What the steps of a cluster's own stack use."""

    keys: ClusterKeys
    """These exist as long as the cluster."""
    assets: InstallAssets


@dataclass(frozen=True, kw_only=True)
class Providers:
    """Our own provider, as options of resources."""

    ours: pulumi.ResourceOptions
    components: pulumi.ResourceOptions

    @classmethod
    def of(cls, settings: Settings, boot: BootSpec, child: pulumi.ResourceOptions) -> Providers:
        """Declare the provider. `child` has the options of everything that is declared."""
        sections = connections.provider_sections(settings, boot.artifacts.iso)
        provider = Provider("metal-ipi", ProviderArgs(**sections), child)
        return cls(
            ours=pulumi.ResourceOptions.merge(child, pulumi.ResourceOptions(provider=provider)),
            components=pulumi.ResourceOptions.merge(child, pulumi.ResourceOptions(providers=[provider])),
        )

    @property
    def invoke(self) -> pulumi.InvokeOptions:
        """Options for functions of our own provider."""
        return pulumi.InvokeOptions(provider=self.ours.provider)


def log_directory(settings: Settings) -> str:
    """The directory in which the running stack stores logs of failed gates."""
    return str(PROJECT / settings.install.log_directory / pulumi.get_stack())


def access_of(settings: Settings, keys: Keys) -> Access:
    """How the nodes of the cluster with these keys are reached over SSH."""
    return Access(
        private_key=keys.private_key,
        host_key_seed=keys.host_key_seed,
        log_directory=log_directory(settings),
        host_key_type=settings.install.key_type,
    )


def prepared(settings: Settings, boot: BootSpec, parent: pulumi.Resource | None) -> ClusterBase:
    """Declare keys, assets, preflight and the platform: everything that comes before machines.

    Raises ManifestsError or HostNetworkError before any resource is registered.
    """
    site, nodes, manifests = facility(settings), Nodes.of(settings), assets.user_manifests(settings)
    networks = host_networks(site, nodes.all)
    stage = assets.stage_of(settings, site, nodes, manifests)
    # A rehearsal has placeholders for secrets; and with FIPS the installer refuses to run on a host without FIPS mode.
    if pulumi.runtime.is_dry_run() and not (stage.formed or settings.rehearsal or settings.install.fips):
        assets.refuse(settings, site, manifests)
    child = pulumi.ResourceOptions(parent=parent, transformations=protection(settings, nodes, stage))
    provider = Providers.of(settings, boot, child)
    ours, components = provider.ours, provider.components
    key_type = settings.install.key_type
    keys = ClusterKeys(assets.KEYS, ClusterKeysArgs(key_type=key_type if settings.install.fips else None), ours)
    config = keys.public_key.apply(lambda key: assets.config(settings, site, key))
    wanted = assets.arguments(settings, site, manifests, config, stage.renewal)
    made = InstallAssets(assets.ASSETS, wanted, components)
    planned = plan(settings, boot.artifacts, pulumi.get_stack())
    checked = Preflight("preflight", planned, run=keys.id, opts=ours)
    copied = mirror.copied(settings, boot.artifacts, keys, checked, ours)
    platform = site.component(keys, [checked, *copied], components)
    return ClusterBase(
        settings=settings,
        site=site,
        nodes=nodes,
        networks=networks,
        boot=replace(boot, artifacts=mirror.served(settings, boot.artifacts)),
        stage=stage,
        ours=ours,
        components=components,
        invoke=provider.invoke,
        keys=keys,
        access=access_of(settings, keys),
        assets=made,
        worker_pointer=made.worker_pointer,
        platform=platform,
        api_address=api_address.api_address(settings, platform),
        ingress_address=api_address.ingress_address(settings, platform),
    )
