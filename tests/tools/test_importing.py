"""`make import`: what becomes of the installer's files, and what is said of the rest."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml

from metal_ipi.stacks.assets import config
from metal_ipi.stacks.platforms.registry import facility
from metal_ipi.stacks.settings import parse
from tests.docs.pages import DOCS, ROOT, Page
from tests.mocks import config_text
from tests.stacks.answers import PUBLIC_KEY, settings, stack_file
from tests.stacks.rack import rack
from tools.errors import StackError
from tools.importing.command import missing, take, write
from tools.importing.documents import read
from tools.importing.taking import Taking
from tools.stackfile import merge

_PASSWORD, _PULL_SECRET = "hunter2-canary", '{"auths":{"quay.io":{"auth":"canary"}}}'
_STACKS = {path.name.split(".")[1] for path in (ROOT / "stacks").glob("Pulumi.*.yaml")}
_CLUSTERS = sorted(_STACKS - {"hub", "capi7"})
"""The hub has no cluster; capi7 needs what its lab tells, and is rack7 otherwise."""


def _bmc(address: str = "redfish://10.0.0.11", **more: Any) -> dict[str, Any]:
    return {"address": address, "username": "ipi", "password": _PASSWORD, **more}


def _host(number: int = 0, role: str = "master", **more: Any) -> dict[str, Any]:
    bmc = _bmc(f"redfish://10.0.0.{11 + number}")
    return {"name": f"h{number}", "role": role, "bootMACAddress": f"52:54:00:00:00:0{number}", "bmc": bmc, **more}


def _config(*hosts: dict[str, Any], baremetal: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """An install-config of as many hosts, or of three machines and two where none are listed."""
    roles = [host.get("role") for host in hosts]
    sizes = (roles.count("master"), roles.count("worker")) if hosts else (3, 2)
    platform = {"baremetal": {"hosts": list(hosts), **(baremetal or {})}} if hosts or baremetal else {"none": {}}
    return {
        "apiVersion": "v1",
        "metadata": {"name": "c"},
        "baseDomain": "example.com",
        "controlPlane": {"name": "master", "replicas": sizes[0]},
        "compute": [{"name": "worker", "replicas": sizes[1]}],
        "platform": platform,
        **more,
    }


def _static(number: int = 1, name: str = "eno1", gateway: str = "192.0.2.1", **card: Any) -> dict[str, Any]:
    address = {"ip": f"192.0.2.{number}", "prefix-length": 24}
    return {
        "interfaces": [{"name": name, "type": "ethernet", "ipv4": {"enabled": True, "address": [address]}, **card}],
        "routes": {"config": [{"destination": "0.0.0.0/0", "next-hop-address": gateway, "next-hop-interface": name}]},
        "dns-resolver": {"config": {"server": ["192.0.2.53"]}},
    }


@pytest.fixture
def imported(tmp_path: Path) -> Any:
    """Convert an install-config, and an agent-config's hosts where there are any."""

    def convert(tree: dict[str, Any] | str, agent: dict[str, Any] | None = None) -> Taking:
        files: list[Path] = []
        for name, each in (("install-config.yaml", tree), ("agent-config.yaml", agent)):
            if each is not None:
                files.append(tmp_path / name)
                files[-1].write_text(each if isinstance(each, str) else yaml.safe_dump(each))
        return take(*map(read, files))

    return convert


def _agent(*hosts: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"apiVersion": "v1beta1", "kind": "AgentConfig", "hosts": list(hosts), **more}


def _told(taking: Taking) -> dict[str, str]:
    """What was told, by field: why and remedy."""
    return {each.place.where: f"{each.why} -> {each.remedy}" for each in taking.told}


# --- the page ------------------------------------------------------------------------------------------------------


def test_the_page_has_what_the_command_writes_and_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = DOCS / "coming-from.md"
    page = Page(name="docs/coming-from.md", text=file.read_text())
    (tmp_path / "stacks").mkdir()
    monkeypatch.chdir(tmp_path)
    for block in page.blocks:
        for name in block.all("file"):
            Path(name).write_text(f"{block.text}\n")
    made = write(tmp_path, None, Path("install-config.yaml"), Path("agent-config.yaml"), overwrite=False)
    (stack,) = (block.text for block in page.blocks if block.all("holds"))
    (said,) = (block.text for block in page.blocks if block.text.startswith("stacks/Pulumi.ny5.yaml is written"))
    if os.environ.get("METAL_IPI_UPDATE_GOLDEN"):
        file.write_text(page.text.replace(stack, made.path.read_text().strip()).replace(said, made.told))
    else:
        assert (f"{stack}\n", said) == (made.path.read_text(), made.told)


# --- and back ------------------------------------------------------------------------------------------------------


