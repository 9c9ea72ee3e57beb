"""The install-config.yaml that our program renders: the installer accepts it, and makes the cluster that was meant."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from lab.openshift.real import RELEASE
from metal_ipi.components.install.bootstrap import MASKED, masked
from metal_ipi.components.install.driver import refusal
from tests.conformance import ignition
from tests.conformance.conftest import Configured, Made
from tests.conformance.facilities import BOTH_FAMILIES, EVERY, MASTERS, OWN_FIELDS, SETTINGS, WORKERS
from tests.conformance.given import pointer

_NO_RELEASE = "Release Image Architecture not detected. Release Image Architecture is unknown"
_SCHEDULABLE = "Making control-plane schedulable by setting MastersSchedulable to true for Scheduler cluster settings"
_KUBELET = "kubelet.service"
# With an arbiter the installer says so of what it wrote itself; files that were added or taken out there stay so.
_MADE_ANEW = (
    "Discarding the Openshift Manifests that was provided in the target directory because its dependencies are dirty"
    " and it needs to be regenerated"
)
_NOT_CAPABLE = "target cluster is in FIPS mode"
_EVERY = pytest.mark.parametrize(("name", "architecture"), EVERY)


def _warnings(log: str) -> set[str]:
    found = re.findall(r'level=(?:warning|error|fatal) msg=(?:"((?:[^"\\]|\\.)*)"|(\S+))', log)
    return {quoted or word for quoted, word in found}


@_EVERY
def test_the_installer_accepts_ours_with_no_other_warning_than_these(name: str, architecture: str, made: Made) -> None:
    expected = {_NO_RELEASE}  # a build from source carries no release image; the published program does
    if WORKERS[name] == 0:
        expected.add(_SCHEDULABLE)  # that is what 0 workers are to mean
    if name == "fips":
        expected.add(_NOT_CAPABLE)
    if name == "arbiter":
        expected.add(_MADE_ANEW)
    assert {warning.partition(", use the ")[0] for warning in _warnings(made(name, architecture).log)} == expected


@pytest.mark.parametrize("name", [name for name in SETTINGS if name != "fips"])  # for which a preview asks nobody
def test_a_preview_that_asks_the_installer_hears_nothing_against_ours(
    name: str, made: Made, installer: Path, tmp_path: Path
) -> None:
    request = made(name).request

    def said(config: str) -> str:
        return refusal(
            installer=str(installer),
            version=RELEASE,
            install_config=config,
            work_directory=tmp_path / "work",
            manifests=request.get("manifests", {}),
        )

    assert said(request["installConfig"]) == ""
    assert "OpenShiftSDN is not supported" in said(request["installConfig"].replace("OVNKubernetes", "OpenShiftSDN"))


def test_what_a_site_says_stands_in_the_manifests(made: Made) -> None:
    """Each field of `installConfig`, where the cluster reads it."""
    site, files = made("site"), made("site").bootstrap_files
    network = site.manifest("cluster-network-02-config.yml")["spec"]
    wanted = OWN_FIELDS["networking"]
    assert network["clusterNetwork"] == wanted["clusterNetwork"]
    assert (network["serviceNetwork"], network["networkType"]) == (wanted["serviceNetwork"], "OVNKubernetes")
    ovn = site.manifest("cluster-network-03-config.yml")["spec"]["defaultNetwork"]["ovnKubernetesConfig"]
    assert ovn["ipv4"]["internalJoinSubnet"] == "100.66.0.0/16"
    proxy = site.manifest("cluster-proxy-01-config.yaml")
    assert {name: proxy["spec"][name] for name in OWN_FIELDS["proxy"]} == OWN_FIELDS["proxy"]
    assert {"10.64.0.0/15", "172.20.0.0/16", "api-int.rack.example.com"} <= set(proxy["status"]["noProxy"].split(","))
    assert site.manifest("user-ca-bundle-config.yaml")["data"]["ca-bundle.crt"].strip() == site.authority.strip()
    mirrors = site.manifest("image-digest-mirror-set.yaml")["spec"]["imageDigestMirrors"]
    assert mirrors == OWN_FIELDS["imageDigestSources"]
    overrides = site.manifest("cvo-overrides.yaml")["spec"]["capabilities"]
    assert overrides == OWN_FIELDS["capabilities"]
    gates = yaml.safe_load(files["/opt/openshift/openshift/99_feature-gate.yaml"])["spec"]
    assert gates["featureSet"] == "CustomNoUpgrade"
    assert gates["customNoUpgrade"]["enabled"] == ["RouteExternalCertificate"]
    status = site.manifest("cluster-infrastructure-02-config.yml")["status"]
    assert status["cpuPartitioning"] == "AllNodes"
    config = yaml.safe_load(site.manifest("cluster-config.yaml")["data"]["install-config"])
    assert config["publish"] == "External"


def test_both_families_stand_in_the_manifests(made: Made) -> None:
    facility = made("beside")
    network = facility.manifest("cluster-network-02-config.yml")["spec"]
    assert {name: network[name] for name in BOTH_FAMILIES} == BOTH_FAMILIES
    config = yaml.safe_load(facility.manifest("cluster-config.yaml")["data"]["install-config"])
    assert config["networking"]["machineNetwork"] == [{"cidr": "192.0.2.0/24"}, {"cidr": "2001:db8:64::/64"}]


def test_an_unknown_field_would_be_such_a_warning(made: Made, installer: Path, tmp_path: Path) -> None:
    config = made("metal").request["installConfig"] + "surprise: 1\n"
    (tmp_path / "install-config.yaml").write_text(config)
    subprocess.run([str(installer), "create", "manifests", "--dir", str(tmp_path)], check=True, capture_output=True)
    found = _warnings((tmp_path / ".openshift_install.log").read_text()) - {_NO_RELEASE}
    assert any("unknown field" in warning and "surprise" in warning for warning in found), found


@_EVERY
def test_the_control_plane_takes_pods_only_where_there_are_no_workers(name: str, architecture: str, made: Made) -> None:
    scheduler = made(name, architecture).manifest("cluster-scheduler-02-config.yml")
    assert scheduler["spec"]["mastersSchedulable"] is (WORKERS[name] == 0)


@_EVERY
def test_the_cluster_knows_its_numbers_and_its_architecture(name: str, architecture: str, made: Made) -> None:
    facility = made(name, architecture)
    config = yaml.safe_load(facility.manifest("cluster-config.yaml")["data"]["install-config"])
    machine = {"x86_64": "amd64", "aarch64": "arm64"}[architecture]
    masters, workers = MASTERS[name], WORKERS[name]
    pools = [(pool["name"], pool["replicas"], pool["architecture"]) for pool in config["compute"]]
    assert pools == [("worker", workers, machine)]
    assert (config["controlPlane"]["replicas"], config["controlPlane"]["architecture"]) == (masters, machine)
    status = facility.manifest("cluster-infrastructure-02-config.yml")["status"]
    # What runs on workers is there once where there is one, even beside several control plane machines.
    wanted = ["SingleReplica" if count == 1 else "HighlyAvailable" for count in (masters, workers or masters)]
    wanted[0] = "HighlyAvailableArbiter" if name == "arbiter" else wanted[0]
    assert [status["controlPlaneTopology"], status["infrastructureTopology"]] == wanted
    assert status["apiServerURL"] == f"https://api.{facility.domain}:6443"
    assert status["apiServerInternalURI"] == f"https://api-int.{facility.domain}:6443"


def test_the_machines_networks_are_those_of_the_rack(made: Made) -> None:
    config = yaml.safe_load(made("rack").manifest("cluster-config.yaml")["data"]["install-config"])
    assert config["networking"]["machineNetwork"] == [{"cidr": "192.0.2.0/24"}]
    assert config["platform"] == {"none": {}}


def test_the_platforms_addresses_stand_where_its_static_pods_and_operators_read_them(
    made: Made, configured: Configured
) -> None:
    facility, pods = made("baremetal"), {}
    status = facility.manifest("cluster-infrastructure-02-config.yml")["status"]["platformStatus"]
    assert status["type"] == "BareMetal"
    assert status["baremetal"]["apiServerInternalIPs"] == ["192.0.2.8"]
    assert status["baremetal"]["ingressIPs"] == ["192.0.2.9"]
    for role in ("master", "worker"):
        files = ignition.files(json.loads(configured("baremetal").rendered[role]))
        names = {path.rpartition("/")[2] for path in files if path.startswith("/etc/kubernetes/manifests/")}
        assert names - {"criometricsproxy.yaml"} == {
            "keepalived.yaml",
            "coredns.yaml",
            *(["haproxy.yaml"] if role == "master" else []),
        }
        pods[role] = yaml.safe_load(files["/etc/kubernetes/manifests/keepalived.yaml"])
    for pod in pods.values():  # the lab's kubelet goes by these (lab/openshift/node/vips.go)
        assert (pod["metadata"]["name"], pod["metadata"]["namespace"]) == ("keepalived", "openshift-kni-infra")
        command = pod["spec"]["initContainers"][0]["command"]
        assert command[command.index("--api-vips") + 1] == "192.0.2.8"
        assert command[command.index("--ingress-vips") + 1] == "192.0.2.9"
    assert "haproxy.yaml" not in str(pods["worker"])


def test_an_arbiter_has_a_configuration_of_its_own_where_our_pointer_leads(made: Made, configured: Configured) -> None:
    """And no API server. The platform's pods are those of the control plane (templates/arbiter/00-arbiter/on-prem)."""
    facility, rendered = made("arbiter"), configured("arbiter").rendered
    ours = json.loads(pointer(facility, "arbiter"))["ignition"]
    own = facility.pointer("arbiter")["ignition"]
    (source,) = own["config"]["merge"]
    api = source["source"].replace("192.0.2.8", f"api-int.{facility.domain}")  # which is its name here
    assert {"source": api} in ours["config"]["merge"] and ours["security"] == own["security"]
    (kubelet,) = (unit for unit in json.loads(rendered["arbiter"])["systemd"]["units"] if unit["name"] == _KUBELET)
    assert "--node-labels=node-role.kubernetes.io/arbiter," in kubelet["contents"]
    paths = ignition.files(json.loads(rendered["arbiter"]))
    pods = {path.rpartition("/")[2] for path in paths if path.startswith("/etc/kubernetes/manifests/")}
    assert pods == {"keepalived.yaml", "coredns.yaml", "haproxy.yaml", "criometricsproxy.yaml"}
    config = yaml.safe_load(facility.manifest("cluster-config.yaml")["data"]["install-config"])
    assert (config["arbiter"]["replicas"], config["arbiter"]["name"]) == (1, "arbiter")


