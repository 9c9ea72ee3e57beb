"""The stand-in's command line: files, messages and exit codes of openshift-install."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509

from binaries.golang import find_go

from .support import DOMAIN, SSH_KEY, Facility, contents, write_config

pytestmark = pytest.mark.programs

SOURCES = Path(__file__).parents[3] / "lab" / "openshift"
ASSETS = {
    "auth/kubeadmin-password",
    "auth/kubeconfig",
    "bootstrap.ign",
    "master.ign",
    "metadata.json",
    "worker.ign",
}


def files(directory: Path) -> set[str]:
    return {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()}


def load(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text())


def test_go_tests_pass(program: Path) -> None:
    result = subprocess.run(
        ["unshare", "-Urm", str(find_go()), "test", "./..."],  # containers want namespaces of their own
        cwd=SOURCES,
        env={**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert result.returncode == 0, result.stdout + result.stderr


def test_ignition_configs_have_the_real_ones_names_and_shape(site: Facility) -> None:
    write_config(site.assets)
    result = site.install("create", "ignition-configs")
    assert result.returncode == 0, result.stderr
    assert "level=info msg=Consuming Install Config from target directory\n" in result.stderr
    assert files(site.assets) == ASSETS
    for role in ("master", "worker"):
        pointer = load(site.assets / f"{role}.ign")["ignition"]
        assert pointer["version"] == "3.2.0"
        assert pointer["config"] == {"merge": [{"source": f"https://api-int.{DOMAIN}:22623/config/{role}"}]}
        (authority,) = pointer["security"]["tls"]["certificateAuthorities"]
        assert authority["source"].startswith("data:text/plain;charset=utf-8;base64,")
    bootstrap = site.assets / "bootstrap.ign"
    assert 100_000 < bootstrap.stat().st_size < 300_000
    config = load(bootstrap)
    assert config["passwd"]["users"] == [{"name": "core", "sshAuthorizedKeys": [SSH_KEY]}]
    secret = contents(config)
    assert b"PRIVATE KEY" in secret["/opt/openshift/tls/root-ca.key"]
    assert b"registry.test" in secret["/root/.docker/config.json"]
    metadata = load(site.assets / "metadata.json")
    assert metadata["clusterName"] == "lab"
    assert metadata["infraID"].startswith("lab-")
    kubeconfig = yaml.safe_load((site.assets / "auth/kubeconfig").read_text())
    assert kubeconfig["clusters"][0]["cluster"]["server"] == f"https://api.{DOMAIN}:6443"


def test_certificates_of_the_installation_live_a_day(site: Facility) -> None:
    write_config(site.assets)
    assert site.install("create", "ignition-configs").returncode == 0
    secret = contents(load(site.assets / "bootstrap.ign"))
    for name, hours in {"kubelet-signer": 24, "kube-apiserver-lb-server": 24, "root-ca": 87600}.items():
        certificate = x509.load_pem_x509_certificate(secret[f"/opt/openshift/tls/{name}.crt"])
        life = certificate.not_valid_after_utc - certificate.not_valid_before_utc
        assert life.total_seconds() == (hours + 1) * 3600, name


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pullSecret": "{}"}, "pullSecret: Invalid value: auths required"),
        ({"pullSecret": "swordfish"}, "pullSecret: Invalid value: auths required"),
        ({"platform": {"aws": {}}}, "platform: Invalid value: must be none"),
        ({"apiVersion": "v2"}, 'apiVersion: Invalid value: "v2"'),
        (
            {"metadata": {"name": ""}, "baseDomain": None},
            "name: Required value: cluster name required, baseDomain: Req",
        ),
        ({"controlPlane": {"replicas": 0}}, "controlPlane.replicas: Invalid value: must be positive"),
        ({"compute": "none"}, "cannot unmarshal"),
    ],
)
def test_a_wrong_config_exits_3_and_is_kept(site: Facility, changes: dict[str, Any], message: str) -> None:
    write_config(site.assets, **changes)
    result = site.install("create", "ignition-configs")
    assert result.returncode == 3
    assert (
        'level=error msg=failed to load asset "Install Config": invalid "install-config.yaml" file: ' in result.stderr
    )
    assert message in result.stderr
    assert files(site.assets) == {"install-config.yaml"}


@pytest.mark.parametrize(("workers", "schedulable"), [(0, True), (1, False), (None, False)])
def test_without_workers_the_control_plane_takes_pods(site: Facility, workers: int | None, schedulable: bool) -> None:
    write_config(site.assets, compute=None if workers is None else [{"name": "worker", "replicas": workers}])
    assert site.install("create", "ignition-configs").returncode == 0
    secret = contents(load(site.assets / "bootstrap.ign"))
    assert json.loads(secret["/etc/lab-openshift/cluster.json"])["mastersSchedulable"] is schedulable


def test_no_config_exits_3(site: Facility) -> None:
    result = site.install("create", "ignition-configs")
    assert result.returncode == 3
    assert "install-config.yaml" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["create", "cluster"], "does not implement"),
        (["create", "ignition-configs", "--nonsense"], "flag provided but not defined"),
        (["wait-for", "bootstrap-complete"], "does not implement"),
    ],
)
def test_other_errors_exit_1(site: Facility, arguments: list[str], message: str) -> None:
    result = site.install(*arguments)
    assert result.returncode == 1
    assert "level=fatal msg=" in result.stderr
    assert message in result.stderr


def test_version_says_that_it_is_a_stand_in(site: Facility) -> None:
    result = site.install("version")
    assert result.returncode == 0
    assert result.stdout.splitlines()[0].endswith("openshift-install 4.21.0-lab")
    assert "stand-in" in result.stdout


def test_stream_metadata_is_printed_as_it_is(site: Facility, tmp_path: Path) -> None:
    stream = tmp_path / "stream.json"
    stream.write_text('{"stream": "lab"}')
    result = site.install("coreos", "print-stream-json", LAB_OPENSHIFT_STREAM=str(stream))
    assert (result.returncode, result.stdout) == (0, '{"stream": "lab"}')