def _site(name: str) -> dict[str, Any]:
    """A stack's settings as a tree."""
    if name == "site":
        return rack(
            installConfig={
                "networking": {
                    "clusterNetwork": [{"cidr": "10.64.0.0/15", "hostPrefix": 24}],
                    "serviceNetwork": ["172.20.0.0/16"],
                    "ovnKubernetesConfig": {"ipv4": {"internalJoinSubnet": "100.66.0.0/16"}},
                },
                "proxy": {"httpProxy": "http://u:p@proxy.example.com:3128", "noProxy": ".example.com"},
                "additionalTrustBundle": trustme.CA().cert_pem.bytes().decode(),
                "additionalTrustBundlePolicy": "Always",
                "imageDigestSources": [{"source": "quay.io/a/b", "mirrors": ["mirror.test:5000/b", "mirror.test"]}],
                "capabilities": {"baselineCapabilitySet": "v4.18", "additionalEnabledCapabilities": ["NodeTuning"]},
                "featureSet": "CustomNoUpgrade",
                "featureGates": ["Some=true", "Other=false"],
                "cpuPartitioningMode": "AllNodes",
            },
            ssh={"authorizedKeys": [f"{PUBLIC_KEY} somebody"]},
            boot__architecture="aarch64",
        )
    return {key: json.loads(value) if value[0] in "{[" else value for key, value in settings(name).items()}


@pytest.mark.parametrize("name", [*_CLUSTERS, "site"])
def test_what_a_stack_renders_is_imported_to_what_renders_it_again(name: str, imported: Any) -> None:
    """Servers, DNS and the rest are no part of install-config: they are the stack's own again."""
    tree: dict[str, Any] = {**_site(name), "rehearsal": True}
    before = parse(config_text(tree), name)
    rendered = config(before, facility(before), PUBLIC_KEY)
    taking: Taking = imported(rendered)
    known = ("its prefix length is converted", "the names of machines follow from cluster")
    assert [each.place.where for each in taking.told if not each.why.startswith(known)] == []
    found = copy.deepcopy(taking.settings)
    assert found["ssh"]["authorizedKeys"].pop(0) == PUBLIC_KEY, "the stack's own"
    assert found["platform"].pop("prefix", None) == tree["platform"].get("prefix")
    not_of_install_config = {
        **{section: tree[section] for section in ("openshiftVersion", "platform", "dns", "artifacts", "rehearsal")},
        "boot": tree["boot"],
        "install": {"pullSecret": taking.secrets["install.pullSecret"].text},
        "apiAddress": tree.get("apiAddress", {}),
    }
    for section in ("platform", "dns", "artifacts", "apiAddress"):
        found.pop(section)
    assert found.get("ingressAddress") == tree.get("ingressAddress")
    found["boot"].pop("install")
    if "site" in name:
        proxy = found["installConfig"]["proxy"]
        assert "httpProxy" not in proxy, "it has a password"
        proxy["httpProxy"] = taking.secrets["installConfig.proxy.httpProxy"].text
    again = parse(config_text(merge(not_of_install_config, found)), name)
    assert config(again, facility(again), PUBLIC_KEY) == rendered


def test_what_the_installer_takes_for_granted_is_so_here(imported: Any) -> None:
    taking: Taking = imported({"apiVersion": "v1", "metadata": {"name": "c"}, "baseDomain": "example.com."})
    found = taking.settings
    assert (found["controlPlane"], found["workers"]) == ({"count": 3}, {"count": 3})
    assert (found["baseDomain"], taking.told) == ("example.com", [])
    assert "boot" in found and "architecture" not in found["boot"]


# --- reading -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "causes"),
    [
        ("a: [1", ["line 1: expected ',' or ']'"]),
        ("a:\n  b: 1\n c: 2", ["line 3: "]),
        ("", ["line 1: it is not a mapping"]),
        ("- 1", ["line 1: it is not a mapping"]),
        ("a: 1\n---\na: 1", ["line 2: but found another document"]),
        ("a: &a [*a]", ["aliases in a circle"]),
        ("a: *canary", ["line 1: found undefined alias '...'"]),
        ("? []\n: 1\n? []\n: 2", ["line 1: '[]' is there twice"]),
        ("a:\n  b: !!bool canary", ["line 2: it is not a value of its type"]),
        ("a: !!int ''", ["line 1: it is not a value of its type"]),
        ("a: !!timestamp canary", ["line 1: could not determine a constructor"]),
        ("a: !!binary YQ==", ["line 1: could not determine a constructor"]),
        ("a: !canary b", ["line 1: could not determine a constructor for the tag '...'"]),
        ("metadata:\n  name: a\n  name: b\nfips: true\nfips: true", ["line 1: 'fips' is", "line 2: 'name' is"]),
        (
            "fips: 'no'\npullSecret: {auths: {}, x: canary}\ncontrolPlane: {replicas: three}\nplatform: none\n"
            "networking:\n  clusterNetwork: {cidr: 10.0.0.0/8}\n  serviceNetwork: 172.30.0.0/16\ncompute: worker",
            [
                *("line 1: fips must be true or false", "line 2: pullSecret must be a text"),
                *("line 3: controlPlane.replicas must be a whole number", "line 4: platform must be a mapping"),
                *("line 6: networking.clusterNetwork must be", "line 7: networking.serviceNetwork must be a list of"),
                "line 8: compute must be a",
            ],
        ),
    ],
)
def test_what_cannot_be_read_is_refused_with_file_line_and_cause(text: str, causes: list[str], imported: Any) -> None:
    with pytest.raises(StackError) as refused:
        imported(text)
    said = str(refused.value)
    assert [cause for cause in causes if cause not in said] == [] and "install-config.yaml cannot be read" in said, said
    assert "canary" not in said


