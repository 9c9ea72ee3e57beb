"""install-config.yaml and DNS records."""

from __future__ import annotations

import json

import pytest
import yaml

from components.endpoints.records import api_records, bootstrap_records, ingress_records
from components.install.install_config import InstallConfigError, install_config
from tests import golden

_PULL_SECRET = '{"auths":{"quay.io":{"auth":"eDp5"}}}'
_DOMAIN = "lab.facility.test"


def _config(architecture: str = "x86_64", control_plane: int = 3, pull_secret: str = _PULL_SECRET) -> str:
    return install_config(
        cluster_name="lab",
        base_domain="facility.test",
        architecture=architecture,
        control_plane=control_plane,
        pull_secret=pull_secret,
        authorized_keys=["ssh-ed25519 AAAA cluster", "ssh-rsa BBBB someone"],
    )


def test_install_config() -> None:
    golden.check("install-config.yaml", _config())


def test_what_depends_on_the_cluster() -> None:
    config = yaml.safe_load(_config(architecture="aarch64", control_plane=1))
    assert config["controlPlane"] == {"name": "master", "architecture": "arm64", "replicas": 1}
    assert config["compute"] == [{"name": "worker", "architecture": "arm64", "replicas": 0}]
    assert config["pullSecret"] == _PULL_SECRET
    assert config["sshKey"] == "ssh-ed25519 AAAA cluster\nssh-rsa BBBB someone\n"


def test_a_single_node_in_place_names_a_disk_that_is_none() -> None:
    """openshift-install wants a disk; ours is chosen on the machine, and what would write to this one never runs."""
    text = install_config(
        cluster_name="lab",
        base_domain="facility.test",
        architecture="x86_64",
        control_plane=1,
        pull_secret=_PULL_SECRET,
        authorized_keys=["ssh-ed25519 AAAA cluster"],
        in_place=True,
    )
    disk = yaml.safe_load(text)["bootstrapInPlace"]["installationDisk"]
    assert disk == "/dev/disk/by-id/metal-ipi-chooses-the-disk"


def test_a_pull_secret_that_is_no_json_is_refused_and_not_shown() -> None:
    with pytest.raises(InstallConfigError) as caught:
        _config(pull_secret="hunter2")
    assert str(caught.value) == "the pull secret is no JSON document; set install.pullSecret anew"
    assert caught.value.__suppress_context__


def _listed(workers: int) -> str:
    control_plane = {f"lab-control-plane-{n}.{_DOMAIN}": f"198.51.100.{2 * n + 1}" for n in range(3)}
    others = {f"lab-worker-{n}.{_DOMAIN}": f"198.51.100.{2 * n + 101}" for n in range(workers)}
    api = api_records(domain=_DOMAIN, control_plane=control_plane)
    ingress = ingress_records(domain=_DOMAIN, control_plane=control_plane, workers=others)
    temporary = bootstrap_records(domain=_DOMAIN, node=f"lab-bootstrap.{_DOMAIN}", address="198.51.100.201")
    return "".join(
        f"; {title}\n" + "".join(f"{record.name} {record.type} {' '.join(record.values)}\n" for record in records)
        for title, records in (
            ("API", api),
            ("ingress", ingress),
            ("until the bootstrap machine is removed", temporary),
        )
    )


@pytest.mark.parametrize("workers", [2, 0])
def test_dns_records(workers: int) -> None:
    golden.check(f"dns-{workers}-workers.txt", _listed(workers))


def test_the_pull_secret_is_one_text_and_not_a_tree() -> None:
    assert json.loads(yaml.safe_load(_config())["pullSecret"])["auths"]["quay.io"] == {"auth": "eDp5"}
