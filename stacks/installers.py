"""Machines that are installed to disk: what each must run, and how it is installed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pulumi

from metal_ipi.components.boot import ignition, initrd, installer, node_image, site
from metal_ipi.components.boot.host_keys import host_key
from metal_ipi.components.boot.host_network import Keyfiles
from metal_ipi.components.boot.ipxe import consoles, installer_arguments, installer_script
from metal_ipi.components.cluster.installation import PoolInstallation, PoolInstallationArgs
from metal_ipi.components.cluster.pool import NodePool
from metal_ipi.components.endpoints import machine_config_access
from metal_ipi.components.install.bootstrap import MASKED
from metal_ipi.components.machines.contract import Machine
from metal_ipi.components.machines.node import Node
from metal_ipi.components.waiting import coming_from
from metal_ipi.provider.types import (
    Artifacts,
    ArtifactsPlace,
    ClusterCredentials,
    InstallationArgs,
    InstallationPool,
    InstallationPoolArgs,
    InstalledSystemArgs,
    LiveChecksArgs,
    LiveFileArgs,
    OwnLiveSystemArgs,
    differences,
)
from metal_ipi.stacks.base import Base
from metal_ipi.stacks.user_data import nearly_the_same, of_one, sources

WITH_ETCD = "control-plane-installation"
"""The installation pool of the control plane. An arbiter is in it too, because only one etcd member may be down at a
time."""
BOOTSTRAP_IGNITION = "bootstrap.ign"
"""The name of the file that bootstraps the cluster, on a bootstrap machine or in place; it contains the cluster's
secrets."""


@dataclass(frozen=True, kw_only=True)
class System:
    """What a machine runs once it is installed."""

    pointer: pulumi.Output[str]
    """Its Ignition with the generation marker; secret."""
    generation: pulumi.Output[str]
    """The generation: a hash of everything that it runs."""
    shown: pulumi.Output[Mapping[str, Any]]
    """The same as values for people."""


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """The uploaded files that install one machine."""

    system: System
    """What the machine will run."""
    places: Sequence[ArtifactsPlace]
    """The uploaded files of this machine."""
    config: LiveFileArgs
    """The archive with the live system's Ignition; its URL is secret."""
    arguments: Sequence[str]
    """The kernel arguments of the live system."""
    script: pulumi.Output[str]
    """The iPXE script that boots the live system; secret."""
    script_url: pulumi.Output[str] | None = None
    """The URL of the script, for platforms that use a URL."""


@dataclass(frozen=True, kw_only=True)
class _Common:
    """What the installations of a pool have in common."""

    pool: InstallationPool
    script: pulumi.Output[str]
    """The script of one of the machines."""
    user_data: pulumi.Output[str] | None
    """Its user data, where it is given some."""

    def differences(self, prepared: Prepared) -> pulumi.Output[dict[str, str]]:
        """What a machine has instead of it; secret."""
        pairs = {"script": (self.script, prepared.script)}
        if self.user_data is not None:
            pairs["userData"] = (self.user_data, prepared.system.pointer)
        each = {name: pulumi.Output.all(*pair).apply(lambda texts: differences(*texts)) for name, pair in pairs.items()}
        return pulumi.Output.secret(pulumi.Output.all(**each))