def test_more_aliases_than_anybody_needs_are_refused(imported: Any) -> None:
    lines = ["a0: &a0 [x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 8))]
    with pytest.raises(StackError, match="more than 100000 values"):
        imported("\n".join(lines))


def test_texts_are_read_as_the_installer_reads_them(imported: Any) -> None:
    """MAC addresses that YAML 1.1 takes for numbers of base 60; names that are numbers; merged mappings."""
    text = """
metadata: {name: 4711}
platform:
  baremetal:
    hosts:
      - &host {role: master, bootMACAddress: 52:54:00:12:34:56, bmc: {address: 10.0.0.11, username: 1, password: 2}}
      - {<<: *host, bootMACAddress: 52-54-00-AB-00-01}
"""
    taking: Taking = imported(text)
    servers = taking.settings["platform"]["servers"]
    assert [server["mac"] for server in servers] == ["52:54:00:12:34:56", "52:54:00:ab:00:01"]
    assert (taking.settings["clusterName"], taking.settings["platform"]["bmc"]["username"]) == ("4711", "1")


def test_dual_stack(imported: Any) -> None:
    card: dict[str, Any] = {"name": "eno1", "type": "ethernet", "state": "up", "mac-address": "52:54:00:12:34:56"}
    card["ipv4"] = {"enabled": True, "address": [{"ip": "192.0.2.11", "prefix-length": 24}]}
    card["ipv6"] = {"enabled": True, "address": [{"ip": "2001:db8::11", "prefix-length": 64}]}
    networks = [{"cidr": "192.0.2.0/24"}, {"cidr": "2001:db8::/64"}]
    balanced = {"apiVIPs": ["192.0.2.9", "2001:db8::9"], "loadBalancer": {"type": "UserManaged"}}
    host = _host(networkConfig={"interfaces": [card]})
    settings = imported(_config(host, baremetal=balanced, networking={"machineNetwork": networks})).settings
    assert settings["platform"]["ipv6"] == {"network": "2001:db8::/64"}
    assert settings["platform"]["servers"][0]["ipv6Address"] == "2001:db8::11"
    assert settings["apiAddress"]["ipv6Address"] == "2001:db8::9"


# --- fields --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tree", "where", "said"),
    [
        (_config(publish="Internal"), "publish", "the installer refuses it"),
        (_config(credentialsMode="Manual"), "credentialsMode", "the installer refuses it"),
        (_config(fibs=True), "fibs", "did you mean 'fips'?"),
        (_config(surprise={"a": 1}), "surprise", "set it in installConfig.other"),
        (_config(metadata={"name": "c", "labels": {"a": "b"}}), "metadata.labels", "no such field"),
        (_config(platform={"aws": {"region": "x"}}), "platform.aws", "only bare metal"),
        (_config(compute=[{"name": "edge", "replicas": 1}]), "compute[0].name", "only the pools"),
        (_config(compute=[{"name": "edge", "replicas": 1}]), "compute[0].replicas", "there is no setting for it"),
        (_config(controlPlane={"architecture": "s390x"}), "controlPlane.architecture", "only amd64 and arm64"),
        (
            _config(controlPlane={"architecture": "amd64"}, compute=[{"name": "worker", "architecture": "arm64"}]),
            "compute[0].architecture",
            "all machines are of one architecture",
        ),
        (_config(networking={"clusterNetworkMTU": 1400}), "networking.clusterNetworkMTU", "on AWS only"),
        (
            _config(networking={"networkType": "Calico", "type": "OVNKubernetes"}),
            "networking.type",
            "the field that has replaced it",
        ),
        (_config(networking={"machineNetwork": [{"cidr": "fd00::/64"}]}), "networking.machineNetwork[0].cidr", "IPv6"),
        (_config(networking={"machineNetwork": [{"cidr": "x"}]}), "networking.machineNetwork[0].cidr", "not a network"),
        (
            _config(networking={"machineNetwork": [{"cidr": "10.0.0.0/24"}, {"cidr": "10.0.1.0/24"}]}),
            "networking.machineNetwork[1].cidr",
            "all machines are in one network",
        ),
        (
            _config(_host(networkConfig=_static()), networking={"machineNetwork": [{"cidr": "10.0.0.0/16"}]}),
            "networking.machineNetwork[0].cidr",
            "192.0.2.1/24",
        ),
        (
            _config(_host(), baremetal={"apiVIPs": ["192.0.2.9", "fd00::9"]}),
            "platform.baremetal.apiVIPs",
            "IPv4 address",
        ),
        (_config(_host(), baremetal={"provisioningBridge": "x"}), "platform.baremetal.provisioningBridge", "no prov"),
        (_config(_host(), baremetal={"clusterOSImage": "x"}), "platform.baremetal.clusterOSImage", "stream metadata"),
        (
            _config(_host(), _host(1, "worker"), baremetal={"externalMACAddress": "52:54:00:00:00:aa"}),
            "platform.baremetal.externalMACAddress",
            "no virtual machine",
        ),
        (
            _config(_host(networkConfig=_static()), baremetal={"bootstrapExternalStaticGateway": "192.0.2.2"}),
            "platform.baremetal.bootstrapExternalStaticGateway",
            "the hosts' own networkConfig has another one",
        ),
        (_config(_host(role="witness")), "platform.baremetal.hosts[0]", "no machine has such a role"),
        (_config(_host(hardwareProfile="libvirt")), "platform.baremetal.hosts[0].hardwareProfile", "only chose a disk"),
        (_config(_host(bootMode="UEFISecureBoot")), "platform.baremetal.hosts[0].bootMode", "live-iso"),
        (
            _config(_host(bmc=_bmc(disableCertificateVerification=True))),
            "platform.baremetal.hosts[0].bmc.disableCertificateVerification",
            "set platform.bmc.ca",
        ),
        (
            _config(_host(bmc=_bmc("ipmi://10.0.0.11:623"))),
            "platform.baremetal.hosts[0].bmc.address",
            "driver: ipmi and bmc.address: ipmi://10.0.0.11:623, and",
        ),
        (_config(_host(bmc=_bmc("10.0.0.11"))), "platform.baremetal.hosts[0].bmc.address", "uses ipmi"),
        (_config(_host(bmc=_bmc("ipmi://u:p@h"))), "platform.baremetal.hosts[0].bmc.address", "address: ipmi://h, and"),
        (_config(_host(bmc=_bmc("ipmi:///h"))), "platform.baremetal.hosts[0].bmc.address", "uses ipmi"),
        (_config(controlPlane={"fencing": {"credentials": [1]}}), "controlPlane.fencing", "two with an arbiter"),
        (_config(_host(bmc=_bmc("irmc://10.0.0.11"))), "platform.baremetal.hosts[0].bmc.address", "uses irmc"),
        (_config(_host(bmc=_bmc("redfish+http://h"))), "platform.baremetal.hosts[0].bmc.address", "https is set"),
        (
            _config(_host(bmc=_bmc("redfish://h/x"))),
            "platform.baremetal.hosts[0].bmc.address",
            "not a path of a System",
        ),
        (_config(_host(), controlPlane={"replicas": 3}), "controlPlane.replicas", "the files list 1 hosts"),
        (_config(_host(bmc=_bmc("redfish://u:p@h"))), "platform.baremetal.hosts[0].bmc.address", "a password"),
        (_config(additionalTrustBundle="-----BEGIN PRIVATE KEY-----"), "additionalTrustBundle", "a private key"),
    ],
)
def test_what_is_not_taken_over_is_told(tree: dict[str, Any], where: str, said: str, imported: Any) -> None:
    told = _told(imported(tree))
    assert said in told[where], told


