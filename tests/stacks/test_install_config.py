"""What a site says of install-config.yaml: rendered under the installer's names, checked before it is asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml

from metal_ipi.components.install.install_config import InstallConfigError
from metal_ipi.stacks.program import main
from metal_ipi.stacks.settings import parse
from tests.mocks import Recorder, is_secret, plain, run
from tests.stacks.answers import ANSWERS, CALLS, declared, problems, settings, tells
from tests.stacks.rack import rack_text

_AUTHORITY = trustme.CA().cert_pem.bytes().decode()
_WITH_KEY = trustme.CA().issue_cert("mirror.test").private_key_and_cert_chain_pem.bytes().decode()
_NETWORKS: dict[str, Any] = {
    "clusterNetwork": [{"cidr": "10.64.0.0/15", "hostPrefix": 24}],
    "serviceNetwork": ["172.20.0.0/16"],
}
# Refuses what has a proxy.
_INSTALLER = """#!/bin/sh
if [ "$1" = version ]; then echo "openshift-install v${FAKE_VERSION-4.21.3}"; exit 0; fi
echo "$2" >>"$0.asked"
cd "$4" || exit 9
mkdir manifests openshift
if grep httpProxy install-config.yaml >&2; then echo 'level=error msg=proxy: Invalid value' >&2; exit 3; fi
"""


def _rendered(**config: Any) -> dict[str, Any]:
    recorder = declared(installConfig=config)
    stdin = recorder.one("install-assets-create").inputs["stdin"]
    assert is_secret(stdin)
    return yaml.safe_load(json.loads(plain(stdin))["installConfig"])


def test_nothing_is_said_where_nothing_is_set() -> None:
    config = _rendered()
    assert set(config) == {
        *("apiVersion", "baseDomain", "metadata", "controlPlane", "compute", "networking", "platform"),
        *("pullSecret", "sshKey"),
    }
    assert config["networking"]["clusterNetwork"] == [{"cidr": "10.128.0.0/14", "hostPrefix": 23}]
    assert config["networking"]["serviceNetwork"] == ["172.30.0.0/16"]


def test_each_field_has_the_installers_name() -> None:
    given: dict[str, Any] = {
        "proxy": {"httpProxy": "http://u:p@192.0.2.7:3128", "noProxy": ".example.com"},
        "additionalTrustBundle": _AUTHORITY,
        "additionalTrustBundlePolicy": "Always",
        "imageDigestSources": [{"source": "quay.io/a/b", "mirrors": ["mirror.test:5000/b", "mirror.test"]}],
        "capabilities": {"baselineCapabilitySet": "v4.18", "additionalEnabledCapabilities": ["NodeTuning"]},
        "featureSet": "CustomNoUpgrade",
        "featureGates": ["Some=true", "Other=false"],
        "cpuPartitioningMode": "AllNodes",
    }
    networks = {**_NETWORKS, "ovnKubernetesConfig": {"ipv4": {"internalJoinSubnet": "100.66.0.0/16"}}}
    config = _rendered(networking=networks, other={"publish": "Internal"}, **given)
    assert {name: config[name] for name in given} == given
    assert config["networking"] == {"networkType": "OVNKubernetes", **networks}
    assert config["publish"] == "Internal"


def test_another_plug_in_leaves_ovns_networks_to_others() -> None:
    networks = {"networkType": "Calico", "serviceNetwork": ["100.64.0.0/16"]}
    assert _rendered(networking=networks)["networking"]["networkType"] == "Calico"


def test_preflight_knows_the_networks_inside() -> None:
    plan = declared(installConfig={"networking": _NETWORKS}).inputs("preflight")
    inside = plan["networks"]
    assert (inside["the pods' network"], inside["the services' network"]) == ("10.64.0.0/15", "172.20.0.0/16")


def test_registries_are_asked_where_there_are_mirrors_or_that_is_wanted() -> None:
    sources = [{"source": "quay.io/openshift-release-dev", "mirrors": ["mirror.test:5000/ocp"]}]
    mirrored = declared(installConfig={"imageDigestSources": sources, "additionalTrustBundle": _AUTHORITY})
    plan = mirrored.inputs("preflight")
    assert (plan["images"], plan["mirrors"]) == (True, sources)
    section = json.loads(plain(mirrored.inputs("metal-ipi")["registries"]))
    assert section["ca"] == _AUTHORITY and json.loads(section["pullSecret"])["auths"]
    without: list[dict[str, Any]] = [
        {},
        {"installConfig": {"imageDigestSources": sources}, "preflight": {"images": False}},
    ]
    for changes in without:
        plain_stack = declared(**changes)
        assert not {"images", "mirrors"} & plain_stack.inputs("preflight").keys()
        assert "registries" not in plain_stack.inputs("metal-ipi")
    assert declared(preflight={"images": True}).inputs("preflight")["images"] is True


@pytest.mark.parametrize(
    ("config", "path", "why"),
    [
        (
            {"networking": {"clusterNetwork": [{"cidr": "10.0.0.0/24", "hostPrefix": 24}]}},
            "networking.clusterNetwork",
            "it has room for 1 nodes, and there are 6",
        ),
        ({"networking": {"serviceNetwork": ["172.30.0.0/31"]}}, "networking.serviceNetwork[0]", "it is too small"),
        (
            {"networking": {"serviceNetwork": ["10.128.0.0/16"]}},
            "networking",
            "the pods' network overlaps the services' network",
        ),
        ({"proxy": {"httpProxy": "http://172.30.0.7"}}, "proxy.httpProxy", "it is in the services' network"),
        ({"proxy": {"noProxy": "a"}}, "proxy", "it names no proxy"),
        ({"additionalTrustBundle": _WITH_KEY}, "additionalTrustBundle", "it contains a private key"),
        (
            {"networking": {"serviceNetwork": ["172.30.0.0/255.255.0.0"]}},
            "networking.serviceNetwork[0]",
            "it is not a network",
        ),
        ({"proxy": {"httpProxy": "http://192.0.2.7:0"}}, "proxy.httpProxy", "it is not a URL of a proxy"),
        ({"proxy": {"httpProxy": "http://u:p^w@192.0.2.7"}}, "proxy.httpProxy", "it is not a URL of a proxy"),
        (
            {"proxy": {"httpProxy": "http://192.0.2.7", "noProxy": "A.test"}},
            "proxy.noProxy",
            "'A.test' is not a domain",
        ),
        (
            {"featureGates": ["A=true"], "featureSet": "TechPreviewNoUpgrade"},
            "featureGates",
            "featureSet is TechPreviewNoUpgrade",
        ),
        ({"other": {"platform": {"baremetal": {}}}}, "other.platform", "the program sets this field itself"),
        ({"other": {"proxy": {}}}, "other.proxy", "the program sets this field itself"),
    ],
)
def test_what_cannot_be(config: dict[str, Any], path: str, why: str) -> None:
    assert tells(problems(settings(installConfig=config)), f"installConfig.{path}", why)


def test_machines_are_outside_of_the_networks_that_are_set() -> None:
    inside = {"networking": {"serviceNetwork": ["192.0.2.0/24"]}}
    assert tells(problems(rack_text(installConfig=inside)), "platform.prefix", "the services' network is 192.0.2.0/24")
    moved = {"networking": {"clusterNetwork": [{"cidr": "10.64.0.0/15", "hostPrefix": 24}]}}
    assert parse(rack_text(installConfig=moved), "rack")


@pytest.mark.parametrize(
    "url",
    ["ftp://u:swordfish@192.0.2.7", "u:swordfish@192.0.2.7", "http://u:sword/fish@192.0.2.7", "http://u:sword fish@a"],
)
def test_a_secret_is_not_shown(url: str) -> None:
    (problem,) = problems(settings(installConfig={"proxy": {"httpProxy": url}}))
    assert "fish" not in str(problem) and problem.path == "metal-ipi:installConfig.proxy.httpProxy"


@pytest.fixture
def installer(tmp_path: Path) -> Path:
    path = tmp_path / "openshift-install"
    path.write_text(_INSTALLER)
    path.chmod(0o755)
    return path


def _asked(installer: Path) -> list[str]:
    record = installer.with_name(f"{installer.name}.asked")
    return record.read_text().split() if record.exists() else []


def test_a_preview_asks_the_installer_that_is_there(installer: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def of(**config: Any) -> dict[str, str]:
        return settings(install={"installer": str(installer)}, openshiftVersion="4.21.3", installConfig=config)

    declared(values=of(), preview=True)
    assert _asked(installer) == ["manifests"]
    recorder = Recorder(ANSWERS, CALLS)
    refused = r"(?s)nothing was changed.*create manifests failed:.*proxy: Invalid"
    with pytest.raises(InstallConfigError, match=refused) as caught:
        run(main, recorder, of(proxy={"httpProxy": "http://u:swordfish@192.0.2.7"}), stack="da11", preview=True)
    assert "swordfish" not in str(caught.value) and "[secret]" in str(caught.value)
    assert recorder.requests.keys() == {"metal-ipi-da11"}
    monkeypatch.setenv("FAKE_VERSION", "4.20.0")
    declared(values=of(proxy={"httpProxy": "http://192.0.2.7"}), preview=True)
    assert _asked(installer) == ["manifests", "manifests"], "one of another release is not asked"
    monkeypatch.delenv("FAKE_VERSION")
    declared(values={**of(proxy={"httpProxy": "http://192.0.2.7"}), "rehearsal": "true"}, preview=True)
    assert _asked(installer) == ["manifests", "manifests"], "a rehearsal has no secrets"
    installer.write_text("\0")
    declared(values=of(proxy={"httpProxy": "http://192.0.2.7"}), preview=True)