@pytest.mark.parametrize("name", ["baremetal", "arbiter"])
def test_nothing_in_the_cluster_makes_or_switches_machines_of_platform_baremetal(name: str, made: Made) -> None:
    kinds = {
        document["kind"]
        for path, content in made(name).bootstrap_files.items()
        if path.startswith("/opt/openshift/openshift/")
        for document in yaml.safe_load_all(content)
    }
    assert not kinds & {"Machine", "MachineSet", "BareMetalHost"}
    assert {"Provisioning", "MachineConfig"} <= kinds
    provisioning = made("baremetal").bootstrap_files["/opt/openshift/openshift/99_baremetal-provisioning-config.yaml"]
    assert yaml.safe_load(provisioning)["spec"]["provisioningNetwork"] == "Disabled"


def test_every_unit_that_installs_servers_from_the_bootstrap_machine_is_masked(made: Made) -> None:
    """The services of quadlets are called after them; what is left waits for the packet filter, and does nothing."""
    baremetal, none = made("baremetal").bootstrap, made("rack").bootstrap
    units = {unit["name"] for unit in baremetal["systemd"]["units"]} - {
        unit["name"] for unit in none["systemd"]["units"]
    }
    for path in made("baremetal").bootstrap_files:
        if path.startswith("/etc/containers/systemd/") and path.endswith(".container"):
            units.add(path.rpartition("/")[2].removesuffix(".container") + ".service")
    assert units - set(masked(baremetal=True)) == {"wait-iptables-init.service"}
    assert set(masked(baremetal=True)) - units == set(MASKED)