@pytest.mark.parametrize(
    ("tree", "setting", "value"),
    [
        (_config(networking={"type": "ovnkubernetes"}), "installConfig.networking.networkType", "OVNKubernetes"),
        (_config(networking={"serviceCIDR": "172.20.0.0/16"}), "installConfig.networking.serviceNetwork",
         ["172.20.0.0/16"]),
        (_config(networking={"clusterNetworks": [{"cidr": "10.64.0.0/15", "hostSubnetLength": 8}]}),
         "installConfig.networking.clusterNetwork", [{"cidr": "10.64.0.0/15", "hostPrefix": 24}]),
        (_config(imageContentSources=[{"source": "a.test/b", "mirrors": ["c.test/d"]}]),
         "installConfig.imageDigestSources", [{"source": "a.test/b", "mirrors": ["c.test/d"]}]),
        (_config(_host(), baremetal={"additionalNTPServers": ["a", "b", "a"]}), "machineConfig.ntpServers", ["a", "b"]),
        (_config(featureSet="Default", publish="External"), "installConfig", None),
        (_config(proxy={"httpProxy": "http://p.test:1"}), "installConfig.proxy", {"httpProxy": "http://p.test:1"}),
        (_config(controlPlane={"hyperthreading": "Disabled"}), "controlPlane.kernelArguments",
         ["nosmt", "smt-enabled=off"]),
        (_config(controlPlane={"hyperthreading": "Enabled"}), "controlPlane", {"count": 3}),
        (_config(sshKey="# ours\nssh-rsa A a\n\nssh-rsa B b\n"), "ssh.authorizedKeys", ["ssh-rsa A a", "ssh-rsa B b"]),
        (_config(_host(), baremetal={"apiVIP": "192.0.2.9"}), "apiAddress",
         {"type": "kube-vip", "mode": "arp", "address": "192.0.2.9"}),
        (_config(_host(), baremetal={"apiVIPs": ["192.0.2.9"], "loadBalancer": {"type": "UserManaged"}}), "apiAddress",
         {"type": "external", "address": "192.0.2.9"}),
        (_config(_host(), baremetal={"apiVIPs": ["192.0.2.9"], "ingressVIPs": ["192.0.2.8"]}), "apiAddress",
         {"type": "platform", "address": "192.0.2.9"}),
        (_config(_host(), baremetal={"apiVIPs": ["192.0.2.9"], "ingressVIP": "192.0.2.8"}), "ingressAddress",
         {"type": "platform", "address": "192.0.2.8"}),
        (_config(_host(), baremetal={"apiVIPs": ["192.0.2.9"], "ingressVIPs": ["192.0.2.9"],
                                     "loadBalancer": {"type": "UserManaged"}}), "ingressAddress",
         {"type": "external", "address": "192.0.2.9"}),
        (_config(), "apiAddress", {"type": "dns-round-robin"}),
        (_config(_host()), "platform.bootstrap", {"type": "none"}),
        (_config(_host(), _host(1, "worker")), "platform.bootstrap", {"type": "lend", "server": "worker-0"}),
        (_config(*map(_host, range(3)), baremetal={"libvirtURI": "qemu:///session"}), "platform.bootstrap",
         {"type": "local-vm", "uri": "qemu:///session", "bridge": "baremetal"}),
        (_config(_host(), _host(1, "worker"), baremetal={"externalMACAddress": "a", "bootstrapExternalStaticIP": "b"}),
         "platform.bootstrap", {"type": "local-vm", "mac": "a", "address": "b", "bridge": "baremetal"}),
        (_config(_host(), baremetal={"bootstrapExternalStaticDNS": "192.0.2.53"}), "platform.nameservers",
         ["192.0.2.53"]),
        (_config(_host(bmc=_bmc("idrac-virtualmedia+https://h:8443/redfish/v1/Systems/1/"), bootMode="legacy")),
         "platform.servers[0].bmc", {"address": "https://h:8443", "systemId": "1"}),
        (_config(_host(bmc=_bmc("idrac-virtualmedia+https://h:8443/redfish/v1"), bootMode="legacy")), "platform.bmc",
         {"username": "ipi", "bootMethod": "live-iso", "bootMode": "bios"}),
        (_config(_host(bmc=_bmc("redfish-uefihttp://h"), bootMode="UEFI")), "platform.bmc",
         {"username": "ipi", "bootMethod": "uefi-http", "bootMode": "uefi"}),
        (_config(_host(bmc=_bmc("redfish:10.0.0.11"))), "platform.servers[0].bmc", {"address": "https://10.0.0.11"}),
        (_config(_host(rootDeviceHints={"serialNumber": 12, "minSizeGigabytes": 9, "rotational": False})),
         "boot.install.device", {"serial": "12", "minSize": 9, "rotational": False}),
        (_config(_host(), _host(1, "worker", rootDeviceHints={"hctl": "0:0:0:0"})), "platform.servers[1].installDevice",
         {"hctl": "0:0:0:0"}),
        (_config(_host(), _host(1, "worker", rootDeviceHints={"hctl": "0:0:0:0"})), "boot.install.device",
         {"smallest": True}),
        (_config(_host(), bootstrapInPlace={"installationDisk": "/dev/disk/by-id/x"}), "boot.install.device",
         {"deviceName": "/dev/disk/by-id/x"}),
    ],
)  # fmt: skip
def test_what_is_taken_over(tree: dict[str, Any], setting: str, value: Any, imported: Any) -> None:
    taking: Taking = imported(tree)
    found: Any = taking.settings
    for part in setting.replace("[", ".").replace("]", "").split("."):
        found = found[int(part)] if part.isdigit() else found.get(part)
    assert found == value
    assert {each.place.where.rpartition(".")[2] for each in taking.told} <= {"name", "type", "additionalNTPServers"}


