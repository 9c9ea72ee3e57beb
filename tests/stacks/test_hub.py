"""A hub's stack: what its settings say, what is refused before anything is declared, what is declared."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, cast

import pytest
import trustme
import yaml

from metal_ipi.stacks.hub.sections import HubSettings
from metal_ipi.stacks.kinds import parse
from metal_ipi.stacks.problems import SettingsError
from tools import stackfile

_FILE = Path(__file__).resolve().parents[2] / "stacks" / "Pulumi.hub.yaml"
_FACTS = {
    "kubeconfig": "apiVersion: v1",
    "address": "192.0.2.15",
    "images": {name: f"registry.test/{name}:1" for name in ("ironic", "mariadb", "httpd", "dnsmasq")},
}

_AUTHORITY = trustme.CA().cert_pem.bytes().decode()


def values(*, of_lab: bool = True, **provisioning: Any) -> dict[str, str]:
    document = cast("dict[str, Any]", yaml.safe_load(_FILE.read_text()))
    document["config"]["metal-ipi:provisioning"].update(provisioning)
    if not of_lab:
        return stackfile.values(stackfile.Config(document=document))
    with NamedTemporaryFile("w") as authority:
        authority.write(_AUTHORITY)
        authority.flush()
        lab = {"machines": "simulated", "ca_path": authority.name, "artifacts": {"ca_path": authority.name}}
        config = stackfile.for_lab_hub(document, _FACTS, lab)
    found = stackfile.values(config)
    assert list(config.secrets) == ["metal-ipi:hub.kubeconfig"]
    return {**found, "hub": json.dumps({"kubeconfig": "apiVersion: v1"})}


def test_the_committed_stack_is_a_hub_s() -> None:
    settings = parse(values(), "hub")
    assert isinstance(settings, HubSettings)
    assert settings.provisioning.images.database == "registry.test/mariadb:1"
    assert (settings.provisioning.conductors, settings.provisioning.access.address) == (2, "192.0.2.15")
    assert settings.provisioning.ca == 2 * _AUTHORITY, "that of the BMCs, and the artifact host's"


def test_servers_by_ipmi_need_dhcp_of_somebody() -> None:
    def remarks(**provisioning: Any) -> tuple[str, ...]:
        settings = parse(values(**provisioning), "hub")
        assert isinstance(settings, HubSettings)
        return settings.provisioning.remarks

    (remark,) = remarks()
    assert "need DHCP of the site's own that leads iPXE to boot/boot.ipxe" in remark
    assert remarks(drivers=["redfish"]) == remarks(dhcp=_DHCP, plainBootFiles=True) == ()


def test_what_a_real_change_needs_is_told_at_once() -> None:
    with pytest.raises(SettingsError) as caught:
        parse(values(of_lab=False), "hub")
    assert [problem.path.partition(":")[2] for problem in caught.value.problems] == [
        "hub.kubeconfig",
        "provisioning.access.address",
        "provisioning.images.database",
        "provisioning.images.files",
        "provisioning.images.ironic",
    ]
    assert "--secret" in caught.value.problems[0].remedy


_DHCP = {"interface": "eno1", "ranges": ["192.0.2.1-192.0.2.9"]}
_IMAGE = {"name": "a", "url": "https://images.test/a", "sha256": "0" * 64}


@pytest.mark.parametrize(
    ("wrong", "path"),
    [
        ({"access": {"type": "node-port", "api": 31400}}, "provisioning.access"),
        ({"access": {"type": "node-port", "files": 32767}}, "provisioning.access"),
        (
            {"access": {"type": "load-balancer", "address": "192.0.2.1", "files": ["192.0.2.2"]}},
            "provisioning.access.files",
        ),
        ({"access": {"type": "load-balancer", "address": "a b", "files": []}}, "provisioning.access.address"),
        ({"namespace": "A"}, "provisioning.namespace"),
        ({"images": {"ironic": "a b"}}, "provisioning.images.ironic"),
        ({"drivers": ["ilo"]}, "provisioning.drivers[0]"),
        ({"tls": {"type": "made", "validDays": 30}}, "provisioning.tls.renewBeforeDays"),
        ({"automatedCleaning": True}, "provisioning.automatedCleaning"),
        ({"ramdisk": {"kernel": "cache:a"}}, "provisioning.ramdisk.kernel"),
        ({"ramdisk": {"kernelArguments": ["a b"]}}, "provisioning.ramdisk.kernelArguments[0]"),
        ({"imageCache": {"images": [_IMAGE, _IMAGE]}}, "provisioning.imageCache.images"),
        ({"dhcp": {"interface": "eno1", "ranges": ["192.0.2.9-192.0.2.1"]}}, "provisioning.dhcp.ranges"),
        ({"dhcp": _DHCP}, "provisioning.plainBootFiles"),
        (
            {"dhcp": _DHCP, "plainBootFiles": True, "extraConfig": {"pxe": {"pxe_config_subdir": "x"}}},
            "provisioning.extraConfig.pxe.pxe_config_subdir",
        ),
        ({"extraConfig": {"api": {"port": "1"}}}, "provisioning.extraConfig.api.port"),
        ({"extraConfig": {"database": {"connection": "sqlite://"}}}, "provisioning.extraConfig.database.connection"),
        ({"extraConfig": {"api": {"max_limit": "a\nb"}}}, "provisioning.extraConfig.api.max_limit"),
        ({"pinRelease": "newest"}, "provisioning.pinRelease"),
        ({"metrics": {"intervalSeconds": 5}}, "provisioning.metrics.intervalSeconds"),
        ({"operator": {"interface": "eno2"}, "metrics": {"monitor": True}}, "provisioning.metrics.monitor"),
        ({"operator": {}}, "provisioning.operator.interface"),
        ({"operator": {"address": "192.0.2.15"}}, "provisioning.conductors"),
        ({"operator": {"interface": "eno2", "network": "192.0.2.1/24"}}, "provisioning.operator.network"),
        ({"operator": {"interface": "eno2"}, "pinRelease": "38.0"}, "provisioning.pinRelease"),
        ({"operator": {"interface": "eno2"}, "conductors": 1, "dhcp": _DHCP}, "provisioning.operator.network"),
        (
            {
                "operator": {"interface": "eno2"},
                "access": {"type": "load-balancer", "address": "192.0.2.1", "files": ["192.0.2.2", "192.0.2.3"]},
            },
            "provisioning.access.type",
        ),
        ({"conductor": 3}, "provisioning.conductor"),
    ],
)
def test_a_wrong_value_is_told_by_its_path(wrong: dict[str, Any], path: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse(values(**wrong), "hub")
    assert path in [problem.path.partition(":")[2] for problem in caught.value.problems]


def test_a_kubeconfig_is_not_shown() -> None:
    with pytest.raises(SettingsError) as caught:
        parse({**values(), "hub": json.dumps({"kubeconfig": ["hunter2"]})}, "hub")
    assert "hunter2" not in str(caught.value)
