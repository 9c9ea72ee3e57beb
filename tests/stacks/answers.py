"""What the engine's providers answer to the program under test, and configurations for it."""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pulumi
import pytest
import yaml

from metal_ipi.components.install.previous_runs import READ_STATE
from metal_ipi.stacks.problems import Problem, SettingsError
from metal_ipi.stacks.program import main
from metal_ipi.stacks.settings import parse
from tests.mocks import Recorder, config_text, plain, run

_ROOT = Path(__file__).resolve().parents[2]
PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAqesxf+eAriIqhUPuwKKCiWRzC4Kkc/hQ1zZk6At3G6"
SEED = base64.b64encode(bytes(range(32))).decode()
_PEM = base64.b64encode(b"-----BEGIN CERTIFICATE-----\n").decode()
_KUBECONFIG = yaml.safe_dump(
    {
        "clusters": [{"cluster": {"certificate-authority-data": _PEM}}],
        "users": [{"user": {"client-certificate-data": _PEM, "client-key-data": _PEM}}],
    }
)
_POINTER = json.dumps(
    {"ignition": {"security": {"tls": {"certificateAuthorities": [{"source": "data:;base64,Q0E="}]}}}}
)
ASSETS = json.dumps(
    {
        "bootstrap": '{"ignition":{"version":"3.2.0"}}',
        "worker": _POINTER,
        "kubeconfig": _KUBECONFIG,
        "kubeadminPassword": "swordfish",
        "metadata": "{}",
    }
)


def _artifacts(args: pulumi.runtime.MockResourceArgs) -> dict[str, Any]:
    files = plain(args.inputs.get("files"))
    if not isinstance(files, dict):  # a preview may not know them, and then knows nothing
        return {}
    names = [*files, *(plain(args.inputs.get("derived")) or {})]
    return {
        "url": "https://boot.test/x",
        "bootUrl": "http://boot.test/x",
        "hashes": {name: "sha512-" + "0" * 128 for name in names},
        "directory": "x",
    }


def commands(assets: str = ASSETS) -> Callable[[pulumi.runtime.MockResourceArgs], dict[str, Any]]:
    """What commands print: the installer's these assets, and each check that all of its nodes have passed."""

    def answer(args: pulumi.runtime.MockResourceArgs) -> dict[str, Any]:
        if "checks" not in args.name:
            return {"stdout": assets, "stderr": ""}
        given = plain(args.inputs.get("stdin"))
        nodes = asked(given) if isinstance(given, str) else ()
        passed = {node["EXPECTED_HOSTNAME"]: "hostname\tpassed\tx" for node in nodes}
        return {"stdout": json.dumps(passed), "stderr": ""}

    return answer


def asked(request: str) -> list[dict[str, str]]:
    """What the check of some nodes is asked for, node by node."""
    found = json.loads(request)
    return [{**found["all"], **dict(zip(found["own"], node, strict=True))} for node in found["nodes"]]


def checked(recorder: Recorder, hostname: str) -> dict[str, str]:
    """The same of one node, by its short name."""
    requests = [plain(args.inputs["stdin"]) for args in recorder.of("command:local:Command") if "checks" in args.name]
    nodes = [node for request in requests for node in asked(request)]
    (found,) = [node for node in nodes if node["EXPECTED_HOSTNAME"].partition(".")[0] == hostname]
    return found


def _number(device: str) -> int:
    return sum(map(ord, device)) % 200


def _device(args: pulumi.runtime.MockResourceArgs) -> dict[str, Any]:
    return {
        "accessPublicIpv4": f"198.51.100.{_number(args.name)}",
        "accessPrivateIpv4": f"203.0.113.{_number(args.name)}",
        "accessPublicIpv6": "",
        "deployedFacility": "da11",
        "ports": [{"name": "eth0", "id": f"{args.name}-eth0"}, {"name": "bond0", "id": f"{args.name}-bond0"}],
    }


