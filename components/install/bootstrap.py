"""The bootstrap machine: it forms the cluster, hands over to the control plane, and is removed within the same `up`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi

from metal_ipi.components.cluster.pool import Access
from metal_ipi.components.endpoints import machine_config_access
from metal_ipi.components.endpoints.dns import ClusterDns
from metal_ipi.components.install.assets import InstallAssets
from metal_ipi.components.machines.contract import Machine, node_addresses
from metal_ipi.components.machines.node import Node
from metal_ipi.provider.types import (
    ApiAnswers,
    Artifacts,
    BootstrapComplete,
    ClusterCredentials,
    Gate,
    GateArgs,
    Removal,
    RemovalArgs,
    SshReachable,
)

MASKED = ("approve-csr.service",)
"""Units of the bootstrap machine that must never start. This one approves every certificate request while the machine
exists (openshift/installer, data/data/bootstrap/files/usr/local/bin/approve-csr.sh). The gate `bootstrap-complete`
approves only those of the cluster's own machines."""
_PROVISIONING = (
    *("build-ironic-env", "build-metal3-env", "extract-machine-os", "image-customization", "ironic", "ironic-dnsmasq"),
    *("ironic-httpd", "ironic-ramdisk-logs", "master-bmh-update", "metal3-baremetal-operator"),
    "provisioning-interface",
)
"""Services with which the bootstrap machine of platform baremetal installs servers (openshift/installer,
data/data/bootstrap/baremetal). This program installs them instead."""


def masked(*, baremetal: bool) -> tuple[str, ...]:
    """Units of the bootstrap machine that must never start, with OpenShift's platform baremetal or without."""
    return (*MASKED, *(f"{name}.service" for name in _PROVISIONING if baremetal))


def cluster_credentials(dns: ClusterDns, assets: InstallAssets) -> ClusterCredentials:
    """The administrator's credentials, in the form that gates take."""
    return ClusterCredentials(
        url=dns.api_url,
        ca_pem=assets.credentials.apply(lambda found: found.ca_pem),
        client_cert_pem=assets.credentials.apply(lambda found: found.client_cert_pem),
        client_key_pem=assets.credentials.apply(lambda found: found.client_key_pem),
    )


@dataclass(frozen=True, kw_only=True)
class BootstrapGatesArgs:
    """The gates between ordered machines and a cluster."""

    bootstrap: Mapping[Node, Machine]
    """The bootstrap machine; empty if the control plane bootstraps itself."""
    control_plane: Mapping[Node, Machine]
    """The machines that etcd needs, an arbiter included. Their consoles are gathered too when bootstrap fails."""
    access: Access
    """How nodes are reached over SSH."""
    dns: ClusterDns
    """The cluster's DNS names."""
    assets: InstallAssets
    """The cluster's credentials."""
    machine_config_networks: pulumi.Input[Sequence[str]]
    """Addresses and CIDRs that get their configuration from the bootstrap machine."""
    after: Sequence[pulumi.Resource] = ()
    """Resources to wait for before the API can answer, if there is no bootstrap machine."""
    reachable_timeout: int
    """Seconds until the bootstrap machine answers SSH, and again until it lets the control plane's machines in."""
    api_timeout: int
    """Seconds until the API answers."""
    complete_timeout: int
    """Seconds until bootstrap is complete."""


class BootstrapGates(pulumi.ComponentResource):
    """The gates: bootstrap reachable → API answers, and machines get their configuration → bootstrap complete.

    Without a bootstrap machine there are only `api-answers` and `<name>-complete`.
    """

    def __init__(self, name: str, args: BootstrapGatesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("metal-ipi:install:BootstrapGates", name, None, opts)
        logs = args.access.logs(args.bootstrap or args.control_plane)
        reachable, let_in = list(args.after), list[pulumi.Resource]()
        if args.bootstrap:
            reachable = [
                Gate(
                    f"{name}-reachable",
                    GateArgs(spec=SshReachable(logs=logs), timeout_seconds=args.reachable_timeout, aborts=True),
                    pulumi.ResourceOptions(parent=self),
                )
            ]
            let_in = [
                machine_config_access.gate(
                    f"{name}-machine-config-access",
                    args.bootstrap,
                    access=args.access,
                    allowed=args.machine_config_networks,
                    timeout=args.reachable_timeout,
                    opts=pulumi.ResourceOptions(depends_on=reachable, parent=self),
                )
            ]
        credentials = cluster_credentials(args.dns, args.assets)
        answers = Gate(
            "api-answers",
            GateArgs(
                spec=ApiAnswers(
                    url=pulumi.Output.concat(args.dns.api_url, "/readyz"), ca_pem=credentials.ca_pem, logs=logs
                ),
                timeout_seconds=args.api_timeout,
                aborts=True,
            ),
            pulumi.ResourceOptions(depends_on=[*reachable, args.dns.records, args.dns.bootstrap_records], parent=self),
        )
        everyone = args.access.logs({**args.bootstrap, **args.control_plane})
        self.complete: pulumi.Resource = Gate(
            f"{name}-complete",
            GateArgs(
                spec=BootstrapComplete(
                    credentials=credentials,
                    names=[node.fqdn for node in args.control_plane],
                    addresses=node_addresses(args.control_plane),
                    logs=everyone,
                ),
                timeout_seconds=args.complete_timeout,
                aborts=True,
            ),
            pulumi.ResourceOptions(depends_on=[answers, *let_in], parent=self),
        )
        self.register_outputs({"apiUrl": args.dns.api_url})


@dataclass(frozen=True, kw_only=True)
class BootstrapRemovalArgs:
    """What is removed once the control plane runs on its own."""

    machine: Machine
    """The bootstrap machine."""
    platform: str
    """The name of its platform in our provider."""
    dns: ClusterDns
    """The names; the bootstrap machine's records are withdrawn first."""
    drain_seconds: int
    """Seconds for which resolvers may still return the bootstrap machine's address: the records' TTL."""
    ignition: Artifacts
    """The uploaded bootstrap Ignition, which contains the cluster's secrets."""
    ignition_files: Sequence[str]
    """The names of its files."""
    after: Sequence[pulumi.Resource]
    """Gates and checks that must have passed."""


class BootstrapRemoval(pulumi.ComponentResource):
    """Withdraws the bootstrap machine's DNS records, removes the machine, then its Ignition files."""

    present: pulumi.Output[bool]
    """False once the bootstrap machine is removed."""

    def __init__(self, name: str, args: BootstrapRemovalArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("metal-ipi:install:BootstrapRemoval", name, None, opts)
        removal = Removal(
            f"{name}-removed",
            RemovalArgs(
                machine_id=args.machine.machine_id,
                platform=args.platform,
                records=args.dns.to_withdraw,
                drain_seconds=args.drain_seconds,
                artifacts_directory=args.ignition.directory,
                artifacts_files=list(args.ignition_files),
                # Files at a new URL were uploaded again, so they must be removed again.
                triggers=[args.ignition.url.apply(lambda url: {name: f"{url}/{name}" for name in args.ignition_files})],
            ),
            pulumi.ResourceOptions(depends_on=list(args.after), parent=self),
        )
        self.resource: pulumi.Resource = removal
        self.present = removal.removed_at.apply(lambda removed_at: not removed_at)
        self.register_outputs({"present": self.present})
