"""From settings to the installer's assets: the request to the installer, and how far earlier runs came."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pulumi
import yaml

from metal_ipi.components.boot import installer
from metal_ipi.components.boot.host_keys import host_key
from metal_ipi.components.install import driver
from metal_ipi.components.install.asking import Login, ask
from metal_ipi.components.install.assets import InstallAssetsArgs, request_of
from metal_ipi.components.install.install_config import NONE, InstallConfigError, baremetal, install_config
from metal_ipi.components.install.manifests import ManifestsError
from metal_ipi.components.install.manifests import read as read_manifests
from metal_ipi.components.install.previous_runs import PreviousRuns, previous_runs
from metal_ipi.components.install.stage import Stage, stage, tell
from metal_ipi.stacks import resizing
from metal_ipi.stacks.names import Nodes
from metal_ipi.stacks.platforms.contract import Facility
from metal_ipi.stacks.problems import SettingsError, problems_of
from metal_ipi.stacks.sections.base import REHEARSAL
from metal_ipi.stacks.sections.forms import PROJECT
from metal_ipi.stacks.settings import OKD_PULL_SECRET, Settings

KEYS, ASSETS, BOOTSTRAP = "keys", "install-assets", "bootstrap"
"""The Pulumi names by which a run finds resources of earlier runs."""
_NOBODY = base64.b64encode(bytes(32)).decode()
"""The seed of a placeholder key for previews, when the cluster's own key does not exist yet. The key is never used."""


def arguments(
    settings: Settings,
    site: Facility,
    manifests: Mapping[str, str],
    install_config: pulumi.Input[str] = "",
    renewal: Sequence[str] = (),
) -> InstallAssetsArgs:
    """The arguments of InstallAssets. `renewal` lists the reasons to create the assets again."""
    return InstallAssetsArgs(
        installer=settings.install.installer,
        version=settings.openshift_version,
        install_config=install_config,
        work_directory=str(PROJECT / settings.install.work_directory / pulumi.get_stack()),
        in_place=site.in_place,
        manifests=manifests,
        release_image=settings.install.release_image,
        renewal=renewal,
    )


def user_manifests(settings: Settings) -> dict[str, str]:
    """The user's manifests and those of `machineConfig`, by file name.

    Raises ManifestsError with all problems. If there is a cluster already, problems are only logged, because the
    cluster does not use the manifests any more; then the manifests that it was created with are returned.
    """
    try:
        return checked_manifests(settings)
    except ManifestsError as error:
        found = _previous_runs()
        if settings.rehearsal or not found.bootstrapped:
            raise
        pulumi.log.warn(f"the cluster exists, and does not need them any more: {error}")
        return dict((found.request or {}).get("manifests") or {})


def checked_manifests(settings: Settings) -> dict[str, str]:
    """The same, whatever there is. Raises ManifestsError."""
    folders = {folder.rstrip("/"): PROJECT / folder for folder in settings.install.manifests}
    return read_manifests(
        folders, settings.install.other_kinds, made=of_settings(settings), program=settings.install.butane
    )


def of_settings(settings: Settings) -> dict[str, str]:
    """The manifests that `machineConfig` makes, by file name."""
    return settings.machine_config.rendered(fips=settings.install.fips, arbiter=bool(settings.arbiter.count))


def config(settings: Settings, site: Facility, public_key: str) -> str:
    """The text of install-config.yaml; secret. `public_key` is the SSH key for the cluster's machines."""
    pull_secret = settings.install.pull_secret
    text = pull_secret.get_secret_value() if pull_secret else OKD_PULL_SECRET
    return install_config(
        cluster_name=settings.cluster_name,
        base_domain=settings.base_domain,
        architecture=settings.boot.architecture,
        control_plane=settings.control_plane.count,
        arbiters=settings.arbiter.count,
        workers=settings.workers.count,
        machine_networks=site.machine_networks,
        fips=settings.install.fips,
        pull_secret=text if text != REHEARSAL else OKD_PULL_SECRET,
        authorized_keys=[public_key, *settings.ssh.authorized_keys],
        in_place=site.in_place,
        fields=settings.install_config.fields,
        platform=_platform(settings, site),
    )


def _platform(settings: Settings, site: Facility) -> Mapping[str, Any]:
    """OpenShift's platform: baremetal if it announces the addresses of API and ingress."""
    if settings.platform_vips is None:
        return settings.install_config.rendered_platform or NONE
    api, ingress = settings.platform_vips
    return baremetal(api=api, ingress=ingress, hosts=site.hosts)


def refuse(settings: Settings, site: Facility, manifests: Mapping[str, str]) -> None:
    """Raise InstallConfigError with the installer's message, if the installer is available and refuses its input."""
    key = host_key(_NOBODY, "preview", settings.install.key_type).public_key
    wanted = arguments(settings, site, manifests)
    said = driver.refusal(
        installer=wanted.installer,
        version=wanted.version,
        install_config=config(settings, site, key),
        work_directory=Path(f"{wanted.work_directory}-preview"),
        manifests=manifests,
    )
    for secret in settings.install_config.secrets:
        said = said.replace(secret, "[secret]").replace(json.dumps(secret)[1:-1], "[secret]")
    if said:
        raise InstallConfigError(
            f"the installer refuses the configuration that these settings make; nothing was changed\n{said}"
        )


def _previous_runs(nodes: Nodes | None = None) -> PreviousRuns:
    control_plane = nodes.etcd if nodes is not None else ()
    return previous_runs(
        assets=f"{ASSETS}-create", gate=f"{BOOTSTRAP}-complete", keys=KEYS, control_plane=control_plane
    )


def stage_of(settings: Settings, site: Facility, nodes: Nodes, manifests: Mapping[str, str]) -> Stage:
    """Determine how far earlier runs came, and log what this run makes again, before any resource is declared.

    Raises SettingsError if a running cluster's control plane cannot be changed as the settings say.
    """
    found = _previous_runs(nodes)
    if settings.rehearsal:  # a rehearsal has placeholders for secrets, which cannot be compared
        return Stage(formed=found.bootstrapped)
    wanted = request_of(arguments(settings, site, manifests), config(settings, site, found.public_key))
    result = stage(
        found,
        wanted,
        time=datetime.now(UTC),
        ask=lambda found: ask(found.assets, _login(settings, site, nodes, found)),
        discarded=settings.install.discard,
    )
    tell(result)
    if not result.formed or not found.request:
        return result
    begun = yaml.safe_load(str(found.request.get("installConfig"))) or {}
    if wrong := problems_of(resizing.refused(settings, begun, found.machines)):
        raise SettingsError(pulumi.get_stack(), wrong)
    return replace(result, schedulable=resizing.takes_pods(begun))


def _login(settings: Settings, site: Facility, nodes: Nodes, found: PreviousRuns) -> Login | None:
    """How to log in to the machine that bootstraps the cluster; None if the state has no such machine."""
    node, identity = nodes.bootstrap, nodes.bootstrap.fqdn
    if site.in_place:
        (node,) = nodes.control_plane
        identity = installer.live_name(node.fqdn)
    address = found.addresses.get(node.hostname)
    if not address or not found.host_key_seed or not found.private_key:
        return None
    key = host_key(found.host_key_seed, identity, settings.install.key_type)
    return Login(address=address, host_key=key.public_key, private_key=found.private_key)
