"""install-config.yaml and DNS records."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from metal_ipi.components.endpoints.records import Host, api_records, bootstrap_records, ingress_records
from metal_ipi.components.install.install_config import InstallConfigError, install_config
from tests import golden

_PULL_SECRET = '{"auths":{"quay.io":{"auth":"eDp5"}}}'
_DOMAIN = "lab.facility.test"


def config(**changes: Any) -> str:
    """An install-config.yaml."""
    given: dict[str, Any] = {
        "cluster_name": "lab",
        "base_domain": "facility.test",
        "architecture": "x86_64",
        "control_plane": 3,
        "workers": 2,
        "pull_secret": _PULL_SECRET,
        "authorized_keys": ["ssh-ed25519 AAAA cluster", "ssh-rsa BBBB someone"],
    }
    return install_config(**{**given, **changes})


def test_install_config() -> None:
    golden.check("install-config.yaml", config())


def test_what_depends_on_the_cluster() -> None:
    made = yaml.safe_load(config(architecture="aarch64", control_plane=1, workers=0))
    assert made["controlPlane"] == {"name": "master", "architecture": "arm64", "replicas": 1}
    assert made["compute"] == [{"name": "worker", "architecture": "arm64", "replicas": 0}]
    assert made["pullSecret"] == _PULL_SECRET
    assert made["sshKey"] == "ssh-ed25519 AAAA cluster\nssh-rsa BBBB someone\n"


def test_a_single_node_in_place_names_a_disk_that_is_none() -> None:
    """openshift-install wants a disk; ours is chosen on the machine, and what would write to this one never runs."""
    text = config(control_plane=1, workers=0, in_place=True)
    disk = yaml.safe_load(text)["bootstrapInPlace"]["installationDisk"]
    assert disk == "/dev/disk/by-id/metal-ipi-chooses-the-disk"


@pytest.mark.parametrize("workers", [0, 1, 500])
def test_the_installer_is_told_how_many_workers_there_are(workers: int) -> None:
    """With 0 it lets pods, and so the routers, run on the control plane; `*.apps` must point there then, and only then.

    Source: openshift/installer, pkg/asset/manifests/scheduler.go.
    """
    assert [pool["replicas"] for pool in yaml.safe_load(config(workers=workers))["compute"]] == [workers]


def test_the_machines_networks_are_named_where_they_are_known() -> None:
    assert "machineNetwork" not in yaml.safe_load(config())["networking"]
    known = yaml.safe_load(config(machine_networks=["192.0.2.0/24", "203.0.113.0/24"]))["networking"]
    assert known["machineNetwork"] == [{"cidr": "192.0.2.0/24"}, {"cidr": "203.0.113.0/24"}]


def test_fips_is_asked_for_by_name() -> None:
    assert "fips" not in yaml.safe_load(config())
    assert yaml.safe_load(config(fips=True))["fips"] is True


def test_a_pull_secret_that_is_no_json_is_refused_and_not_shown() -> None:
    with pytest.raises(InstallConfigError) as caught:
        config(pull_secret="hunter2")
    assert str(caught.value) == "the pull secret is not a JSON document; set install.pullSecret anew"
    assert caught.value.__suppress_context__


def _host(number: int, ipv6: str) -> Host[str]:
    return Host(ipv4=f"198.51.100.{number}", ipv6=f"{ipv6}{number}" if ipv6 else None)


def _listed(workers: int, ipv6: str) -> str:
    control_plane = {f"lab-control-plane-{n}.{_DOMAIN}": _host(2 * n + 1, ipv6) for n in range(3)}
    others = {f"lab-worker-{n}.{_DOMAIN}": _host(2 * n + 101, ipv6) for n in range(workers)}
    api = api_records(domain=_DOMAIN, control_plane=control_plane, arbiters={})
    ingress = ingress_records(domain=_DOMAIN, control_plane=control_plane, workers=others)
    temporary = bootstrap_records(domain=_DOMAIN, node=f"lab-bootstrap.{_DOMAIN}", address=_host(201, ipv6))
    return "".join(
        f"; {title}\n" + "".join(f"{record.name} {record.type} {' '.join(record.values)}\n" for record in records)
        for title, records in (
            ("API", api),
            ("ingress", ingress),
            ("until the bootstrap machine is removed", temporary),
        )
    )


@pytest.mark.parametrize(
    ("workers", "ipv6", "name"), [(2, "", "2-workers"), (0, "", "0-workers"), (2, "2001:db8::", "dual-stack")]
)
def test_dns_records(workers: int, ipv6: str, name: str) -> None:
    golden.check(f"dns-{name}.txt", _listed(workers, ipv6))


def test_the_pull_secret_is_one_text_and_not_a_tree() -> None:
    assert json.loads(yaml.safe_load(config())["pullSecret"])["auths"]["quay.io"] == {"auth": "eDp5"}
