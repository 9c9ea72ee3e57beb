"""What the installer creates: Ignition for bootstrap, control plane and workers, and the cluster's credentials."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pulumi
import pulumi_command as command
import yaml

from metal_ipi.components import drivers
from metal_ipi.components.install import driver
from metal_ipi.provider.types import Secret


class AssetsError(ValueError):
    """The installer's output has not the expected form."""


@dataclass(frozen=True, kw_only=True)
class Credentials:
    """An administrator's credentials for the API."""

    ca_pem: str
    """The certificate authorities of the API's certificate."""
    client_cert_pem: str
    """The administrator's certificate."""
    client_key_pem: Secret[str]
    """The certificate's key; secret."""


@dataclass(frozen=True, kw_only=True)
class InstallAssetsArgs:
    """What to create the assets from."""

    installer: str
    """The installer program, by path or by name on PATH."""
    version: str
    """The OpenShift release that the installer must be for."""
    install_config: pulumi.Input[Secret[str]]
    """install-config.yaml; secret."""
    work_directory: str
    """The directory in which the installer works; removed afterwards."""
    in_place: bool = False
    """Whether the only machine bootstraps itself (bootstrap-in-place)."""
    manifests: Mapping[str, str] = field(default_factory=dict[str, str])
    """Manifests to add to the installer's own, text by file name."""
    release_image: str | None = None
    """The release image, by digest. None: the installer's own."""
    renewal: Sequence[str] = ()
    """Reasons why existing assets are created again. Empty: existing assets are kept."""


_IGNORED = ["create", "dir", "stdin", "environment", "interpreter", "logging", "addPreviousOutputInEnv"]
_RENEWAL = "METAL_IPI_ASSETS_RENEWED"
"""The environment variable through which previews and the state show when and why assets were created again; the
installer ignores it."""


class InstallAssets(pulumi.ComponentResource):
    """Runs `openshift-install create` once; the result is kept, encrypted, in the stack's state.

    The assets contain the cluster's certificate authorities. So a changed path, setting or number of workers does not
    create them again; only a `renewal` does, which is meant for the time before there is a cluster.
    """

    bootstrap: pulumi.Output[Secret[str]]
    """The bootstrap machine's Ignition, or the live system's with bootstrap-in-place; secret, some hundred KiB."""
    worker_pointer: pulumi.Output[str]
    """worker.ign: the URL of the machine config server, and the certificate authority to trust."""
    kubeconfig: pulumi.Output[Secret[str]]
    """An administrator's kubeconfig; secret."""
    kubeadmin_password: pulumi.Output[Secret[str]]
    """The first password of user kubeadmin; secret."""
    credentials: pulumi.Output[Secret[Credentials]]
    """The certificates and the key of the kubeconfig, as PEM; secret."""

    def __init__(self, name: str, args: InstallAssetsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("metal-ipi:install:InstallAssets", name, None, opts)
        request = pulumi.Output.secret(args.install_config).apply(lambda text: json.dumps(request_of(args, text)))
        renewed = f"{datetime.now(UTC).isoformat(timespec='seconds')}: {'; '.join(args.renewal)}"
        program, directory = drivers.started(driver.__name__)
        create = command.local.Command(
            f"{name}-create",
            create=program,
            dir=directory,
            stdin=request,
            logging=command.local.Logging.NONE,
            environment={_RENEWAL: renewed} if args.renewal else None,
            # The previous output would be larger than an environment variable may be.
            add_previous_output_in_env=False,
            opts=pulumi.ResourceOptions(
                parent=self,
                additional_secret_outputs=["stdout", "stderr"],
                # A command without `update` runs `create` again when an input has changed.
                ignore_changes=None if args.renewal else _IGNORED,
            ),
        )
        assets = pulumi.Output.secret(create.stdout).apply(parse)
        self.bootstrap = assets.apply(lambda found: found["bootstrap"])
        self.worker_pointer = assets.apply(lambda found: found["worker"])
        self.kubeconfig = assets.apply(lambda found: found["kubeconfig"])
        self.kubeadmin_password = assets.apply(lambda found: found["kubeadminPassword"])
        self.credentials = self.kubeconfig.apply(credentials)
        self.register_outputs({"kubeconfig": self.kubeconfig})


def request_of(args: InstallAssetsArgs, install_config: str) -> dict[str, Any]:
    """The driver's request; secret."""
    return {
        "installer": args.installer,
        "version": args.version,
        "installConfig": install_config,
        "workDirectory": args.work_directory,
        "inPlace": args.in_place,
        **({"manifests": dict(args.manifests)} if args.manifests else {}),
        **({"releaseImage": args.release_image} if args.release_image else {}),
    }


def parse(text: str) -> dict[str, str]:
    """Parse the driver's document. Raises AssetsError if a part is missing."""
    try:
        found: Any = json.loads(text)
    except ValueError:
        raise AssetsError("the installer driver printed no JSON document") from None
    wanted = {"bootstrap", "worker", "kubeconfig", "kubeadminPassword", "metadata"}
    if not isinstance(found, dict) or not wanted <= found.keys():
        raise AssetsError("the installer driver's document is not whole")
    return {name: str(found[name]) for name in wanted}


def stub(assets: Mapping[str, str], pool: str) -> str:
    """The Ignition pointer of a machine config pool, as the installer writes it (openshift/installer,
    pkg/asset/ignition/machine/node.go). `assets` has the one of the workers; those of other pools differ only in the
    name."""
    return assets["worker"].replace("/config/worker", f"/config/{pool}")


def credentials(kubeconfig: str) -> Credentials:
    """The administrator's certificate and key, and the API's certificate authorities, from a kubeconfig. Raises
    AssetsError."""
    try:
        tree: Any = yaml.safe_load(kubeconfig)
        cluster: Mapping[str, str] = tree["clusters"][0]["cluster"]
        user: Mapping[str, str] = tree["users"][0]["user"]
        return Credentials(
            ca_pem=_pem(cluster["certificate-authority-data"]),
            client_cert_pem=_pem(user["client-certificate-data"]),
            client_key_pem=_pem(user["client-key-data"]),
        )
    except (yaml.YAMLError, KeyError, IndexError, TypeError, ValueError):
        raise AssetsError("the installer's kubeconfig holds no embedded certificates") from None


def _pem(data: str) -> str:
    return base64.b64decode(data, validate=True).decode()