def _spot_machine(args: pulumi.runtime.MockResourceArgs) -> dict[str, Any]:
    addresses = {key: value for key, value in _device(args).items() if key.startswith("access")}
    named = {f"{key[6:7].lower()}{key[7:]}": value for key, value in addresses.items()}
    return {"machineId": f"{args.name}-of-request", "console": "sos", "bond": f"{args.name}-bond0", **named}


def _request_found(args: pulumi.runtime.MockCallArgs) -> dict[str, Any]:
    request = str(args.args["requestId"])
    return {"id": request, "requestId": request, "deviceIds": [f"{request.removesuffix('-request-id')}-of-request"]}


def _block(args: pulumi.runtime.MockResourceArgs) -> dict[str, Any]:
    length = 33 - int(args.inputs["quantity"]).bit_length()
    return {"network": "192.0.2.130" if length == 32 else "192.0.2.128", "cidrNotation": f"192.0.2.128/{length}"}


def _neighbours(args: pulumi.runtime.MockCallArgs) -> dict[str, Any]:
    device = str(args.args["deviceId"])
    neighbour = {
        "addressFamily": 4,
        "customerAs": 65000,
        "customerIp": f"203.0.113.{_number(device.removesuffix('-id'))}",
        "md5Enabled": True,
        "md5Password": BGP_PASSWORD,
        "multihop": True,
        "peerAs": 65530,
        "peerIps": ["169.254.255.1", "169.254.255.2"],
        "routesIns": [],
        "routesOuts": [],
    }
    return {"id": device, "deviceId": device, "bgpNeighbors": [neighbour]}


BGP_PASSWORD = "Swordfish4bgp"
METALLB = {
    "kubernetes:core/v1:Namespace",
    "kubernetes:core/v1:Secret",
    "kubernetes:operators.coreos.com/v1:OperatorGroup",
    "kubernetes:operators.coreos.com/v1alpha1:Subscription",
    "kubernetes:metallb.io/v1beta1:MetalLB",
    "kubernetes:metallb.io/v1beta1:IPAddressPool",
    "kubernetes:metallb.io/v1beta1:BGPAdvertisement",
    "kubernetes:metallb.io/v1beta1:L2Advertisement",
    "kubernetes:metallb.io/v1beta2:BGPPeer",
}
DAY_TWO = {
    "metal-ipi:addons:Operators",
    "metal-ipi:addons:ImageRegistry",
    "metal-ipi:index:NodeMarks",
    "kubernetes:core/v1:PersistentVolumeClaim",
    "kubernetes:lvm.topolvm.io/v1alpha1:LVMCluster",
    "kubernetes:nmstate.io/v1:NMState",
    "kubernetes:nmstate.io/v1:NodeNetworkConfigurationPolicy",
    "kubernetes:fence-agents-remediation.medik8s.io/v1alpha1:FenceAgentsRemediationTemplate",
    "kubernetes:remediation.medik8s.io/v1alpha1:NodeHealthCheck",
    "kubernetes:example.com/v1:Widget",
    "kubernetes:example.facility.test/v1:Widget",
    "kubernetes:imageregistry.operator.openshift.io/v1:ConfigPatch",
}
CALLS = {
    "equinix-metal:index/getDeviceBgpNeighbors:getDeviceBgpNeighbors": _neighbours,
    "equinix-metal:index/getSpotMarketRequest:getSpotMarketRequest": _request_found,
    "equinix-metal:index/getReservedIpBlock:getReservedIpBlock": lambda args: {
        "id": args.args["id"],
        "cidrNotation": "10.66.0.0/28",
    },
}

