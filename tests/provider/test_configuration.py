"""The provider's configuration: form only, all problems at once, placeholders pass."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from provider import configuration
from provider.configuration import METAL_ENDPOINT, S3ArtifactSettings
from provider.errors import InvalidInputs
from provider.status import Redactor
from provider.values import UNKNOWN
from tests.provider.harness import Harness, Resource

R = "rehearsal"
REHEARSAL = {
    "metal": {"authToken": R},
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


def test_a_missing_section_is_named_when_it_is_needed() -> None:
    async def run() -> None:
        it = Resource(Harness(), "Removal")
        with pytest.raises(InvalidInputs, match="set `metal` of the metal-ipi provider"):
            await it.up({"machineId": "x"})

    asyncio.run(run())


def test_secrets_are_blotted_out_of_messages() -> None:
    redact = Redactor()
    redact.learn(["short", "a-long-token-value", "-----BEGIN KEY-----\nbase64lineone\n-----END KEY-----"])
    assert redact("short a-long-token-value base64lineone") == "short [secret] [secret]"
