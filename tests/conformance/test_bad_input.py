"""Bad input: what the real installer refuses, our settings refuse before it is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.openshift.real import RELEASE
from metal_ipi.components.install.driver import DriverError, create
from metal_ipi.stacks.settings import SettingsError, parse
from tests.conformance.conftest import Made
from tests.conformance.facilities import ARBITER
from tests.stacks.rack import SERVERS, rack_text


@dataclass(frozen=True, kw_only=True)
class Bad:
    """A value that the installer refuses."""

    installer: Mapping[str, Any]
    """What of a good install-config.yaml is replaced, by path."""
    says: str
    """What the installer says of it."""
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The same in the settings of a rack (`tests.stacks.rack`); nothing where no setting leads there."""
    problem: str = ""
    """The setting that our error names."""
    in_place: bool = False
    """Whether the cluster is a single node."""
    code: int = 3
    """The installer's exit code: 3 for what is wrong with the configuration, 1 for what it notices later."""


_ECDSA = (
    "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBEmKSENjQEezOmxkZMy7opKgwFB9nkt5YRrYMjNuG5"
    "N87uRgg6CLrbo5wAdT/y6v0mKV0U2w0WZ2YB/++Tpockg="
)


def _same(field: str, setting: str, value: object, *, says: str = "") -> Bad:
    """A value that stands in install-config.yaml as it stands in the settings."""
    settings = {setting.replace(".", "__"): value}
    return Bad(installer={field: value}, says=says or field, settings=settings, problem=setting)


def _count(field: str, setting: str, count: int, *, says: str = "") -> Bad:
    """A number of machines."""
    bad = _same(field, f"{setting}.count", count, says=says)
    return replace(bad, settings={setting: {"count": count}})


def _own(field: str, value: object, *, says: str = "", at: str = "", **others: object) -> Bad:
    """A field of install-config.yaml that has the same name and value among the settings. `at`: what our error names,
    where it is not the field; `others`: further fields that go with it."""
    fields = {field: value, **{name.replace("__", "."): other for name, other in others.items()}}
    return Bad(
        installer=fields,
        says=says or field,
        settings={f"installConfig__{name.replace('.', '__')}": each for name, each in fields.items()},
        problem=f"installConfig.{at or field}",
    )


def _join(network: str, **others: object) -> Bad:
    return _own(
        "networking.ovnKubernetesConfig",
        {"ipv4": {"internalJoinSubnet": network}},
        says="internalJoinSubnet",
        at="networking",
        **others,
    )


_PODS = {"cidr": "10.128.0.0/14", "hostPrefix": 23}
_PODS_IPV6 = {"cidr": "fd01::/48", "hostPrefix": 64}
_SERVICES = "172.30.0.0/16"


def _network(gateway: str, prefix: int, cidr: str, says: str) -> Bad:
    first = gateway.rpartition(".")[0]
    servers = [{**server, "address": f"{first}.{10 + number}"} for number, server in enumerate(SERVERS)]
    return Bad(
        installer={"networking.machineNetwork": [{"cidr": cidr}]},
        says=says,
        settings={"platform__gateway": gateway, "platform__prefix": prefix, "platform__servers": servers},
        problem="platform.prefix",
    )


def _platform(api: str, ingress: str, problem: str, says: str, **installer: Any) -> Bad:
    """Addresses that platform baremetal is to keep; without one of ingress there is none."""
    hosts = [
        {"name": server["name"], "role": "worker" if "worker" in server["name"] else "master",
         "bootMACAddress": server["mac"]}
        for server in SERVERS
    ]  # fmt: skip
    vips = {"apiVIPs": [api], **({"ingressVIPs": [ingress]} if ingress else {})}
    given = {"baremetal": {**vips, "provisioningNetwork": "Disabled", "hosts": hosts}}
    sections = {"apiAddress": api, "ingressAddress": ingress}
    settings = {name: {"type": "platform", "address": address} for name, address in sections.items() if address}
    own = {f"installConfig__{name}": value for name, value in installer.items()}
    return Bad(installer={"platform": given, **installer}, says=says, settings={**settings, **own}, problem=problem)