# --- hosts ---------------------------------------------------------------------------------------------------------


def _card(number: int, name: str = "eno1") -> dict[str, str]:
    return {"name": name, "macAddress": f"52:54:00:00:00:0{number}"}


def test_hosts_of_both_files_are_one_where_they_have_a_card_in_common(imported: Any) -> None:
    tree = _config(_host(), _host(1, "worker"), _host(2, "worker", rootDeviceHints={"hctl": "0:0:0:0"}))
    hosts = [
        {"hostname": "x", "role": "master", "interfaces": [_card(9, "eno0"), _card(0)], "networkConfig": _static(11)},
        {
            "hostname": "y",
            "role": "worker",
            "interfaces": [_card(8, "eno0"), _card(2)],
            "rootDeviceHints": {"model": "x"},
        },
    ]
    taking: Taking = imported(tree, _agent(*hosts, rendezvousIP="192.0.2.11"))
    servers = taking.settings["platform"]["servers"]
    assert [(each["name"], each["mac"][-2:], each["bmc"]["address"]) for each in servers] == [
        ("control-plane-0", "00", "https://10.0.0.11"),
        ("worker-0", "02", "https://10.0.0.13"),
    ]
    assert (servers[0]["address"], servers[1]["installDevice"]) == ("192.0.2.11", {"model": "x"})
    told = _told(taking)
    assert "none with this bootMACAddress" in told["platform.baremetal.hosts[1]"]
    assert servers[0]["interfaces"] == hosts[0]["interfaces"] and "interfaces" not in servers[1]
    assert "only that one is set" in told["hosts[1].interfaces[0].macAddress"]
    assert "agent-config.yaml:" in told["platform.baremetal.hosts[2].rootDeviceHints"]
    assert not any(where.startswith("platform.baremetal.hosts[1].") for where in told)