class Installers:
    """Prepares and declares the installation of a stack's machines, pool by pool."""

    def __init__(self, base: Base, bootstrap: Artifacts | None) -> None:
        """`bootstrap` is the uploaded Ignition with which a single machine's live system bootstraps the cluster; None
        otherwise."""
        assert base.settings.boot.install is not None
        self._base, self._settings, self._boot = base, base.settings, base.boot
        self._install, self._bootstrap = base.settings.boot.install, bootstrap

    def _system(self, node: Node, pointer: pulumi.Output[str]) -> System:
        """What a machine must run, from its Ignition without the marker."""
        own, site, static = self._settings.of_machine(node.name), self._base.site, self._base.site.network(node)
        network = static or site.host_network(node)

        def render(text: str) -> dict[str, Any]:
            runs = installer.Runs(
                release=self._boot.artifacts.release,
                kernel_arguments=self._settings.kernel_arguments(node.name),
                consoles=consoles(self._boot),
                platform_id=self._boot.platform_id,
                pointer=text,
                install_device=self._settings.install_device(node.name).rules,
                network=network,
                authorities=self._settings.artifacts.authorities,
                installation=own.installation,
            )
            marker = installer.marker_file(cluster=self._settings.domain, machine=node.fqdn, generation=runs.generation)
            profiles = [static.profile] if static is not None else []
            return {
                "pointer": ignition.with_files(text, [marker, *profiles]),
                "generation": runs.generation,
                "shown": runs.shown,
            }

        rendered = pulumi.Output.secret(pointer).apply(render)
        return System(
            pointer=rendered.apply(lambda found: str(found["pointer"])),
            # Digests reveal nothing of their input, and previews must show that they change.
            generation=pulumi.Output.unsecret(rendered.apply(lambda found: str(found["generation"]))),
            shown=pulumi.Output.unsecret(rendered.apply(lambda found: dict(found["shown"]))),
        )

    def prepare(self, pool: str, pointers: Mapping[Node, pulumi.Output[str]]) -> dict[Node, Prepared]:
        """Upload the files that install the machines of a pool; they are deleted once the machines are installed.

        `pointers` are the machines' Ignition configs, without the marker.
        """
        systems = {node: self._system(node, pointer) for node, pointer in pointers.items()}
        lives = {_file(node): self._live_config(node, system) for node, system in systems.items()}
        uploaded = self._artifacts(f"{pool}-installers", lives)
        authorities = self._settings.artifacts.authorities
        found = sources(uploaded)
        archives = {
            node: archive_of(of_one(found, _file(node)), authorities, self._base.keyfiles(node)) for node in systems
        }
        served = self._artifacts(f"{pool}-initrds", {_archive(node): text for node, text in archives.items()})
        return {
            node: self._prepared(node, system, uploaded, served, archives[node]) for node, system in systems.items()
        }

    def install(
        self,
        name: str,
        pool: NodePool,
        prepared: Mapping[Node, Prepared],
        *,
        credentials: ClusterCredentials,
        expected: Mapping[Node, pulumi.Input[Mapping[str, str]]],
        after: Mapping[Node, Sequence[pulumi.Resource]],
    ) -> PoolInstallation:
        """Declare the installation of a pool's machines.

        Args:
            prepared: the files that install each machine.
            credentials: the credentials of the machines' cluster.
            expected: what each machine must be afterwards.
            after: resources that must be complete before a machine is installed.
        """
        machines = pool.machines
        members = [node.fqdn for node in (machines if pool.role == "worker" else self._base.nodes.etcd)]
        common = self._common(name, next(iter(prepared.values())), members=members, credentials=credentials)
        installations = {
            node: self._installation(
                node,
                machine,
                prepared[node],
                pool=WITH_ETCD if pool.role == "arbiter" else name,
                common=common,
                expected=expected[node],
            )
            for node, machine in machines.items()
        }
        waits = {node: [machine.resource, *after.get(node, ())] for node, machine in machines.items()}
        args = PoolInstallationArgs(installations=installations, after=waits)
        return PoolInstallation(name, args, self._base.components)

    def _common(
        self, name: str, first: Prepared, *, members: Sequence[str], credentials: ClusterCredentials
    ) -> _Common:
        """What the installations of a pool have in common; `first`: what installs one of its machines."""
        artifacts, rules, delivered = self._boot.artifacts, self._settings.reprovision, self._delivers
        user_data = first.system.pointer if delivered else None
        pool = InstallationPool(
            f"{name}-common",
            InstallationPoolArgs(
                cluster=self._settings.domain,
                name=name,
                members=members,
                credentials=credentials,
                kernel=LiveFileArgs(url=artifacts.kernel.url, sha256=artifacts.kernel.sha256),
                initramfs=LiveFileArgs(url=artifacts.initramfs.url, sha256=artifacts.initramfs.sha256),
                script=first.script,
                user_data=user_data,
                chain=None if delivered else site.chain_script(),
                pre_reboot_commands=list(rules.pre_reboot_commands),
                pxe_commands=list(rules.pxe_commands),
            ),
            self._base.ours,
        )
        return _Common(pool=pool, script=first.script, user_data=user_data)

    @property
    def _delivers(self) -> bool:
        return self._base.platform.delivers_user_data

    def _installation(
        self,
        node: Node,
        machine: Machine,
        prepared: Prepared,
        *,
        pool: str,
        common: _Common,
        expected: pulumi.Input[Mapping[str, str]],
    ) -> InstallationArgs:
        settings, access, platform = self._settings, self._base.access, self._base.platform
        artifacts, system, rules = self._boot.artifacts, prepared.system, settings.reprovision
        own, delivered = settings.of_machine(node.name), self._delivers
        # the resource depends on its machine and files, and these depend on everything that the inputs come from
        told = coming_from
        bootstraps = settings.timeouts.bootstrap_complete if self._bootstrap is not None else 0
        return InstallationArgs(
            platform=platform.kind,
            machine_id=machine.machine_id,
            hostname=node.hostname,
            node=node.fqdn,
            role=node.role,
            pool=pool,
            cluster=settings.domain,
            generation=told(system.generation),
            runs=InstalledSystemArgs(
                release=artifacts.release,
                kernel_arguments=told(system.shown.apply(lambda shown: list(shown["kernelArguments"]))),
                consoles=list(consoles(self._boot)),
                ignition=told(system.shown.apply(lambda shown: str(shown["ignition"]))),
                install_device=settings.install_device(node.name).rules,
                installation=own.installation,
                network=told(system.shown.apply(lambda shown: str(shown["network"]))),
            ),
            address=told(machine.public_ipv4),
            addresses=[told(machine.public_ipv4), told(machine.private_ipv4)],
            host_key=told(access.public_host_key(node.fqdn)),
            live_host_key=told(access.public_host_key(installer.live_name(node.fqdn))),
            private_key=told(access.private_key),
            common=common.pool.id,
            derived=told(common.differences(prepared)),
            live=OwnLiveSystemArgs(
                config=LiveFileArgs(url=told(prepared.config.url), sha256=told(prepared.config.sha256)),
                arguments=prepared.arguments,
            ),
            mac=own.mac,
            ipxe_script_url=None if prepared.script_url is None else told(prepared.script_url),
            artifacts=list(prepared.places),
            ordered=delivered,
            consent={node.name, node.hostname}.intersection(rules.consent) != set(),
            keep=rules.control_plane == "keep",
            disposable=self._base.stage.disposable,
            live_checks=self._live_checks(),
            accept="empty" if own.accept == "empty" else "wipe",
            max_unavailable=rules.max_unavailable,
            drain_timeout_seconds=rules.drain_timeout,
            expected=told(expected),
            log_directory=access.log_directory,
            timeout_seconds=settings.timeouts.machines_reachable + bootstraps,
            valid_hours=self._install.valid_hours,
        )

    def _live_checks(self) -> LiveChecksArgs | None:
        """How machines are checked before anything is written to disk; None if the stack does not want that."""
        settings, fields = self._settings, self._settings.install_config
        if settings.preflight.live is None:
            return None
        return LiveChecksArgs(
            release=settings.openshift_version,
            names=[f"{name}.{settings.domain}" for name in ("api", "api-int")],
            registries=sorted({each.partition("/")[0] for one in fields.image_digest_sources for each in one.mirrors}),
            authorities=fields.additional_trust_bundle,
            overrides={str(name): why for name, why in settings.preflight.live.overrides.items()},
        )

    def _artifacts(self, name: str, files: Mapping[str, pulumi.Output[str]]) -> Artifacts:
        texts = pulumi.Output.all(**files)
        return Artifacts(name, nearly_the_same(texts, self._base.keys.host_key_seed, ephemeral=True), self._base.ours)

    def _live_config(self, node: Node, system: System) -> pulumi.Output[str]:
        """The Ignition of the live system that installs a machine."""

        def render(found: list[Any]) -> str:
            generation, key, seed, bootstrap, pointer, keyfiles = found
            plan = installer.InstallPlan(
                cluster=self._settings.domain,
                machine=node.fqdn,
                generation=generation,
                platform_id=self._boot.platform_id,
                device=self._settings.install_device(node.name).rules,
                pointer=pointer if bootstrap is None else None,
                in_place=None if bootstrap is None else _in_place(bootstrap, pointer),
                wipe_disks=tuple(rule.rules for rule in self._settings.wipe_disks(node.name)),
                accept=self._settings.of_machine(node.name).accept,
                image=self._boot.artifacts.disk if self._install.image == "stream" else None,
                consoles=consoles(self._boot),
                kernel_arguments=self._settings.kernel_arguments(node.name),
                network=self._base.site.network(node),
                keyfiles=keyfiles,
                authorities=self._settings.artifacts.authorities,
                held=self._settings.preflight.live is not None,
            )
            return installer.live_config(
                plan,
                authorized_keys=[key, *self._settings.ssh.authorized_keys],
                host_key=host_key(seed, installer.live_name(node.fqdn), self._settings.install.key_type),
            )

        keys = self._base.keys
        bootstrap = None if self._bootstrap is None else of_one(sources(self._bootstrap), BOOTSTRAP_IGNITION)
        found = pulumi.Output.all(
            system.generation,
            keys.public_key,
            keys.host_key_seed,
            bootstrap,
            None if self._base.platform.delivers_user_data else system.pointer,
            self._base.keyfiles(node),
        )
        return pulumi.Output.secret(found).apply(render)

    def _prepared(
        self, node: Node, system: System, uploaded: Artifacts, served: Artifacts, archive: pulumi.Output[str]
    ) -> Prepared:
        arguments = installer_arguments(self._boot, network=self._base.site.network(node))
        url = served.boot_url.apply(lambda place: f"{place}/{_archive(node)}")
        digest = archive.apply(lambda text: hashlib.sha256(text.encode()).hexdigest())
        places = [_place(uploaded, _file(node)), _place(served, _archive(node))]
        if self._bootstrap is not None:
            places.append(_place(self._bootstrap, BOOTSTRAP_IGNITION))
        return Prepared(
            system=system,
            places=places,
            config=LiveFileArgs(url=url, sha256=pulumi.Output.unsecret(digest)),
            arguments=arguments,
            script=url.apply(lambda where: installer_script(self._boot, arguments, where)),
        )


