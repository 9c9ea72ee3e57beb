"""The files that the machines of a stack boot, and their configuration."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import pulumi

from metal_ipi.components.boot import ignition, installer
from metal_ipi.components.boot.ipxe import installer_arguments, installer_script, script
from metal_ipi.components.install import bootstrap
from metal_ipi.components.machines.contract import Boot
from metal_ipi.components.machines.node import POOLS, Node, Role
from metal_ipi.components.waiting import coming_from
from metal_ipi.provider.types import Artifacts, ArtifactsArgs
from metal_ipi.stacks import api_address
from metal_ipi.stacks.base import Base
from metal_ipi.stacks.installers import BOOTSTRAP_IGNITION, Installers, Prepared, archive_of
from metal_ipi.stacks.service_addresses import announcing_role
from metal_ipi.stacks.user_data import UserData, nearly_the_same, of_one, sources

_LIVE = "node.ipxe"
_BOOTSTRAP_ARCHIVE = "bootstrap.img"


@dataclass(frozen=True, kw_only=True)
class PoolBoot:
    """What the machines of a pool boot."""

    machines: Mapping[Node, Boot]
    """What each machine boots."""
    prepared: Mapping[Node, Prepared] = field(default_factory=dict[Node, "Prepared"])
    """What installs each machine, if machines are installed to disk."""


@dataclass(frozen=True, kw_only=True)
class _Scripts:
    """iPXE scripts that were uploaded."""

    files: Artifacts
    urls: Mapping[str, pulumi.Output[str]]
    """Where each is, by its name."""


class BootFiles:
    """Uploads what machines boot. Some platforms deliver userdata and the URL of an iPXE script to machines; for the
    others both are files on the boot server."""

    def __init__(self, base: Base, bootstrap_config: pulumi.Output[str] | None) -> None:
        """`bootstrap_config` is the installer's Ignition that forms the cluster; None in the stack of a pool."""
        self._base, self._user_data, self._bootstrap_config = base, UserData(base), bootstrap_config
        self._masked = bootstrap.masked(baremetal=base.settings.platform_vips is not None)
        self._hands_over = base.platform.delivers_user_data
        self._live = self._script_urls("boot-scripts", {_LIVE: script(base.boot)}) if self._hands_over else None
        alone = self.bootstrap_ignition if base.site.in_place else None
        self.installers = Installers(base, alone) if base.boot.installs else None
        """The installers of machines; None if they run from memory."""

    @cached_property
    def bootstrap_ignition(self) -> Artifacts:
        """The uploaded Ignition that forms the cluster. It is deleted with the bootstrap machine, or with a single
        node's installer."""
        return self._artifacts("bootstrap-ignition", BOOTSTRAP_IGNITION, self._bootstrap(), True)

    def bootstrap(self) -> Boot:
        """What the bootstrap machine boots; it always runs from memory."""
        uploaded, boot, node = self.bootstrap_ignition, self._base.boot, self._base.nodes.bootstrap
        if self._live is not None:
            source = of_one(sources(uploaded), BOOTSTRAP_IGNITION)
            user_data = self._user_data.of(node, source, serves=True, bootstraps=True, masked=self._masked)
            return Boot(ipxe_script_url=self._live.urls[_LIVE], user_data=user_data, always_pxe=True)
        # This script is kept when the bootstrap machine is removed; the file that it refers to is deleted then.
        authorities = self._base.settings.artifacts.authorities
        archive = archive_of(of_one(sources(uploaded), BOOTSTRAP_IGNITION), authorities, self._base.keyfiles(node))
        served = self._artifacts("bootstrap-initrd", _BOOTSTRAP_ARCHIVE, archive)

        def render(found: list[Any]) -> str:
            place, text = found
            digest = hashlib.sha256(text.encode()).hexdigest()[:16]
            # A machine is identified by its script, so a changed archive must change the script. The archive contains
            # the Ignition's hash and the certificate authorities for fetching it.
            network = installer_arguments(boot, network=self._base.site.network(node))
            return installer_script(boot, (*network, f"metal-ipi.ignition={digest}"), f"{place}/{_BOOTSTRAP_ARCHIVE}")

        return Boot(script=pulumi.Output.all(served.boot_url, archive).apply(render), always_pxe=True)

    def pool(self, role: Role, name: str, nodes: tuple[Node, ...]) -> PoolBoot:
        """What the machines of a pool boot; `name` is the pool's name."""
        if not nodes:
            return PoolBoot(machines={})
        settings = self._base.settings
        # A single node bootstraps without a machine config server; its live system adds the same configuration.
        url = f"https://api-int.{settings.domain}:22623/config/{POOLS[role]}"
        source = ignition.Source(url=url)
        serves, routes = role == "control-plane", role == announcing_role(settings)
        ingress = api_address.announces_ingress(settings, self._base.stage, role)
        if self.installers is None:
            assert self._live is not None, "settings have servers installed to disk"
            given, before = self._user_data.of_pool(name, nodes, source, serves=serves, ingress=ingress, routes=routes)
            live = Boot(
                ipxe_script_url=coming_from(self._live.urls[_LIVE]), always_pxe=True, before=[*before, self._live.files]
            )
            return PoolBoot(machines={node: replace(live, user_data=text) for node, text in given.items()})
        pointers = {
            node: self._user_data.of(
                node,
                None if self._base.site.in_place else source,
                serves=serves,
                ingress=ingress,
                routes=routes,
                network=self._base.platform.network_files(node),
            )
            for node in nodes
        }
        prepared = self.installers.prepare(name, pointers)
        if not self._hands_over:
            return PoolBoot(machines=dict.fromkeys(nodes, Boot(always_pxe=False)), prepared=prepared)
        served = self._script_urls(
            f"{name}-boot-scripts", {_script(node): each.script for node, each in prepared.items()}
        )
        prepared = {node: replace(each, script_url=served.urls[_script(node)]) for node, each in prepared.items()}
        machines = {
            # What it is ordered with comes from what its script comes from.
            node: Boot(
                ipxe_script_url=coming_from(served.urls[_script(node)]),
                user_data=coming_from(each.system.pointer),
                always_pxe=False,
                before=[served.files],
            )
            for node, each in prepared.items()
        }
        return PoolBoot(machines=machines, prepared=prepared)

    def _artifacts(self, name: str, file: str, text: pulumi.Input[str], ephemeral: bool = False) -> Artifacts:
        args = ArtifactsArgs(files={file: text}, path_seed=self._base.keys.host_key_seed, ephemeral=ephemeral)
        return Artifacts(name, args, self._base.ours)

    def _script_urls(self, name: str, files: Mapping[str, pulumi.Input[str]]) -> _Scripts:
        seed = self._base.keys.host_key_seed
        uploaded = Artifacts(name, nearly_the_same(pulumi.Output.all(**files), seed), self._base.ours)

        def url(file: str) -> pulumi.Output[str]:
            # Whoever has the URL can read the script. The script has no secrets, only the places of other files, so the
            # URL may be shown in previews.
            return pulumi.Output.unsecret(uploaded.boot_url.apply(lambda place: f"{place}/{file}"))

        return _Scripts(files=uploaded, urls={file: url(file) for file in files})

    def _bootstrap(self) -> pulumi.Output[str]:
        """The Ignition that bootstraps the cluster; with the machine's own config merged in if the platform delivers no
        userdata."""
        config, node = self._bootstrap_config, self._base.nodes.bootstrap
        assert config is not None, "the cluster's own stack forms it"
        if self._base.site.in_place:
            return config.apply(installer.checked_in_place)
        if self._hands_over:
            return config
        source = config.apply(lambda text: ignition.Source(url=ignition.data_url(text)))
        return self._user_data.of(node, source, serves=True, bootstraps=True, masked=self._masked)


def _script(node: Node) -> str:
    return f"{node.hostname}.ipxe"
