"""clusterctl's local repository of our Cluster API providers, and a stack's settings as clusterctl's variables, with
its manifests as Secrets.

    python -m tools.clusterctl repository DIR --image REGISTRY/NAME:TAG    writes it, and clusterctl.yaml beside it
    python -m tools.clusterctl variables STACK                             prints lines for a shell
    python -m tools.clusterctl manifests STACK                             prints the Secrets of install.manifests

One process serves the three providers. The components of the infrastructure provider contain it; those of the
other two contain only custom resource definitions.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import yaml

from tools import stackfile
from tools.errors import StackError
from tools.facility import Facility
from tools.layout import ROOT
from tools.program import import_from

Object = dict[str, Any]

NAME = "metal-ipi"
NAMESPACE = "metal-ipi-system"
_PROGRAM = "metal-ipi-controller-manager"
METRICS_PORT = 8080
WEBHOOK_PORT, WEBHOOK_READY = 9443, "/readyz"
"""Where the webhook answers the probe of its pod (metal_ipi.cluster_api.webhooks, admission)."""
MAX_AWAY = "METAL_IPI_MAX_AWAY"
"""clusterctl's variable of how many machines of all clusters may be away at once."""
MAX_INSTALLING = "METAL_IPI_MAX_INSTALLING"
"""The same of how many clusters may be installed at once."""
_CERTIFICATES = "/etc/metal-ipi/webhook"
"""Where a pod of the providers has the certificate of the admission webhook."""
PROVIDERS = {
    "infrastructure": "InfrastructureProvider",
    "bootstrap": "BootstrapProvider",
    "control-plane": "ControlPlaneProvider",
}
"""First part of a provider's label to clusterctl's provider type."""
_LABEL = "cluster.x-k8s.io/provider"
_CONTRACT = "v1beta2"
SERIES = ((0, 1),)
"""All minor versions of the project so far: clusterctl upgrades only from what the newest release lists."""
_IMAGE = re.compile(r"(?P<registry>[a-z0-9][A-Za-z0-9._:/-]*)/[a-z0-9][a-z0-9._-]*(:[\w.-]+|@sha256:[0-9a-f]{64})")
_USER = 65532
_REQUIREMENTS = ROOT / "requirements-image.txt"
"""All Python packages that the providers' image installs, pinned."""


def version() -> str:
    """The version of the providers: that of the project."""
    return f"v{tomllib.loads((ROOT / 'pyproject.toml').read_text())['project']['version']}"


def printed(module: str) -> list[Object]:
    """The objects that a module of the providers prints. Raises StackError if it fails."""
    command = [sys.executable, "-m", module]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    if done.returncode != 0:
        last = done.stderr.strip().splitlines()[-1:]
        raise StackError(
            f"`python -m {module}` ended with {done.returncode}",
            why="\n".join(last) or "it printed nothing",
            remedy="install the requirements of the providers (requirements-cluster-api.txt)",
        )
    return list(yaml.safe_load_all(done.stdout))


def components(provider: str, definitions: Sequence[Object], needed: Sequence[Object], image: str) -> list[Object]:
    """The objects that clusterctl installs for one of PROVIDERS. `needed` are the program's account, rights and
    webhook."""
    label = f"{provider}-{NAME}"
    own = [each for each in definitions if each["metadata"]["labels"][_LABEL] == label]
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    program = [*needed, _deployment(image, needed)] if provider == "infrastructure" else []
    return [space, *own, *program]


def metadata(of: str) -> Object:
    """clusterctl's metadata: which Cluster API contract the releases of a version, and of those before it, fulfil."""
    major, minor = (int(each) for each in of.removeprefix("v").split(".")[:2])
    series = sorted({*SERIES, (major, minor)})
    return {
        "apiVersion": "clusterctl.cluster.x-k8s.io/v1alpha3",
        "kind": "Metadata",
        "releaseSeries": [{"major": major, "minor": minor, "contract": _CONTRACT} for major, minor in series],
    }


def configuration(folder: Path, of: str) -> Object:
    """The content of clusterctl.yaml, with the locations of the providers."""
    return {
        "providers": [
            {"name": NAME, "type": kind, "url": str(folder / f"{part}-{NAME}" / of / f"{part}-components.yaml")}
            for part, kind in PROVIDERS.items()
        ]
    }


def write(folder: Path, image: str) -> None:
    """Writes the repository. Raises StackError."""
    if not _IMAGE.fullmatch(image):
        raise StackError(
            f"--image {image}",
            why="it is not a reference of a container image",
            remedy="write it as registry/name:tag, or registry/name@sha256:<digest>",
        )
    import_from(ROOT)
    from metal_ipi.stacks.cluster_api.settings import cluster_template

    of = version()
    definitions = printed("metal_ipi.cluster_api.crds")
    needed = [*printed("metal_ipi.cluster_api.rbac"), *printed("metal_ipi.cluster_api.webhooks")]
    for provider in PROVIDERS:
        place = folder / f"{provider}-{NAME}" / of
        place.mkdir(parents=True, exist_ok=True)
        found = components(provider, definitions, needed, image)
        (place / f"{provider}-components.yaml").write_text(yaml.safe_dump_all(found, sort_keys=False))
        (place / "metadata.yaml").write_text(yaml.safe_dump(metadata(of), sort_keys=False))
    (folder / f"infrastructure-{NAME}" / of / "cluster-template.yaml").write_text(cluster_template())
    (folder / "clusterctl.yaml").write_text(yaml.safe_dump(configuration(folder, of), sort_keys=False))