def archive_of(
    source: pulumi.Output[ignition.Source], authorities: Sequence[str], keyfiles: pulumi.Output[Keyfiles | None]
) -> pulumi.Output[str]:
    """The archive with which a live system fetches an uploaded config.

    It contains the certificate authorities (PEM) of the server, and the NetworkManager profiles for reaching it.
    """
    trusted = [ignition.data_url(each) for each in authorities]

    def render(found: list[Any]) -> str:
        where, profiles = found
        config = ignition.embedded(where, certificate_authorities=trusted)
        return initrd.archive(config, profiles.initramfs if profiles is not None else None)

    return pulumi.Output.all(source, keyfiles).apply(render)


def _in_place(bootstrap: ignition.Source, pointer: str) -> installer.InPlace:
    """A single node's installation. Its live system has a machine config server too, so the packet filter protects
    it."""
    return installer.InPlace(
        bootstrap=bootstrap,
        pointer=pointer,
        files=(*machine_config_access.files(), *node_image.files()),
        units=(machine_config_access.unit(),),
        masked=MASKED,
    )


def _place(artifacts: Artifacts, file: str) -> ArtifactsPlace:
    hashes = artifacts.hashes.apply(lambda found: {file: found[file]})
    return ArtifactsPlace(directory=artifacts.directory, files=[file], hashes=hashes)


def _file(node: Node) -> str:
    return f"{node.hostname}.ign"


def _archive(node: Node) -> str:
    return f"{node.hostname}.img"
