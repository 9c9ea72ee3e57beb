"""The provider's configuration: form only, all problems at once, placeholders pass."""

from __future__ import annotations

import json
from typing import Any

import pytest

from metal_ipi.provider import configuration
from metal_ipi.provider.configuration import METAL_ENDPOINT, S3ArtifactSettings
from metal_ipi.provider.errors import InvalidInputs
from metal_ipi.provider.status import Redactor
from metal_ipi.provider.values import UNKNOWN
from tests.provider.harness import Harness, Resource

R = "rehearsal"
REHEARSAL = {
    "metal": {"authToken": R},
    "bmcs": {
        "worker-0": dict.fromkeys(("address", "username", "password", "fingerprint", "bootMethod", "bootMode"), R)
    },
    "dns": {"service": "rfc2136", "server": R, "port": 53, "zone": R, "tsig": {"name": R, "algorithm": R, "secret": R}},
    "artifacts": {
        "type": "ssh",
        "host": R,
        "port": 22,
        "user": R,
        "hostKey": R,
        "privateKey": R,
        "directory": R,
        "baseUrl": R,
        "bootBaseUrl": R,
    },
}
S3 = {
    "type": "s3",
    "bucket": "boot-files",
    "region": "us-east-1",
    "accessKeyId": "a",
    "secretAccessKey": "s",
    "baseUrl": "https://b.test/",
    "bootBaseUrl": "http://b.test",
}


def keys(bucket: Any, prefix: str = "") -> list[str]:
    """The keys in the bucket below a prefix, without it."""
    found = bucket.list_objects_v2(Bucket=S3["bucket"], Prefix=prefix).get("Contents", [])
    return [item["Key"].removeprefix(prefix) for item in found]


def problems(config: dict[str, Any]) -> list[str]:
    values = {key: json.dumps(value) if isinstance(value, dict) else value for key, value in config.items()}
    return [f"{problem.path} {problem.reason}" for problem in configuration.parse(values)[1]]


def test_placeholders_and_unknown_values_pass() -> None:
    assert problems(REHEARSAL) == []
    assert problems({"metal": UNKNOWN, "version": "0.1.0"}) == []
    settings, _ = configuration.parse({"metal": json.dumps(REHEARSAL["metal"])})
    assert settings.need_metal().endpoint == METAL_ENDPOINT


def test_s3() -> None:
    settings, found = configuration.parse({"artifacts": json.dumps(S3)})
    assert found == []
    assert isinstance(settings.artifacts, S3ArtifactSettings) and settings.artifacts.base_url == "https://b.test"


def test_all_problems_at_once_and_no_secret_in_them() -> None:
    wrong = {
        "metal": {"authTokn": "very-secret-token"},
        "dns": {
            "service": "route66",
            "server": "s",
            "tsig": {"name": "n", "algorithm": "md5", "secret": "not base64!"},
        },
        "artifacts": "{",
        "metel": {},
    }
    found = problems(wrong)
    assert [problem.split(" ")[0] for problem in found] == [
        "metel",
        "artifacts",
        "metal.authTokn",
        "metal.authToken",
        "dns.service",
        "dns.tsig.algorithm",
        "dns.tsig.secret",
    ]
    assert "did you mean `authToken`?" in found[2] and "did you mean `metal`?" in found[0]
    assert "very-secret" not in "".join(found) and "not base64!" not in "".join(found)


