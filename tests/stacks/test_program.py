"""The whole program against mocks that fail closed."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pulumi
import pytest
import yaml

from stacks.program import main
from stacks.settings import SettingsError
from tests.mocks import Recorder, config_text, plain, run

_ROOT = Path(__file__).resolve().parents[2]
_SEED = base64.b64encode(bytes(range(32))).decode()
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
_ASSETS = json.dumps(
    {
        "bootstrap": '{"ignition":{"version":"3.2.0"}}',
        "master": _POINTER,
        "worker": _POINTER,
        "kubeconfig": _KUBECONFIG,
        "kubeadminPassword": "swordfish",
        "metadata": "{}",
    }
)


def _artifacts(args: pulumi.runtime.MockResourceArgs) -> dict[str, Any]:
    names = list(plain(args.inputs["files"]))
    return {
        "urls": {name: f"https://boot.test/x/{name}" for name in names},
        "bootUrls": {name: f"http://boot.test/x/{name}" for name in names},
        "hashes": {name: "sha512-" + "0" * 128 for name in names},
        "directory": "x",
    }


def _device(args: pulumi.runtime.MockResourceArgs) -> dict[str, Any]:
    number = sum(map(ord, args.name)) % 200
    return {
        "accessPublicIpv4": f"198.51.100.{number}",
        "accessPrivateIpv4": f"203.0.113.{number}",
        "accessPublicIpv6": "",
        "deployedFacility": "da11",
    }


ANSWERS = {
    "metal-ipi:index:ClusterKeys": lambda args: {
        "privateKey": "PRIVATE",
        "publicKey": "ssh-ed25519 AAAA",
        "hostKeySeed": _SEED,
    },
    "metal-ipi:index:Artifacts": _artifacts,
    "metal-ipi:index:EphemeralMachine": lambda args: {
        "machineId": "bootstrap-machine",
        "publicIpv4": "198.51.100.250",
        "privateIpv4": "203.0.113.250",
        "publicIpv6": "",
        "console": "sos.da11.platformequinix.com",
        "present": True,
    },
    "metal-ipi:index:DnsRecords": lambda args: {},
    "metal-ipi:index:Gate": lambda args: {"passedAt": "now", "observed": "", "waitedSeconds": 1},
    "metal-ipi:index:Removal": lambda args: {"removedAt": "now"},
    "command:local:Command": lambda args: {"stdout": _ASSETS, "stderr": ""},
    "command:remote:Command": lambda args: {"stdout": "hostname\tpassed\tx\n", "stderr": ""},
    "equinix-metal:index/projectSshKey:ProjectSshKey": lambda args: {},
    "equinix-metal:index/device:Device": _device,
    **{
        component: lambda args: {}
        for component in (
            "metal-ipi:machines:EquinixMetal",
            "metal-ipi:machines:EquinixMetalMachine",
            "metal-ipi:cluster:NodePool",
            "metal-ipi:cluster:PoolChecks",
            "metal-ipi:endpoints:ClusterDns",
            "metal-ipi:install:InstallAssets",
            "metal-ipi:install:BootstrapGates",
            "metal-ipi:install:BootstrapRemoval",
        )
    },
}


def settings(**changes: Any) -> dict[str, str]:
    values = yaml.safe_load((_ROOT / "stacks" / "Pulumi.da11.yaml").read_text())["config"]
    plain = {key.partition(":")[2]: value for key, value in values.items()}
    return config_text({**plain, "rehearsal": True, **changes})


def test_a_cluster_is_composed_as_designed() -> None:
    recorder = Recorder(ANSWERS)
    outputs = run(main, recorder, settings())
    assert outputs["cluster"] == {"name": "da11", "domain": "da11.metal.example.com", "version": "4.21.3"}
    assert outputs["api"] == {"url": "https://api.da11.metal.example.com:6443"}
    assert outputs["bootstrap"] == {"present": False}
    assert [node["name"].split(".")[0] for node in outputs["nodes"]] == [
        "da11-control-plane-0",
        "da11-control-plane-1",
        "da11-control-plane-2",
        "da11-worker-0",
        "da11-worker-1",
        "da11-worker-2",
    ]
    assert len(recorder.of("equinix-metal:index/device:Device")) == 6


def test_a_worker_is_at_most_three_resources() -> None:
    few, many = Recorder(ANSWERS), Recorder(ANSWERS)
    run(main, few, settings(workers={"count": 2}))
    run(main, many, settings(workers={"count": 12}))
    assert (len(many.resources) - len(few.resources)) / 10 <= 3


def test_userdata_holds_pointers_and_no_secret() -> None:
    recorder = Recorder(ANSWERS)
    run(main, recorder, settings())
    texts = [device.inputs["userData"] for device in recorder.of("equinix-metal:index/device:Device")]
    texts.append(recorder.one("da11-bootstrap").inputs["userData"])
    for text in texts:
        assert "PRIVATE KEY" not in text and "swordfish" not in text and _SEED not in text
        config = json.loads(text)["ignition"]["config"]
        assert config["merge"][-1]["verification"]["hash"].startswith("sha512-")


def test_problems_are_reported_before_any_resource() -> None:
    recorder = Recorder(ANSWERS)
    with pytest.raises(SettingsError) as caught:
        run(main, recorder, settings(clusterName="Bad_Name", workers={"cuont": 1}))
    assert [problem.path for problem in caught.value.problems] == ["metal-ipi:clusterName", "metal-ipi:workers.cuont"]
    assert all(args.typ == "pulumi:pulumi:Stack" for args in recorder.resources)
