"""What nodes get: rendered by the real machine config programs, from what the real installer left for the bootstrap.

The programs run in the order and with the arguments of bootkube.sh and of the pod that it has the kubelet start
(openshift/installer, data/data/bootstrap/files/usr/local/bin/bootkube.sh.template; machine-config-operator,
manifests/bootstrap-pod-v2.yaml), below a directory instead of /.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from lab.openshift.real import RELEASE, release
from lab.openshift.real.release import API, OPERATOR, RELEASE_IMAGE, Release
from tests.conformance.facilities import Facility

_ASSETS = "/opt/openshift/"
_FILES = {
    "infra-config-file": "cluster-infrastructure-02-config.yml",
    "network-config-file": "cluster-network-02-config.yml",
    "proxy-config-file": "cluster-proxy-01-config.yaml",
    "dns-config-file": "cluster-dns-02-config.yml",
    "additional-trust-bundle-config-file": "user-ca-bundle-config.yaml",
    "config-file": "cluster-config.yaml",
    "pull-secret": "openshift-config-secret-pull-secret.yaml",
}
"""Options of the operator that name one of the installer's manifests."""
# What Ignition 2.20 asks with (internal/resource/http.go); the server answers in that version of the specification.
_ACCEPT = "Accept: application/vnd.coreos.ignition+json;version=3.5.0, */*;q=0.1"
# In a network of its own, for the server listens on all addresses.
_ASK = """\
ip link set lo up
"$SERVER" bootstrap --payload-version="$RELEASE" --server-basedir="$MCS" --bootstrap-kubeconfig="$KUBECONFIG" \
    --cert="$TLS/machine-config-server.crt" --key="$TLS/machine-config-server.key" 2>"$LOG" &
ask() {
    curl -s --cacert "$TLS/root-ca.crt" --resolve "api-int.$DOMAIN:22623:127.0.0.1" -A Ignition/2.20.0 -H "$ACCEPT" \
        -o "$ANSWERS/$1" -w '%{http_code}' "https://api-int.$DOMAIN:22623/config/$1" >"$ANSWERS/$1.status"
}
tries=0
until ask master || [ "$tries" = 200 ]; do
    tries=$((tries + 1))
    sleep 0.1
done
ask worker
ask arbiter
# As bootstrap-in-place.sh asks on a single node.
curl -s -H 'Accept:application/vnd.coreos.ignition+json;version=3.2.0' \
    -o "$ANSWERS/in-place" http://localhost:22624/config/master
kill $!
"""


@dataclass(frozen=True, kw_only=True)
class MachineConfig:
    """What the real programs rendered for a facility."""

    rendered: Mapping[str, str]
    """The Ignition config of a pool's rendered MachineConfig, by pool (`master`, `worker`), JSON."""
    statuses: Mapping[str, str]
    """The HTTP status of the bootstrap machine's machine config server for a pool."""
    served: str
    """What that server answers for pool `master`, JSON."""
    served_in_place: str
    """The same as a single node asks for it, in an older version of the specification."""


def machine_config(facility: Facility, parts: Release, directory: Path) -> MachineConfig:
    """Run the programs for a facility; `directory` is an empty one."""
    assets, mcc, mcs = directory / "assets", directory / "mcc", directory / "mcs"
    for path, content in facility.bootstrap_files.items():
        if path.startswith(_ASSETS):
            target = assets / path.removeprefix(_ASSETS)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
    mcc.mkdir()
    mcs.mkdir()
    manifests = assets / "manifests"
    _copy(assets / "openshift", manifests)
    api, operator, image = (_unpacked(parts, name, directory) for name in (API, OPERATOR, RELEASE_IMAGE))
    _run(
        release.program("render", parts),
        f"--image-manifests={api}/usr/share/bootkube/manifests/manifests",
        f"--asset-output-dir={assets}/api-bootstrap",
        f"--rendered-manifest-dir={manifests}",
        "--cluster-profile=self-managed-high-availability",
        f"--payload-version={RELEASE}",
    )
    _run(
        release.program("machine-config-operator", parts),
        "bootstrap",
        f"--root-ca={assets}/tls/root-ca.crt",
        f"--kube-ca={assets}/tls/kube-apiserver-complete-client-ca-bundle.crt",
        *(f"--{option}={manifests / name}" for option, name in _FILES.items()),
        f"--dest-dir={assets}/mco-bootstrap",
        f"--release-image={RELEASE_IMAGE}",
        f"--image-references={image}/release-manifests/image-references",
        f"--payload-version={RELEASE}",
    )
    for source in (assets / "mco-bootstrap/bootstrap/manifests", assets / "openshift", manifests):
        _copy(source, mcc)
    _run(
        release.program("machine-config-controller", parts),
        "bootstrap",
        f"--templates={operator}/etc/mcc/templates",
        f"--manifest-dir={mcc}",
        f"--dest-dir={mcs}",
        f"--pull-secret={mcc}/machineconfigcontroller-pull-secret",
        f"--payload-version={RELEASE}",
    )
    answers = _ask(facility, parts, directory)
    return MachineConfig(
        rendered=_rendered(mcs),
        statuses={role: (answers / f"{role}.status").read_text() for role in ("master", "worker", "arbiter")},
        served=(answers / "master").read_text(),
        served_in_place=(answers / "in-place").read_text(),
    )


def _rendered(mcs: Path) -> dict[str, str]:
    """The MachineConfig that each pool names."""
    found: dict[str, str] = {}
    for path in (mcs / "machine-pools").iterdir():
        pool: Any = yaml.safe_load(path.read_text())
        name = pool["spec"]["configuration"]["name"]
        tree: Any = yaml.safe_load((mcs / "machine-configs" / f"{name}.yaml").read_text())
        found[pool["metadata"]["name"]] = json.dumps(tree["spec"]["config"])
    return found


def _ask(facility: Facility, parts: Release, directory: Path) -> Path:
    """Has the real machine config server serve the installer's certificate, and asks it as a node does; answers where
    its answers are."""
    answers = directory / "answers"
    answers.mkdir()
    environment = {
        **os.environ,
        "SERVER": str(release.program("machine-config-server", parts)),
        "RELEASE": RELEASE,
        "MCS": str(directory / "mcs"),
        "KUBECONFIG": str(directory / "assets/auth/kubeconfig-kubelet"),
        "TLS": str(directory / "assets/tls"),
        "LOG": str(directory / "machine-config-server.log"),
        "ANSWERS": str(answers),
        "DOMAIN": facility.domain,
        "ACCEPT": _ACCEPT,
    }
    subprocess.run(["unshare", "-Urn", "sh", "-eu", "-c", _ASK], env=environment, check=True, timeout=120)
    return answers


def _unpacked(parts: Release, image: str, directory: Path) -> Path:
    target = directory / "images" / image
    with tarfile.open(parts.directory / image / "files.tar") as archive:
        archive.extractall(target, filter="data")
    return target


def _copy(source: Path, target: Path) -> None:
    for path in source.iterdir():
        shutil.copyfile(path, target / path.name)


def _run(program: Path, *arguments: str) -> None:
    done = subprocess.run([str(program), *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{program.name} ended with {done.returncode}:\n{done.stderr[-4000:]}"