def test_bmcs() -> None:
    entry = {"address": "https://192.0.2.65/", "username": "name-for-the-bmc", "password": "secret-of-the-bmc"}
    settings, found = configuration.parse({"bmcs": json.dumps({"worker-0": entry})})
    assert found == []
    bmc = settings.need_bmc("worker-0")
    assert (bmc.address, bmc.boot_method, bmc.boot_mode) == ("https://192.0.2.65", "pxe", None)
    assert "for-the-bmc" not in repr(settings) and "secret-of-the-bmc" not in repr(settings)
    wrong = {
        "a": {**entry, "address": "http://192.0.2.65", "bootMethod": "ftp", "pasword": "x"},
        "b": {**entry, "ca": "-----BEGIN CERTIFICATE-----", "fingerprint": "sha256:00"},
        "c": {**entry, "bootMethod": "virtual-media"},
        "d": {**entry, "bootMethod": "uefi-http", "bootMode": "bios"},
        "e": "x",
        "f": {**entry, "address": "https://u:secret-of-the-bmc@192.0.2.65"},
        "g": {**entry, "bootImage": "http://u:secret-of-the-web@192.0.2.2/ipxe.iso"},
        "h": {**entry, "bootUrl": "http://u@192.0.2.2/snp.efi"},
        "i": {**entry, "address": "https://a$(id)", "username": "a:b", "systemId": "../Managers/1"},
        "j": {**entry, "username": "a\n", "systemId": "a?b"},
    }
    found = problems({"bmcs": wrong})
    assert sorted({problem.split(" ")[0] for problem in found}) == [
        "bmcs.a.address",
        "bmcs.a.bootMethod",
        "bmcs.a.pasword",
        "bmcs.b.fingerprint",
        "bmcs.c.bootImage",
        "bmcs.d.bootMode",
        "bmcs.e",
        "bmcs.f.address",
        "bmcs.g.bootImage",
        "bmcs.h.bootUrl",
        "bmcs.i.address",
        "bmcs.i.systemId",
        "bmcs.i.username",
        "bmcs.j.systemId",
        "bmcs.j.username",
    ]
    assert "did you mean `password`?" in "".join(found) and "secret-of" not in "".join(found)


def test_ironic() -> None:
    iso = {"url": "https://mirror.test/live.iso", "sha256": "0" * 64}
    section: dict[str, Any] = {
        "endpoint": "https://ironic.test/",
        "username": "name-for-ironic",
        "password": "secret-of-ironic",
        "claimant": "stack-a",
        "liveIso": iso,
    }
    bmc = {"driver": "idrac", "address": "https://192.0.2.65", "username": "for-the-bmc", "password": "secret-of-bmc"}
    servers = {"a": bmc, "b": {"node": "u7"}, "c": {"resourceClass": "compute", "traits": ["CUSTOM_GPU"]}}
    settings, found = configuration.parse({"ironic": json.dumps({**section, "servers": servers})})
    assert found == []
    assert settings.need_ironic().endpoint == "https://ironic.test"
    assert [settings.need_ironic_server(name).driver for name in "abc"] == ["idrac", None, None]
    assert "name-for-ironic" not in repr(settings) and "for-the-bmc" not in repr(settings)
    assert {"secret-of-ironic", "secret-of-bmc"} <= set(configuration.secret_values(settings))
    wrong = {
        "a": {**bmc, "driver": "ilo"},
        "b": {"driver": "redfish"},
        "c": {**bmc, "node": "u7"},
        "d": {"address": "https://192.0.2.65", "node": "u7"},
        "e": {},
        "f": {**bmc, "address": "https://u:secret-of-bmc@192.0.2.65"},
        "g": {**bmc, "verifyCa": "maybe"},
        "h": {**bmc, "driver": "ipmi", "systemId": "1"},
        "i": {**bmc, "driver": "ipmi", "address": "ipmi://h:623/x", "mac": "52:54:00:00:00:01"},
        "j": {**bmc, "mac": "52:54:00:00:00:01"},
    }
    found = problems({"ironic": {**section, "endpoint": "http://ironic.test", "claimant": "a b", "servers": wrong}})
    assert sorted({problem.split(" ")[0] for problem in found}) == [
        "ironic.claimant",
        "ironic.endpoint",
        "ironic.servers.a.driver",
        "ironic.servers.b.address",
        "ironic.servers.b.password",
        "ironic.servers.b.username",
        "ironic.servers.c.node",
        "ironic.servers.d.address",
        "ironic.servers.e.node",
        "ironic.servers.f.address",
        "ironic.servers.g.verifyCa",
        *(f"ironic.servers.h.{key}" for key in ("address", "mac", "systemId")),
        "ironic.servers.i.address",
        "ironic.servers.j.mac",
    ]
    assert "secret-of" not in "".join(found)
    with pytest.raises(
        InvalidInputs, match=r"server x is not in `ironic\.servers` of the metal-ipi provider; known are a"
    ):
        settings.need_ironic_server("x")


async def test_a_missing_section_is_named_when_it_is_needed() -> None:
    it = Resource(Harness(), "Removal")
    with pytest.raises(InvalidInputs, match="set `metal` of the metal-ipi provider"):
        await it.up({"machineId": "x"})


def test_secrets_are_blotted_out_of_messages() -> None:
    redact = Redactor()
    redact.learn(["short", "a-long-token-value", "-----BEGIN KEY-----\nbase64lineone\n-----END KEY-----"])
    assert redact("short a-long-token-value base64lineone") == "short [secret] [secret]"