def test_without_install_configs_hosts_the_bmcs_are_missing(imported: Any) -> None:
    host = {"hostname": "x", "interfaces": [_card(0)], "rootDeviceHints": {"deviceName": "/dev/sda"}}
    tree = _config(controlPlane={"replicas": 1}, compute=[{"name": "worker", "replicas": 0}])
    taking: Taking = imported(tree, _agent(host, rendezvousIP="192.0.2.11", bootArtifactsBaseURL="http://a.test/b"))
    (server,) = taking.settings["platform"]["servers"]
    assert server == {"name": "control-plane-0", "mac": "52:54:00:00:00:00", "address": "192.0.2.11"}
    assert taking.settings["artifacts"] == {"type": "ssh", "bootBaseUrl": "http://a.test/b"}
    found = {problem.path: problem.why for problem in missing(taking, "c")}
    assert found["metal-ipi:platform.servers[0].bmc"] == "it is required"
    assert "kernel names" in found["metal-ipi:boot.install.device.deviceName"]
    source = taking.source("boot.install.device.deviceName")
    assert "/agent-config.yaml:" in str(source), "a wrong value is told with its line"


def test_files_of_the_same_name_are_two_files(tmp_path: Path) -> None:
    for folder, tree in (("a", _config(_host())), ("b", {**_agent(), "surprise": 1, "metadata": {"name": "d"}})):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "c.yaml").write_text(yaml.safe_dump(tree))
    told = {str(each.place) for each in take(read(tmp_path / "a/c.yaml"), read(tmp_path / "b/c.yaml")).told}
    assert {line.rpartition(":")[0] for line in told} == {f"{tmp_path}/{folder}/c.yaml" for folder in "ab"}
    assert len([line for line in told if "/b/" in line]) == 2


def test_hosts_without_a_role_get_one_that_wants_hosts(imported: Any) -> None:
    hosts = [{key: value for key, value in _host(number).items() if key != "role"} for number in range(3)]
    tree = _config(*hosts, _host(3), controlPlane={"replicas": 3}, compute=[{"name": "worker", "replicas": 1}])
    taking: Taking = imported(tree)
    names = [server["name"] for server in taking.settings["platform"]["servers"]]
    assert names == ["control-plane-0", "control-plane-1", "worker-0", "control-plane-2"]


@pytest.mark.parametrize(("arbiter", "third"), [({"name": "arbiter"}, "worker-0"), ({"replicas": 1}, "arbiter-0")])
def test_an_arbiter_that_says_no_number_is_none_as_for_the_installer(arbiter: Any, third: str, imported: Any) -> None:
    hosts = [{key: value for key, value in _host(number).items() if key != "role"} for number in range(3)]
    taking: Taking = imported(_config(*hosts, controlPlane={"replicas": 2}, arbiter=arbiter))
    names = [server["name"] for server in taking.settings["platform"]["servers"]]
    assert names == ["control-plane-0", "control-plane-1", third]


def test_accounts_and_boot_methods_that_differ_stand_with_their_servers(imported: Any) -> None:
    other = _host(1, "worker", bmc={**_bmc("redfish-virtualmedia://10.0.0.12"), "username": "other"})
    taking: Taking = imported(_config(_host(), other))
    platform = taking.settings["platform"]
    assert [server["bmc"]["username"] for server in platform["servers"]] == ["ipi", "other"]
    assert (platform["servers"][1]["bmc"]["bootMethod"], "bmc" in platform) == ("live-iso", False)
    assert {name for name in taking.secrets if "password" in name} == {
        f"platform.servers[{number}].bmc.password" for number in range(2)
    }


@pytest.mark.parametrize(
    ("configs", "network"),
    [
        ([_static(11), _static(12)], {"networkBoot": "static", "interface": "eno1", "nameservers": ["192.0.2.53"]}),
        ([_static(11), _static(12, "eno2")], {}),
        ([_static(11), _static(12, gateway="192.0.2.254")], None),
        ([_static(11), None], {}),
        ([_static(11, mtu=9000), _static(12, mtu=9000)], {}),
        ([_static(11, ethtool={"feature": {}}), _static(12)], {}),
        ([_static(11, ipv6={"enabled": True}), _static(12)], {}),
        ([{**_static(11), "hostname": {"config": "x"}}, _static(12)], {}),
    ],
)
def test_networks_are_those_of_all_only_where_all_are_so_simple(
    configs: list[dict[str, Any] | None], network: dict[str, Any] | None, imported: Any
) -> None:
    hosts = [_host(number, role) for number, role in enumerate(("master", "worker"))]
    given = [{**host, "networkConfig": each} if each else host for host, each in zip(hosts, configs, strict=True)]
    taking: Taking = imported(_config(*given))
    platform = taking.settings["platform"]
    shared = {"gateway": "192.0.2.1", "prefix": 24, **network} if network is not None else {"prefix": 24}
    assert {key: each for key, each in platform.items() if key not in ("type", "servers", "bmc", "bootstrap")} == shared
    assert platform["servers"][0]["address"] == "192.0.2.11"
    as_they_are = [server.get("networkConfig") for server in platform["servers"]]
    assert as_they_are == ([None, None] if network and "networkBoot" in network else configs)
    told = {place: text for place, text in _told(taking).items() if place.endswith("networkConfig")}
    assert len(told) == sum(map(bool, as_they_are)), told
    assert all("no MAC address says which cards these are: eno" in text for text in told.values())