ANSWERS = {
    "metal-ipi:index:ClusterKeys": lambda args: {
        "privateKey": "PRIVATE",
        "publicKey": PUBLIC_KEY,
        "hostKeySeed": SEED,
    },
    "metal-ipi:index:Preflight": lambda args: {},
    READ_STATE: lambda args: {"name": args.args["stackName"], "outputs": {}},
    "metal-ipi:index:cost": lambda args: {"hourly": 1.5, "unknown": [], "source": "a list", "lines": []},
    "metal-ipi:index:Artifacts": _artifacts,
    "metal-ipi:index:Mirror": lambda _: {"urls": {}, "sizes": {}},
    "metal-ipi:index:EphemeralMachine": lambda args: {
        "machineId": "bootstrap-machine",
        "publicIpv4": "198.51.100.250",
        "privateIpv4": "203.0.113.250",
        "publicIpv6": "",
        "console": "sos.da11.platformequinix.com",
        "present": True,
    },
    "metal-ipi:index:Lifetime": lambda args: {"endsAt": "2026-01-01T12:00:00Z"},
    "metal-ipi:index:SpotMachine": _spot_machine,
    "metal-ipi:index:RedfishMachine": lambda args: {"machineId": f"{args.inputs['server']}/uuid"},
    "metal-ipi:index:IronicMachine": lambda args: {"machineId": f"{args.inputs['server']}/uuid"},
    "metal-ipi:index:Installation": lambda args: {"installedAt": "now", "device": "/dev/disk/by-id/x", "via": "order"},
    "metal-ipi:index:InstallationPool": lambda args: {},
    "metal-ipi:index:DnsRecords": lambda args: {},
    "metal-ipi:index:Gate": lambda args: {"passedAt": "now", "observed": "", "waitedSeconds": 1},
    "metal-ipi:index:Removal": lambda args: {"removedAt": "now"},
    "command:local:Command": commands(),
    "equinix-metal:index/project:Project": lambda args: {},
    "equinix-metal:index/projectSshKey:ProjectSshKey": lambda args: {},
    "equinix-metal:index/device:Device": _device,
    "equinix-metal:index/reservedIpBlock:ReservedIpBlock": _block,
    "equinix-metal:index/bgpSession:BgpSession": lambda args: {},
    "equinix-metal:index/spotMarketRequest:SpotMarketRequest": lambda args: {},
    "equinix-metal:index/vlan:Vlan": lambda args: {},
    "equinix-metal:index/gateway:Gateway": lambda args: {"ipReservationId": f"{args.name}-subnet"},
    "equinix-metal:index/port:Port": lambda args: {},
    **{
        component: lambda args: {}
        for component in (
            *METALLB,
            *DAY_TWO,
            "metal-ipi:endpoints:MetalLb",
            "metal-ipi:machines:EquinixMetal",
            "metal-ipi:machines:SpotMetalMachine",
            "metal-ipi:machines:Redfish",
            "metal-ipi:machines:Ironic",
            "metal-ipi:cluster:NodePool",
            "metal-ipi:cluster:PoolInstallation",
            "metal-ipi:cluster:PoolChecks",
            "metal-ipi:endpoints:ClusterDns",
            "metal-ipi:endpoints:PoolDns",
            "metal-ipi:install:InstallAssets",
            "metal-ipi:install:BootstrapGates",
            "metal-ipi:install:BootstrapRemoval",
        )
    },
}


def left_behind(**resources: tuple[str, Mapping[str, Any]]) -> dict[str, Any]:
    """`ANSWERS` of an engine whose state has these resources: by name (`_` for `-`) the type, with those of the
    parents, and the outputs."""
    outputs = {
        f"urn:pulumi:test::metal-ipi::{types}::{name.replace('_', '-')}": {"type": types, "outputs": dict(outputs)}
        for name, (types, outputs) in resources.items()
    }
    return {**ANSWERS, READ_STATE: lambda args: {"name": args.args["stackName"], "outputs": outputs}}


def declared(
    stack: str = "da11",
    answers: Mapping[str, Any] = ANSWERS,
    *,
    values: dict[str, str] | None = None,
    preview: bool = False,
    **changes: Any,
) -> Recorder:
    """What the program declares for a stack with these changes; `values`: for a configuration of its own. Read only:
    what `ANSWERS` answer is found once."""
    values = settings(stack, **changes) if values is None else values
    if answers is ANSWERS:
        return _declared(stack, tuple(values.items()), preview)
    recorder = Recorder(answers, CALLS)
    run(main, recorder, values, stack=stack, preview=preview)
    return recorder


