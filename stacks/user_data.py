"""The userdata of each machine: its name, SSH keys, the URLs of the rest, and how it serves and announces the API."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, cast

import pulumi

from metal_ipi.components.boot import ignition, node_image
from metal_ipi.components.boot.host_keys import HostKey, host_key, unguessable
from metal_ipi.components.endpoints import bgp_routes, kube_vip, machine_config_access
from metal_ipi.components.machines.node import Node
from metal_ipi.components.waiting import coming_from
from metal_ipi.provider.types import Artifacts, ArtifactsArgs, alike
from metal_ipi.stacks.base import Base
from metal_ipi.stacks.sections.api_address import KubeVip


class UserData:
    """The userdata of a cluster's machines, and the identities (SSH host keys) that they fetch."""

    def __init__(self, base: Base) -> None:
        self._base, self._settings = base, base.settings
        # Everyone who reaches the metadata service can read userdata. Without one, identities are part of the machine's
        # config.
        self._uploaded = self._upload_identities() if base.platform.delivers_user_data else None
        self._identities = None if self._uploaded is None else self._identity_sources(self._uploaded)

    def of_pool(
        self,
        pool: str,
        nodes: Sequence[Node],
        source: pulumi.Input[ignition.Source],
        *,
        serves: bool,
        ingress: KubeVip | None,
        routes: bool,
    ) -> tuple[dict[Node, pulumi.Output[str]], Sequence[pulumi.Resource]]:
        """The userdata of machines that run from memory, and what these have to depend on.

        The state contains it twice for each machine, so it is kept small: what all of them share is uploaded, and stays
        there, because they fetch it at every boot. Arguments as for `of`.
        """
        identities = self._identities
        assert identities is not None and self._uploaded is not None, "userdata is delivered"
        common = self._pointer(None, source, serves=serves, ingress=ingress, routes=routes)
        # Existing machines keep their userdata, which contains the hash. So a changed text is uploaded as another file.
        name = common.apply(lambda text: f"{pool}.{hashlib.sha256(text.encode()).hexdigest()[:16]}.ign")
        files = pulumi.Output.all(name, common).apply(lambda found: {str(found[0]): found[1]})
        args = ArtifactsArgs(files=files, path_seed=self._base.keys.host_key_seed, keeps=True)
        uploaded = Artifacts(f"{pool}-ignition", args, self._base.ours)
        found = pulumi.Output.all(name, uploaded.url, uploaded.boot_url, uploaded.hashes)
        shared = found.apply(
            lambda where: self._common(f"{where[1]}/{where[0]}", f"{where[2]}/{where[0]}", where[3][where[0]])
        )
        given = {node: coming_from(self._own(node, shared, of_one(identities, node.hostname))) for node in nodes}
        # All else that it comes from stands before these two.
        return given, (self._uploaded, uploaded)

    def _common(self, url: str, boot_url: str, digest: str) -> ignition.Source:
        """Where the machines of a pool fetch what they share.

        The shared config contains the certificate authority of the boot server. With a private authority the machines
        fetch it by plain http: it contains no secret, and they know its hash.
        """
        without = self._settings.artifacts.authorities and boot_url.startswith("http:")
        return ignition.Source(url=boot_url if without else url, hash=digest)

    def _own(
        self, node: Node, shared: pulumi.Output[ignition.Source], identity: pulumi.Output[ignition.Source]
    ) -> pulumi.Output[str]:
        authorities = [ignition.data_url(each) for each in self._settings.artifacts.authorities]

        def render(found: list[Any]) -> str:
            common, own, files = found
            return ignition.own_pointer(
                hostname=node.fqdn,
                shared=common,
                identity=own,
                certificate_authorities=authorities if common.url.startswith("https:") else (),
                files=files or (),
            )

        return pulumi.Output.all(shared, identity, self._base.platform.network_files(node)).apply(render)

    def of(
        self,
        node: Node,
        source: pulumi.Input[ignition.Source] | None,
        *,
        serves: bool = False,
        bootstraps: bool = False,
        ingress: KubeVip | None = None,
        routes: bool = False,
        network: pulumi.Output[list[ignition.NodeFile]] | None = None,
        masked: Sequence[str] = (),
    ) -> pulumi.Output[str]:
        """A machine's complete userdata.

        Args:
            source: the place of the rest of its configuration; None if that is on the machine already.
            serves: whether it has an API server and a machine config server.
            bootstraps: whether its live system forms the cluster.
            ingress: how it announces the address of ingress; None if it does not.
            routes: whether it announces service addresses over BGP.
            network: files that configure the platform's networks.
            masked: units of `source` that must never start.
        """
        return self._pointer(
            node,
            source,
            serves=serves,
            bootstraps=bootstraps,
            ingress=ingress,
            routes=routes,
            network=network,
            masked=masked,
        )

    def _pointer(
        self,
        node: Node | None,
        source: pulumi.Input[ignition.Source] | None,
        *,
        serves: bool,
        routes: bool,
        bootstraps: bool = False,
        ingress: KubeVip | None = None,
        network: pulumi.Output[list[ignition.NodeFile]] | None = None,
        masked: Sequence[str] = (),
    ) -> pulumi.Output[str]:
        """Like `of`. If `node` is None, without everything that belongs to a single machine."""
        api = self._settings.api_address
        announces = serves and isinstance(api, KubeVip)
        routes = routes or (announces and isinstance(api, KubeVip) and api.mode == "bgp")
        routes = routes or (ingress is not None and ingress.mode == "bgp")

        def render(found: list[object]) -> str:
            pointer_source, identity, worker_pointer, key, seed, api_address, of_network, ingress_address = found
            assert pointer_source is None or isinstance(pointer_source, ignition.Source)
            authorities = ignition.certificate_authorities(str(worker_pointer))
            merge = [] if pointer_source is None else [pointer_source]
            files = list[ignition.NodeFile]()
            if isinstance(identity, ignition.Source):
                merge.append(identity)
            elif node is not None:
                files += ignition.host_key_files(self._host_key(str(seed), node))
            files += machine_config_access.files() if serves else []
            files += node_image.files() if bootstraps else []
            files += cast("list[ignition.NodeFile]", of_network or [])
            units = [machine_config_access.unit()] if serves else []
            if announces:
                assert isinstance(api, KubeVip)
                files += kube_vip.files(self._kube_vip(api, str(api_address), "api"))
                units.append(kube_vip.unit())
            if ingress is not None:
                files += kube_vip.files(self._kube_vip(ingress, str(ingress_address), "ingress"))
                units.append(kube_vip.unit("ingress"))
            # The boot server's authorities are needed only if something is fetched from it by https; the machine config
            # server is verified by the installer's authority.
            served = [source for source in merge if source.hash is not None and source.url.startswith("https:")]
            trusted = self._settings.artifacts.authorities if served or node is None else ()
            private = [ignition.data_url(each) for each in trusted]
            return ignition.pointer(
                hostname=None if node is None else node.fqdn,
                platform_id=self._base.site.ignition_platform,
                merge=merge,
                certificate_authorities=[*authorities, *private],
                authorized_keys=[str(key), *self._settings.ssh.authorized_keys],
                files=[*files, *(bgp_routes.files(self._base.platform.metadata_url or "") if routes else ())],
                units=[*units, *([bgp_routes.unit()] if routes else ())],
                masked=masked,
            )

        # It contains only pointers, but whoever knows their targets can fetch them. So it is secret, like its parts.
        return pulumi.Output.all(
            source,
            None if self._identities is None or node is None else of_one(self._identities, node.hostname),
            self._base.worker_pointer,
            self._base.keys.public_key,
            self._base.keys.host_key_seed,
            self._base.api_address if announces else None,
            network,
            None if ingress is None else self._base.ingress_address,
        ).apply(render)

    def _upload_identities(self) -> Artifacts:
        """Upload every node's SSH host key, as Ignition to merge. It is secret, so it is not part of userdata.

        A node learns the name of its own file from its userdata, and must not be able to guess another node's.
        """
        nodes, seed = self._base.nodes.all, self._base.keys.host_key_seed

        def files(seed: str) -> Mapping[str, str]:
            return {_identity_file(seed, node): ignition.identity(self._host_key(seed, node)) for node in nodes}

        return Artifacts("identities", nearly_the_same(seed.apply(files), seed), self._base.ours)

    def _identity_sources(self, uploaded: Artifacts) -> pulumi.Output[dict[str, ignition.Source]]:
        """Where each node's identity is, by host name."""
        nodes, seed = self._base.nodes.all, self._base.keys.host_key_seed
        return pulumi.Output.all(sources(uploaded), seed).apply(
            lambda found: {node.hostname: found[0][_identity_file(found[1], node)] for node in nodes}
        )

    def _host_key(self, seed: str, node: Node) -> HostKey:
        return host_key(seed, node.fqdn, self._settings.install.key_type)

    def _kube_vip(self, section: KubeVip, address: str, serves: kube_vip.Served) -> kube_vip.KubeVip:
        return kube_vip.KubeVip(
            address=address,
            image=section.image,
            hold_seconds=section.hold_seconds,
            keepalive_seconds=section.keepalive_seconds,
            domain=self._settings.domain,
            serves=serves,
            mode=section.mode,
            interface=section.interface,
        )