@pytest.mark.parametrize("by_agent", [True, False])
def test_networks_of_hosts_are_taken_over_as_they_are(by_agent: bool, imported: Any) -> None:
    """The bonded stack's servers; install-config alone says MAC addresses in networkConfig."""
    servers = stack_file("bonded")["platform"]["servers"]
    hosts = [_host(number, "worker" if "worker" in server["name"] else "master", bootMACAddress=server["mac"].upper())
             for number, server in enumerate(servers)]  # fmt: skip
    for server, host in zip(servers, hosts, strict=True):
        macs = {card["name"]: card["macAddress"] for card in server["interfaces"]}
        if not by_agent:
            host["networkConfig"] = server["networkConfig"]
            for link in server["networkConfig"]["interfaces"]:
                if link["name"] in macs:
                    link["mac-address"] = macs[link["name"]].upper()
    agents = [
        {
            "role": host["role"],
            "interfaces": [{**card, "macAddress": card["macAddress"].upper()} for card in server["interfaces"]],
            "networkConfig": server["networkConfig"],
        }
        for server, host in zip(servers, hosts, strict=True)
    ]
    taking: Taking = imported(_config(*hosts), _agent(*agents) if by_agent else None)
    platform = taking.settings["platform"]
    wanted = ("name", "mac", "address", "interfaces", "networkConfig")
    assert [{key: server[key] for key in wanted} for server in platform["servers"]] == [
        {key: server[key] for key in wanted} for server in servers
    ]
    assert (platform["gateway"], platform["prefix"], "networkBoot" in platform) == ("192.0.2.1", 24, False)
    assert not any("etwork" in where or "interfaces" in where for where in _told(taking))
    account = {**platform["bmc"], "password": _PASSWORD}
    parse(config_text({**rack(), "platform": {**platform, "bmc": account}}), "c")  # nothing contradicts


def test_a_card_to_boot_from_is_chosen_where_no_file_says_it(imported: Any) -> None:
    bond: dict[str, Any] = {"type": "bond", "link-aggregation": {"mode": "802.3ad", "port": ["eno1", "eno2"]}}
    host = {"interfaces": [_card(1), _card(2, "eno2")], "networkConfig": _static(11, "bond0", **bond)}
    taking: Taking = imported(_config(), _agent(host))
    assert {each.setting: each.value for each in taking.chosen}["platform.servers[0].mac"] == "52:54:00:00:00:01"
    assert taking.settings["platform"]["servers"][0]["interfaces"] == host["interfaces"]


def _bad(where: str, value: Any) -> dict[str, Any]:
    """A networkConfig with something wrong in it."""
    network = _static(11)
    found: Any = network
    *above, last = [int(part) if part.isdigit() else part for part in where.split("/")]
    for part in above:
        found = found[part]
    found[last] = value
    return network