def give_to_lab(facility: Facility) -> None:
    """Installs the providers in the lab's hub, from the current source code. Does nothing if they are up to date.
    Raises LabError."""
    folder = facility.layout.lab / "hub" / "providers"
    done, now = folder / "given", _made_of()
    if done.exists() and done.read_text() == now:
        return
    gather(folder)
    facility.cluster_api(folder)
    done.write_text(now)


def gather(folder: Path) -> None:
    """Write what `lab cluster-api --providers` takes: the repository, the modules, and what the image has."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "metal_ipi", folder / "python" / "metal_ipi", ignore=shutil.ignore_patterns("__pycache__"))
    write(folder, f"{NAME}.invalid/{NAME}:{version()}")  # the lab uses its own image name
    shutil.copy(_REQUIREMENTS, folder)
    image = {"name": NAME, "module": "metal_ipi.cluster_api", "requirements": _REQUIREMENTS.name}
    (folder / "image.json").write_text(json.dumps(image))


def _made_of() -> str:
    """A hash of all files that determine the providers in the lab's hub."""
    digest = hashlib.sha256(_REQUIREMENTS.read_bytes() + Path(__file__).read_bytes())
    for room in ("cluster_api", "components", "lab", "metal_ipi", "provider", "stacks"):
        for path in sorted(each for each in (ROOT / room).rglob("*") if each.suffix != ".pyc" and each.is_file()):
            digest.update(f"{path.relative_to(ROOT)}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def variables(document: Mapping[str, Any]) -> dict[str, str]:
    """clusterctl's variables for a stack file, by name, without secrets."""
    import_from(ROOT)
    from metal_ipi.stacks.cluster_api.settings import without_secrets

    prefix = f"{stackfile.NAMESPACE}:"
    config = cast("dict[str, Any]", document.get("config") or {})
    tree = {key.removeprefix(prefix): value for key, value in config.items() if key.startswith(prefix)}
    settings, _ = without_secrets(tree)
    named = [{"name": each["metadata"]["name"]} for each in manifests(document)]
    return {
        "CLUSTER_DOMAIN": f"{tree.get('clusterName')}.{tree.get('baseDomain')}",
        "METAL_IPI_SETTINGS": json.dumps(settings, sort_keys=True),
        **({"METAL_IPI_MANIFESTS": json.dumps(named)} if named else {}),
    }


def manifests(document: Mapping[str, Any]) -> list[Object]:
    """The Secrets with the files of a stack file's `install.manifests`, which are checked as in a preview. Raises
    StackError."""
    import_from(ROOT)
    from metal_ipi.stacks.assets import ManifestsError
    from metal_ipi.stacks.cluster_api.program import secrets_of_manifests
    from metal_ipi.stacks.problems import SettingsError
    from metal_ipi.stacks.settings import CLUSTER

    whole = dict(document)
    try:
        settings = CLUSTER.parse(stackfile.values(stackfile.for_rehearsal(whole)), stackfile.cluster(whole))
        return secrets_of_manifests(settings)
    except (SettingsError, ManifestsError) as error:
        raise StackError(str(error)) from None


def _deployment(image: str, needed: Sequence[Object]) -> Object:
    by_kind = {each["kind"]: each for each in needed}
    account = by_kind["ServiceAccount"]["metadata"]["name"]
    certificate = by_kind["Certificate"]["spec"]["secretName"]
    labels = by_kind["Service"]["spec"]["selector"]
    name = {"name": _PROGRAM, "namespace": NAMESPACE}
    container = {
        "name": "manager",
        "image": image,
        "args": [
            *("--namespace", NAMESPACE, "--metrics-port", str(METRICS_PORT)),
            *("--webhook-certificates", _CERTIFICATES),
            f"--max-away=${{{MAX_AWAY}:=0}}",
            f"--max-installing=${{{MAX_INSTALLING}:=0}}",
        ],
        "ports": [{"name": "metrics", "containerPort": METRICS_PORT}],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        "readinessProbe": {
            "httpGet": {"path": WEBHOOK_READY, "port": WEBHOOK_PORT, "scheme": "HTTPS"},
            "periodSeconds": 2,
        },
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108 - a volume of the pod's own
            {"name": "webhook", "mountPath": _CERTIFICATES, "readOnly": True},
        ],
    }
    pod = {
        "serviceAccountName": account,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "fsGroup": _USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
        "volumes": [{"name": "tmp", "emptyDir": {}}, {"name": "webhook", "secret": {"secretName": certificate}}],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {**name, "labels": {**labels, "app.kubernetes.io/version": version()}},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes the repository, or prints variables or Secrets."""
    parser = argparse.ArgumentParser(prog="python -m tools.clusterctl", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND", dest="command")
    repository = commands.add_parser("repository", help="write clusterctl's local repository of our providers")
    repository.add_argument("folder", type=Path, metavar="DIR")
    repository.add_argument("--image", required=True, help="the providers' container image")
    of_stack = commands.add_parser("variables", help="print the variables that a stack gives the cluster template")
    of_stack.add_argument("stack")
    secrets = commands.add_parser("manifests", help="print the Secrets with the stack's install.manifests; secret")
    secrets.add_argument("stack")
    given = parser.parse_args(arguments)
    try:
        if given.command == "repository":
            folder = given.folder.resolve()
            write(folder, given.image)
            print(f"clusterctl --config {folder / 'clusterctl.yaml'} init --infrastructure {NAME} ...")
            return 0
        document = stackfile.read(ROOT / "stacks" / f"Pulumi.{given.stack}.yaml")
        if given.command == "manifests":
            yaml.safe_dump_all(manifests(document), sys.stdout, sort_keys=False)
            return 0
        for name, value in variables(document).items():
            print(f"export {name}={shlex.quote(value)}")
    except StackError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