_ARBITER = {"name": "arbiter", "replicas": 1, "architecture": "amd64"}
_LONG, _HALF = ".".join(["a" * 60] * 5), ".".join(["a" * 55] * 4)
BAD = {
    "upper case in the cluster's name": _same("metadata.name", "clusterName", "Rack"),
    "an underscore in the cluster's name": _same("metadata.name", "clusterName", "rack_one"),
    "no cluster's name": _same("metadata.name", "clusterName", ""),
    "an empty label in the base domain": _same("baseDomain", "baseDomain", "example..com"),
    "upper case in the base domain": _same("baseDomain", "baseDomain", "Example.com"),
    "no base domain": _same("baseDomain", "baseDomain", ""),
    "a domain that is too long": _same("baseDomain", "baseDomain", _LONG),
    "a name and a domain that are too long together": Bad(
        installer={"metadata.name": "a" * 50, "baseDomain": _HALF},
        says="must be no more than 253 characters",
        settings={"clusterName": "a" * 50, "baseDomain": _HALF},
        problem="clusterName",
    ),
    **{
        f"a pull secret of {what}": _same("pullSecret", "install.pullSecret", secret)
        for what, secret in {
            "no JSON": "swordfish",
            "no registries": "{}",
            "an empty list of registries": '{"auths":{}}',
            "a registry without a way in": '{"auths":{"quay.io":{}}}',
        }.items()
    },
    "an SSH key that is none": Bad(
        installer={"sshKey": "ssh-ed25519 swordfish"},
        says="sshKey",
        settings={"ssh": {"authorizedKeys": ["ssh-ed25519 swordfish"]}},
        problem="ssh.authorizedKeys",
    ),
    "machines in the pods' network": _network("10.129.0.1", 24, "10.129.0.0/24", "networking.clusterNetwork"),
    "machines in the services' network": _network("172.30.5.1", 24, "172.30.5.0/24", "networking.serviceNetwork"),
    "machines in a network with the pods' in it": _network("10.0.0.1", 8, "10.0.0.0/8", "networking.clusterNetwork"),
    "machines where OVN's routers are": _network("100.64.3.1", 24, "100.64.3.0/24", "100.64.3.0/24"),
    "machines where OVN's routers are between zones": _network("100.88.3.1", 24, "100.88.3.0/24", "100.88.3.0/24"),
    "machines where OVN hides services": _network("169.254.3.1", 24, "169.254.3.0/24", "169.254.3.0/24"),
    **{
        f"a services' network that is {what}": _own("networking.serviceNetwork", networks, says=says)
        for what, (networks, says) in {
            "an address": (["172.30.0.0"], "invalid CIDR address: 172.30.0.0"),
            "an address within": (["172.30.0.1/16"], "expecting 172.30.0.0/16"),
            "two": (["172.30.0.0/16", "172.31.0.0/16"], "only one service network can be specified"),
            "too large": (["172.0.0.0/8"], "must be /12 or greater"),
        }.items()
    },
    **{
        f"dual stack with {what}": _own(
            "networking.serviceNetwork",
            services,
            says=says,
            at=at,
            networking__clusterNetwork=[_PODS, *pods],
        )
        for what, (services, pods, says, at) in {
            "no pods of IPv6": (
                [_SERVICES, "fd02::/112"],
                [],
                "networking.clusterNetwork",
                "networking.clusterNetwork",
            ),
            "services of IPv6 first": (["fd02::/112", _SERVICES], [_PODS_IPV6], "IPv4 addresses must be listed", ""),
            "two services' networks of IPv6": (
                ["fd02::/112", "fd03::/112", _SERVICES],
                [_PODS_IPV6],
                "provide two",
                "",
            ),
            "pods of another prefix": (
                [_SERVICES, "fd02::/112"],
                [{**_PODS_IPV6, "hostPrefix": 80}],
                "prefix must be 64 for IPv6",
                "networking.clusterNetwork",
            ),
            "services of a /64": ([_SERVICES, "fd02::/64"], [_PODS_IPV6], "should be /112", ""),
            "services where OVN's routers are": (
                [_SERVICES, "fd98::/112"],
                [_PODS_IPV6],
                "default internal subnet fd98::/64",
                "networking",
            ),
        }.items()
    },
    "dual stack with no machines of IPv6": Bad(
        installer={
            "networking.serviceNetwork": [_SERVICES, "fd02::/112"],
            "networking.clusterNetwork": [_PODS, _PODS_IPV6],
        },
        says="networking.machineNetwork: Invalid value",
        settings={
            "installConfig__networking__serviceNetwork": [_SERVICES, "fd02::/112"],
            "installConfig__networking__clusterNetwork": [_PODS, _PODS_IPV6],
        },
        problem="platform.ipv6",
    ),
    "services where OVN's routers are": _own(
        "networking.serviceNetwork", ["100.64.0.0/16"], says="OVNKubernetes default internal subnet", at="networking"
    ),
    "services among the pods": _own(
        "networking.serviceNetwork", ["10.130.0.0/16"], says="must not overlap with service network", at="networking"
    ),
    "services where the machines are": replace(
        _own("networking.serviceNetwork", ["192.0.2.0/24"], says="must not overlap with any of the machine"),
        problem="platform.prefix",
    ),
    **{
        f"pods' networks that are {what}": _own("networking.clusterNetwork", networks, says=says, at="networking")
        for what, (networks, says) in {
            "no networks": ([{"cidr": "pods", "hostPrefix": 23}], "invalid CIDR address: pods"),
            "smaller than a node's part": ([{**_PODS, "hostPrefix": 8}], "must not be larger size than CIDR"),
            "divided in two ways": (
                [_PODS, {"cidr": "10.64.0.0/14", "hostPrefix": 24}],
                "must be the same value for IPv4 networks",
            ),
            "one in the other": ([_PODS, {"cidr": "10.129.0.0/16", "hostPrefix": 23}], "overlap with cluster network"),
            "where OVN's routers are between zones": ([{"cidr": "100.88.0.0/14", "hostPrefix": 23}], "transit subnet"),
        }.items()
    },
    "a network plug-in of former times": _own("networking.networkType", "OpenShiftSDN", says="is not supported"),
    "OVN's routers where the services are": _join(_SERVICES),
    "OVN's routers where the pods are": _join("10.128.0.0/16"),
    "OVN's routers without room for all nodes": _join("100.64.0.0/24"),
    "OVN's routers in no network": replace(_join("routers"), says="invalid CIDR address: routers"),
    "OVN's routers with another plug-in": replace(
        _join("100.65.0.0/16", networking__networkType="Calico"),
        says="ovnKubernetesConfig may only be specified with the OVNKubernetes networkType",
    ),
    **{
        f"a proxy that is {what}": _own("proxy", proxy, says=says)
        for what, (proxy, says) in {
            "none": ({}, "must include httpProxy or httpsProxy"),
            "no URL": ({"httpProxy": "proxy.example.com"}, "proxy.httpProxy"),
            "of another scheme": ({"httpsProxy": "socks5://192.0.2.7:1080"}, "proxy.httpsProxy"),
            "for HTTP and speaks HTTPS": ({"httpProxy": "https://192.0.2.7"}, "proxy.httpProxy"),
            "among the pods": ({"httpProxy": "http://10.129.0.7:3128"}, "part of the cluster networks"),
            "among the services": ({"httpProxy": "http://172.30.0.7:3128"}, "part of the service networks"),
            "left out for words with spaces": (
                {"httpProxy": "http://192.0.2.7", "noProxy": "a.example, b.example"},
                "noProxy must not have spaces",
            ),
            "left out for wildcards": (
                {"httpProxy": "http://192.0.2.7", "noProxy": "*.example.com"},
                "without wildcard characters",
            ),
        }.items()
    },
    "a trust bundle without certificates": _own("additionalTrustBundle", "swordfish"),
    "a trust bundle's policy that there is not": _own("additionalTrustBundlePolicy", "Never", says="Proxyonly"),
    **{
        f"mirrors of {what}": _own("imageDigestSources", [sources], says="imageDigestSources[0]")
        for what, sources in {
            "a digest": {"source": f"quay.io/a/b@sha256:{'0' * 64}", "mirrors": ["registry.test:5000/b"]},
            "a tag": {"source": "quay.io/a/b:latest", "mirrors": ["registry.test:5000/b"]},
            "nothing": {"source": "", "mirrors": ["registry.test:5000/b"]},
            "a repository, at a URL": {"source": "quay.io/a/b", "mirrors": ["https://registry.test/b"]},
        }.items()
    },
    "a set of capabilities that there is not": _own("capabilities", {"baselineCapabilitySet": "v3.11"}),
    "a capability that has no name": _own(
        "capabilities", {"baselineCapabilitySet": "None", "additionalEnabledCapabilities": ["a capability"]}
    ),
    "a proxy whose password needs escapes": _own("proxy", {"httpProxy": "http://u:p^w@192.0.2.7"}, says="httpProxy"),
    "a set of features that there is not": replace(_own("featureSet", "Nonsense", says="panic: runtime error"), code=2),
    "a gate without its set of features": _own("featureGates", ["Nonsense=true"]),
    "a gate that is neither open nor closed": _own(
        "featureGates", ["Nonsense"], says="featureGates[0]", featureSet="CustomNoUpgrade"
    ),
    "no control plane": _count("controlPlane.replicas", "controlPlane", 0),
    "two control plane machines": _count(
        "controlPlane.replicas",
        "controlPlane",
        2,
        says="there should be exactly two fencing credentials to support the two node cluster",
    ),
    "an arbiter without its feature": Bad(
        installer={"controlPlane.replicas": 2, "arbiter": _ARBITER},
        says="HighlyAvailableArbiter feature must be enabled",
        settings={**ARBITER, "installConfig__featureSet": "CustomNoUpgrade", "openshiftVersion": RELEASE},
        problem="installConfig.featureSet",
    ),
    "an arbiter on platform none": Bad(
        installer={"controlPlane.replicas": 2, "arbiter": _ARBITER, "featureSet": "TechPreviewNoUpgrade"},
        says='arbiter.platform: Unsupported value: "none": supported values: "baremetal"',
        settings={"platform__servers": ARBITER["platform__servers"]},
        problem="apiAddress.type",
    ),
    "an address of the API in another network": _platform(
        "10.0.0.9", "192.0.2.8", "apiAddress.address", "IP expected to be in one of the machine networks: 192.0.2.0/24"
    ),
    "an address of ingress in another network": _platform(
        "192.0.2.9", "10.0.0.8", "ingressAddress.address", "IP expected to be in one of the machine networks"
    ),
    "one address for both": _platform(
        "192.0.2.9", "192.0.2.9", "ingressAddress.address", "VIP for API must not be one of the Ingress VIPs"
    ),
    "no address of ingress": _platform("192.0.2.9", "", "ingressAddress.type", "must specify VIP for ingress"),
    "platform baremetal without what belongs to it": _platform(
        "192.0.2.9",
        "192.0.2.8",
        "installConfig.capabilities",
        "platform baremetal requires the baremetal capability",
        capabilities={"baselineCapabilitySet": "None", "additionalEnabledCapabilities": ["MachineAPI"]},
    ),
    "fewer workers than none": _count("compute.0.replicas", "workers", -1, says="compute[0].replicas"),
    "an architecture that there is not": Bad(
        installer={"controlPlane.architecture": "riscv64", "compute.0.architecture": "riscv64"},
        says="architecture",
        settings={"boot__architecture": "riscv64"},
        problem="boot.architecture",
    ),
    "an ed25519 key with FIPS": Bad(
        installer={"fips": True},
        says="fips",
        settings={"install__fips": True, "ssh": {"authorizedKeys": ["ssh-ed25519 AAAA"]}},
        problem="ssh.authorizedKeys",
    ),
    "FIPS with an installer that is not FIPS-capable": Bad(
        # Only the installer refuses it: settings cannot know which binary it is. The setting's description says it, and
        # the preflight check `installer` refuses a system that is not in FIPS mode.
        installer={"fips": True, "sshKey": _ECDSA},
        says="extract the openshift-install-fips command from the release payload",
    ),
    "another architecture for workers than for the control plane": Bad(
        # There is one setting for both.
        installer={"compute.0.architecture": "arm64"},
        says="compute pool architecture must match control plane",
    ),
    "a machine network with an address for a name": Bad(
        # Ours is computed from platform.gateway and platform.prefix.
        installer={"networking.machineNetwork": [{"cidr": "192.0.2.1/24"}]},
        says="invalid network address. got 192.0.2.1/24, expecting 192.0.2.0/24",
    ),
    "three control plane machines in place": Bad(
        installer={"controlPlane.replicas": 3},
        says="controlPlane.replicas",
        settings={"platform__bootstrap": {"type": "none"}},
        problem="platform.bootstrap",
        in_place=True,
        code=1,
    ),
}