@pytest.mark.parametrize(
    ("config", "where", "why"),
    [
        (_bad("interfaces/0/ipv4/address/0/prefix-length", 33), "interfaces[0].ipv4.address[0].prefix-length",
         "more than the bits of 192.0.2.11"),
        (_bad("routes/config/0/next-hop-address", "gateway"), "routes.config[0].next-hop-address", "not a valid IPv4"),
        (_bad("interfaces/0/ipv4/address/0", {"prefix-length": 24}), "interfaces[0].ipv4.address[0].ip", "required"),
        ({"interfaces": ["x"], "routes": 1}, "routes", "not NMState"),
        (["x"], "", "it is not a mapping"),
        (_bad("interfaces/0/802.1x", {"private-key-password": _PASSWORD}), "interfaces[0].802.1x", "it contains keys"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_network_is_told_with_its_place(config: Any, where: str, why: str, imported: Any) -> None:
    tree = _config(_host(networkConfig=config), networking={"machineNetwork": [{"cidr": "192.0.2.0/24"}]})
    taking: Taking = imported(tree)
    path = f"platform.baremetal.hosts[0].networkConfig{where and '.'}{where}"
    told = {each.place.where: each for each in taking.told}
    assert why in told[path].why, told
    assert told[path].place.line > 1 and _PASSWORD not in str(taking.settings)
    assert not any("there is no setting for it" in each.why for each in taking.told)


def test_a_gateway_that_is_no_address_is_told_with_its_line(imported: Any) -> None:
    host = _host(networkConfig={**_static(11), "routes": {"config": []}})
    tree = _config(host, baremetal={"bootstrapExternalStaticGateway": "x"})
    taking: Taking = imported({**tree, "networking": {"machineNetwork": [{"cidr": "192.0.2.0/24"}]}})
    assert "have other values: x/24" in _told(taking)["networking.machineNetwork[0].cidr"]
    assert "install-config.yaml:" in str(taking.source("platform.gateway"))
    assert "metal-ipi:platform.gateway" in {problem.path for problem in missing(taking, "c")}


def test_the_same_number_in_both_files_is_one_account(imported: Any) -> None:
    agent = {"interfaces": [_card(0)], "bmc": {"username": 1}}
    taking: Taking = imported(_config(_host(bmc={**_bmc(), "username": 1})), _agent(agent))
    assert taking.settings["platform"]["bmc"]["username"] == "1"


# --- the command ---------------------------------------------------------------------------------------------------


def _written(root: Path, tree: dict[str, Any], *, stack: str | None = None, overwrite: bool = False) -> tuple[str, str]:
    (root / "stacks").mkdir(exist_ok=True)
    (root / "ic.yaml").write_text(yaml.safe_dump(tree))
    made = write(root, stack, root / "ic.yaml", None, overwrite=overwrite)
    return made.path.read_text(), made.told


@pytest.mark.programs
def test_secrets_stand_nowhere_in_clear_and_a_command_sets_each(tmp_path: Path) -> None:
    other = _bmc("redfish://10.0.0.12", password=f"{_PASSWORD}-2")
    proxy = {"httpsProxy": f"https://u:{_PASSWORD}@p.test:1"}
    tree = _config(_host(), _host(1, "worker", bmc=other), pullSecret=_PULL_SECRET, proxy=proxy)
    text, told = _written(tmp_path, tree)
    assert "canary" not in text + told
    lines = told.splitlines()
    commands = [line.strip(" |") for line in lines if "-m tools.importing " in line]
    settings = [line.partition("--path ")[2].strip("'") for line in lines if line.startswith("    pulumi config set")]
    values = dict(zip(settings, (_run(*command.split(" ", 1)[1:]) for command in commands), strict=True))
    assert values == {
        "metal-ipi:install.pullSecret": _PULL_SECRET,
        "metal-ipi:installConfig.proxy.httpsProxy": proxy["httpsProxy"],
        "metal-ipi:platform.servers[0].bmc.password": _PASSWORD,
        "metal-ipi:platform.servers[1].bmc.password": f"{_PASSWORD}-2",
    }


def _run(arguments: str) -> str:
    done = subprocess.run(
        ["sh", "-c", f"'{sys.executable}' {arguments}"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return done.stdout


def test_nothing_is_overwritten_that_nobody_named(tmp_path: Path) -> None:
    before, _ = _written(tmp_path, _config())
    with pytest.raises(StackError, match=r"stacks/Pulumi\.c\.yaml exists already, and was not changed"):
        _written(tmp_path, _config(fips=True))
    assert (tmp_path / "stacks/Pulumi.c.yaml").read_text() == before
    other, _ = _written(tmp_path, _config(fips=True), stack="other")
    assert "fips: true" in other and (tmp_path / "stacks/Pulumi.other.yaml").read_text() == other
    assert _written(tmp_path, _config(fips=True), overwrite=True)[0] == other


@pytest.mark.parametrize("name", ["../x", "a.b", "", "-x"])
def test_a_stack_has_a_name_that_a_file_can_have(name: str, tmp_path: Path) -> None:
    with pytest.raises(StackError, match="cannot be a stack's name"):
        _written(tmp_path, _config(metadata={"name": name}))
    with pytest.raises(StackError, match="no file is named"):
        write(tmp_path, None, Path(), None, overwrite=False)
    assert list((tmp_path / "stacks").iterdir()) == []


def test_what_is_wrong_or_contradicts_is_told_with_its_line_beside_what_is_missing(tmp_path: Path) -> None:
    roles = ("master", "master", "master", "worker")
    hosts = [_host(number, role, networkConfig=_static(11)) for number, role in enumerate(roles)]
    for network in ("10.128.0.0/16", "10.128.0.0/33"):
        tree = _config(*hosts, pullSecret=_PULL_SECRET, networking={"serviceNetwork": [network]})
        _, told = _written(tmp_path, tree, overwrite=True)
        assert "metal-ipi:openshiftVersion = (not set)" in told and "metal-ipi:artifacts.baseUrl = (not set)" in told
        assert f"from {tmp_path}/ic.yaml:{_line(tmp_path / 'ic.yaml', 'serviceNetwork:')}" in told
        if network.endswith("16"):
            assert (
                "the pods' network overlaps the services' network" in told and "servers[0].address is the same" in told
            )
        else:
            assert f"serviceNetwork[0] = {network}\n      it is not a network" in told


def _line(file: Path, text: str) -> int:
    return next(number for number, line in enumerate(file.read_text().splitlines(), start=1) if text in line)


@pytest.mark.programs
def test_make_hands_over_what_it_is_given(tmp_path: Path) -> None:
    def said(*variables: str) -> str:
        command = ["make", "-n", "-o", ".venv/.ready", "import", "INSTALL_CONFIG=a b.yaml", *variables]
        # `make test` tells its own flags and level to every make that it starts.
        own = {"STACK", "MAKEFLAGS", "MAKELEVEL", "MFLAGS"}
        environment = {name: value for name, value in os.environ.items() if name not in own}
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
        return " ".join(done.stdout.replace("\\", "").split())

    assert said().endswith("-m tools import --install-config 'a b.yaml'")
    assert said("STACK=x", "AGENT_CONFIG=c", "OVERWRITE=1").endswith("--agent-config 'c' --stack x --overwrite")