def nearly_the_same(
    texts: pulumi.Output[Mapping[str, str]], seed: pulumi.Output[str], *, ephemeral: bool = False
) -> ArtifactsArgs:
    """Arguments for files that differ in a few words: the state contains one of them, and the words of the others."""
    told = pulumi.Output.secret(texts).apply(alike)
    return ArtifactsArgs(
        files=told.apply(lambda found: found[0]),
        like=told.apply(lambda found: next(iter(found[0]))),
        derived=told.apply(lambda found: found[1]),
        path_seed=seed,
        ephemeral=ephemeral,
    )


def sources(uploaded: Artifacts) -> pulumi.Output[dict[str, ignition.Source]]:
    """The place and hash of each file."""
    return pulumi.Output.all(uploaded.url, uploaded.hashes).apply(
        lambda found: {name: ignition.Source(url=f"{found[0]}/{name}", hash=each) for name, each in found[1].items()}
    )


def of_one(each: pulumi.Output[dict[str, ignition.Source]], name: str) -> pulumi.Output[ignition.Source]:
    """One entry. `Output.all` wraps everything in its arguments, so each machine gets only its own entry."""
    return each.apply(lambda found: found[name])


def _identity_file(seed: str, node: Node) -> str:
    return f"{node.hostname}.{unguessable(seed, node.hostname)}.ign"
