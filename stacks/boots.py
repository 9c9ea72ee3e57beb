"""What the machines of a stack boot, and what configures them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pulumi

from components.boot import ignition, installer
from components.boot.ipxe import BootSpec, installer_arguments, installer_script, script
from components.cluster.pool import Access
from components.install import bootstrap
from components.install.assets import InstallAssets
from components.machines.contract import Boot, Platform
from components.machines.node import Node, Role
from provider.types import Artifacts, ArtifactsArgs, ClusterKeys
from stacks.installers import BOOTSTRAP_IGNITION, Installers, Prepared, archive_of
from stacks.names import Nodes
from stacks.platforms.registry import facility
from stacks.service_addresses import announcing_role
from stacks.settings import Settings
from stacks.user_data import UserData, of_one, sources

_LIVE = "node.ipxe"
_BOOTSTRAP_ARCHIVE = "bootstrap.img"
_CONFIGS: Mapping[Role, str] = {"control-plane": "master", "worker": "worker"}
"""What the machine config server calls a role."""


@dataclass(frozen=True, kw_only=True)
class PoolBoots:
    """What the machines of a pool boot."""

    boots: Mapping[Node, Boot]
    """What each boots."""
    prepared: Mapping[Node, Prepared] = field(default_factory=dict[Node, "Prepared"])
    """What installs them, where they are installed to disk."""


class Boots:
    """Uploads what is booted. The platform hands userdata and a script's URL over, or leaves both to us."""

    def __init__(
        self,
        settings: Settings,
        boot: BootSpec,
        *,
        platform: Platform,
        keys: ClusterKeys,
        access: Access,
        assets: InstallAssets,
        user_data: UserData,
        opts: pulumi.ResourceOptions,
    ) -> None:
        self._settings, self._boot, self._keys, self._opts = settings, boot, keys, opts
        self._user_data, self._assets, self._platform = user_data, assets, platform
        self._hands_over, self._facility = platform.delivers_user_data, facility(settings)
        self._in_place = self._facility.in_place
        self._live = self._script_urls("boot-scripts", {_LIVE: script(boot)}) if self._hands_over else None
        self._bootstrap_node = Nodes.of(settings).bootstrap
        self.bootstrap_ignition = Artifacts(
            "bootstrap-ignition",
            ArtifactsArgs(files={BOOTSTRAP_IGNITION: self._bootstrap()}, path_seed=keys.host_key_seed, ephemeral=True),
            opts,
        )
        """The bootstrap machine's Ignition, which is to be deleted with it; a single node's own with its installer."""
        alone = self.bootstrap_ignition if self._in_place else None
        self.installers = (
            Installers(settings, boot, platform=platform, keys=keys, access=access, bootstrap=alone, opts=opts)
            if boot.installs
            else None
        )
        """What installs machines to disk; None where they run from memory."""

    def bootstrap(self) -> Boot:
        """The bootstrap machine's: it runs from memory, wherever it is."""
        uploaded = self.bootstrap_ignition
        if self._live is None:
            network = self._facility.network(self._bootstrap_node)
            # It stays when the bootstrap machine goes: it names a file that is gone then.
            archive = archive_of(of_one(sources(uploaded), BOOTSTRAP_IGNITION), self._settings.artifacts.authorities)
            served = Artifacts(
                "bootstrap-initrd",
                ArtifactsArgs(files={_BOOTSTRAP_ARCHIVE: archive}, path_seed=self._keys.host_key_seed),
                self._opts,
            )

            def render(found: list[Any]) -> str:
                urls, text = found
                digest = hashlib.sha256(text.encode()).hexdigest()[:16]
                # So another archive is another script, for a machine is known by the script it boots. The archive has
                # the Ignition's hash, and the authorities that it is fetched by.
                arguments = (*installer_arguments(self._boot, network=network), f"metal-ipi.ignition={digest}")
                return installer_script(self._boot, arguments, urls[_BOOTSTRAP_ARCHIVE])

            text = pulumi.Output.all(served.boot_urls, archive).apply(render)
            return Boot(script=text, always_pxe=True)
        source = pulumi.Output.all(uploaded.urls, uploaded.hashes).apply(
            lambda found: ignition.Source(url=found[0][BOOTSTRAP_IGNITION], hash=found[1][BOOTSTRAP_IGNITION])
        )
        user_data = self._user_data.of(
            self._bootstrap_node, source, serves=True, bootstraps=True, masked=bootstrap.MASKED
        )
        return Boot(ipxe_script_url=self._live[_LIVE], user_data=user_data, always_pxe=True)

    def pool(self, role: Role, name: str, nodes: tuple[Node, ...]) -> PoolBoots:
        """What the machines of a pool boot; `name` is the pool's."""
        if not nodes:
            return PoolBoots(boots={})
        # What bootstraps itself has nobody to ask; its live system adds the same where it installs it.
        url = f"https://api-int.{self._settings.domain}:22623/config/{_CONFIGS[role]}"
        source = None if self._in_place else ignition.Source(url=url)
        serves, routes = role == "control-plane", role == announcing_role(self._settings)
        pointers = {
            node: self._user_data.of(
                node,
                source,
                serves=serves,
                routes=routes,
                network=self._platform.network_files(node),
            )
            for node in nodes
        }
        if self.installers is None:
            assert self._live is not None, "settings have servers installed to disk"
            url = self._live[_LIVE]
            boots = {
                node: Boot(ipxe_script_url=url, user_data=pointer, always_pxe=True)
                for node, pointer in pointers.items()
            }
            return PoolBoots(boots=boots)
        systems = {node: self.installers.system(node, pointer) for node, pointer in pointers.items()}
        prepared = self.installers.prepare(name, systems)
        if not self._hands_over:
            return PoolBoots(boots=dict.fromkeys(nodes, Boot(always_pxe=False)), prepared=prepared)
        urls = self._script_urls(
            f"{name}-boot-scripts", {_script(node): each.script for node, each in prepared.items()}
        )
        prepared = {node: replace(each, script_url=urls[_script(node)]) for node, each in prepared.items()}
        boots = {
            node: Boot(ipxe_script_url=each.script_url, user_data=each.system.pointer, always_pxe=False)
            for node, each in prepared.items()
        }
        return PoolBoots(boots=boots, prepared=prepared)

    def _script_urls(self, name: str, files: Mapping[str, pulumi.Input[str]]) -> dict[str, pulumi.Output[str]]:
        uploaded = Artifacts(name, ArtifactsArgs(files=files, path_seed=self._keys.host_key_seed), self._opts)

        def url(file: str) -> pulumi.Output[str]:
            # Whoever has the URL can read the script; it names what is elsewhere, and previews may show it.
            return pulumi.Output.unsecret(uploaded.boot_urls.apply(lambda urls: urls[file]))

        return {file: url(file) for file in files}

    def _bootstrap(self) -> pulumi.Output[str]:
        """What bootstraps the cluster; all in one file for a machine that nobody hands userdata."""
        if self._in_place:
            return self._assets.bootstrap.apply(installer.checked_in_place)
        if self._hands_over:
            return self._assets.bootstrap
        source = self._assets.bootstrap.apply(lambda text: ignition.Source(url=ignition.data_url(text)))
        return self._user_data.of(self._bootstrap_node, source, serves=True, bootstraps=True, masked=bootstrap.MASKED)


def _script(node: Node) -> str:
    return f"{node.hostname}.ipxe"