@lru_cache(maxsize=32)
def _declared(stack: str, values: tuple[tuple[str, str], ...], preview: bool) -> Recorder:
    recorder = Recorder(ANSWERS, CALLS)
    run(main, recorder, dict(values), stack=stack, preview=preview)
    return recorder


def problems(values: dict[str, str]) -> tuple[Problem, ...]:
    """Everything that is wrong with a configuration."""
    with pytest.raises(SettingsError) as caught:
        parse(values, "s1")
    return caught.value.problems


def tells(found: Sequence[Problem], path: str, why: str, remedy: str = "") -> bool:
    """Whether a setting's path, a cause and a remedy are told, and nothing else is wrong."""
    (problem,) = found
    return problem.path == f"metal-ipi:{path}" and why in problem.why and remedy in problem.remedy


def node_files(ignition: str) -> dict[str, str]:
    """The texts of an Ignition config's files, by path."""
    found: dict[str, str] = {}
    for file in json.loads(ignition)["storage"]["files"]:
        head, _, data = file["contents"]["source"].partition(",")
        found[file["path"]] = base64.b64decode(data).decode() if head.endswith(";base64") else unquote(data)
    return found


def stack_file(stack: str) -> dict[str, Any]:
    """The settings in a stack's file, without their namespace."""
    return copy.deepcopy(_committed(stack))


@cache
def _committed(stack: str) -> dict[str, Any]:
    """The same, read once: reading YAML takes longer than most tests."""
    values = yaml.safe_load((_ROOT / "stacks" / f"Pulumi.{stack}.yaml").read_text())["config"]
    return {key.partition(":")[2]: value for key, value in values.items()}


def rehearsed(stack: str = "da11") -> dict[str, str]:
    """A stack's file in rehearsal, as the engine hands it over."""
    return config_text({**stack_file(stack), "rehearsal": True})


# What whoever runs a stack adds to its file, or the lab does.
_ACCOUNTS: dict[str, dict[str, Any]] = {
    "equinix-metal": {"authToken": "swordfish-token"},
    "redfish": {"bmc": {"username": "metal-ipi", "password": "swordfish-password"}},
    "ironic": {
        "api": {"username": "api-1", "password": "swordfish-api"},
        "bmc": {"username": "metal-ipi", "password": "swordfish-password"},
    },
}
_ADDED: dict[str, Any] = {
    "dns": {"server": "192.0.2.53", "tsig": {"name": "metal-ipi.", "secret": "c3dvcmRmaXNo"}},
    "artifacts": {
        "host": "boot.facility.test",
        "user": "metal-ipi",
        "hostKey": PUBLIC_KEY,
        "privateKey": "PRIVATE KEY",
        "baseUrl": "https://boot.facility.test/artifacts",
    },
    "install": {"pullSecret": '{"auths":{"quay.io":{"auth":"eDp5"}}}'},
}


def settings(stack: str = "da11", **changes: Any) -> dict[str, str]:
    """A complete configuration of a stack, as the engine hands it over; changes replace whole top-level settings."""
    tree = _merged(_ADDED, {**stack_file(stack), **changes})
    kind = tree["platform"].get("type", "equinix-metal")
    tree["platform"] = _merged(_ACCOUNTS[kind], tree["platform"])
    if kind == "equinix-metal" and not tree["platform"].keys() & {"projectId", "projectName"}:
        tree["platform"]["projectId"] = "52000fb2-ee46-4673-93a8-de2c2bdba33b"
    if not tree["boot"].keys() & {"streamUrl", "streamFile"}:
        tree["boot"]["streamFile"] = "stacks/rhcos-4.21.json"
    return config_text(tree)


def _merged(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    result = {**base, **over}
    for key in base.keys() & over.keys():
        if isinstance(base[key], dict) and isinstance(over[key], dict):
            result[key] = _merged(base[key], over[key])
    return result
