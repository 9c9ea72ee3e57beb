"""The base of a cluster: keys, assets, preflight, the platform, and what machines boot. There is no machine yet."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pulumi

from components.boot.ipxe import BootSpec
from components.cluster.pool import Access
from components.install.assets import InstallAssets
from components.install.stage import Stage
from components.machines.contract import Platform
from provider.types import (
    ClusterKeys,
    ClusterKeysArgs,
    Preflight,
    Provider,
    ProviderArgs,
)
from stacks import api_address, assets, connections, mirror
from stacks.boots import Boots
from stacks.names import Nodes
from stacks.platforms.contract import Facility
from stacks.platforms.registry import facility
from stacks.preflight import plan
from stacks.protection import protection
from stacks.settings import Settings
from stacks.user_data import UserData


@dataclass(frozen=True, kw_only=True)
class Base:
    """What all steps work with."""

    settings: Settings
    site: Facility
    nodes: Nodes
    boot: BootSpec
    """What machines boot, from where they fetch it."""
    reached: Stage
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
    boots: Boots


def prepared(settings: Settings, boot: BootSpec, parent: pulumi.Resource | None) -> Base:
    """Keys, assets, preflight, the platform, and what machines boot: all that comes before there is a machine."""
    site, nodes = facility(settings), Nodes.of(settings)
    reached = assets.reached(settings, site, nodes)
    child = pulumi.ResourceOptions(parent=parent, transformations=protection(settings, nodes, reached))
    provider = Provider("metal-ipi", ProviderArgs(**connections.provider_sections(settings, boot.artifacts.iso)), child)
    ours = pulumi.ResourceOptions.merge(child, pulumi.ResourceOptions(provider=provider))
    components = pulumi.ResourceOptions.merge(child, pulumi.ResourceOptions(providers=[provider]))
    key_type = settings.install.key_type
    keys = ClusterKeys(assets.KEYS, ClusterKeysArgs(key_type=key_type if settings.install.fips else None), ours)
    access = Access(
        private_key=keys.private_key,
        host_key_seed=keys.host_key_seed,
        log_directory=str(assets.PROJECT / settings.install.log_directory / pulumi.get_stack()),
        host_key_type=key_type,
    )
    config = keys.public_key.apply(lambda key: assets.config(settings, site, key))
    made = InstallAssets(assets.ASSETS, assets.arguments(settings, site, config, reached.renewal), components)
    planned = plan(settings, boot.artifacts, pulumi.get_stack())
    checked = Preflight("preflight", planned, run=keys.id, opts=ours)
    copied = mirror.copied(settings, boot.artifacts, keys, checked, ours)
    platform = site.component(keys, [checked, *copied], components)
    address = api_address.api_address(settings, platform)
    user_data = UserData(settings, keys=keys, assets=made, api_address=address, platform=platform, opts=ours)
    booted = replace(boot, artifacts=mirror.served(settings, boot.artifacts))
    return Base(
        settings=settings,
        site=site,
        nodes=nodes,
        boot=booted,
        reached=reached,
        ours=ours,
        components=components,
        invoke=pulumi.InvokeOptions(provider=provider),
        keys=keys,
        access=access,
        assets=made,
        platform=platform,
        api_address=address,
        boots=Boots(
            settings,
            booted,
            platform=platform,
            keys=keys,
            access=access,
            assets=made,
            user_data=user_data,
            opts=ours,
        ),
    )