def changed(text: str, changes: Mapping[str, Any]) -> str:
    """An install-config.yaml with values replaced, by path."""
    tree: Any = yaml.safe_load(text)
    for path, value in changes.items():
        *parents, last = path.split(".")
        section = tree
        for part in parents:
            section = section[int(part)] if part.isdigit() else section.setdefault(part, {})
        section[last] = value
    return yaml.safe_dump(tree)


@pytest.mark.parametrize("what", BAD)
def test_the_installer_refuses_it(what: str, made: Made, installer: Path, tmp_path: Path) -> None:
    bad = BAD[what]
    config = changed(made("single" if bad.in_place else "rack").request["installConfig"], bad.installer)
    with pytest.raises(DriverError) as caught:
        create(
            installer=str(installer),
            version=RELEASE,
            install_config=config,
            work_directory=tmp_path / "work",
            in_place=bad.in_place,
        )
    assert caught.value.code == bad.code
    assert bad.says in str(caught.value)


@pytest.mark.parametrize("what", [what for what, bad in BAD.items() if bad.settings])
def test_our_settings_refuse_it_as_well(what: str) -> None:
    bad = BAD[what]
    with pytest.raises(SettingsError) as caught:
        parse(rack_text(**bad.settings), "rack")
    assert any(problem.path.startswith(f"metal-ipi:{bad.problem}") for problem in caught.value.problems), str(
        caught.value
    )