def test_a_platform_of_its_own_stands_where_its_cloud_controller_and_kubelets_read_it(
    made: Made, configured: Configured
) -> None:
    infrastructure = made("external").manifest("cluster-infrastructure-02-config.yml")
    assert infrastructure["spec"]["platformSpec"] == {"type": "External", "external": {"platformName": "acme"}}
    status = infrastructure["status"]["platformStatus"]
    assert (status["type"], status["external"]) == ("External", {"cloudControllerManager": {"state": "External"}})
    for name, flag in (("external", "--cloud-provider=external "), ("rack", "--cloud-provider= ")):
        units = json.loads(configured(name).rendered["worker"])["systemd"]["units"]
        assert [flag in unit["contents"] for unit in units if unit["name"] == _KUBELET] == [True]


def test_fips_stands_where_nodes_read_it(made: Made, configured: Configured) -> None:
    """RHCOS' initramfs reads it at the first boot (openshift/os, 40rhcos-fips)."""
    config = yaml.safe_load(made("fips").manifest("cluster-config.yaml")["data"]["install-config"])
    assert config["fips"] is True and config["sshKey"].startswith("ecdsa-sha2-nistp256 ")
    told = ignition.files(json.loads(configured("fips").served))["/etc/ignition-machine-config-encapsulated.json"]
    assert json.loads(told)["spec"]["fips"] is True
