"""Validation, merging, fetching and applying of configurations."""

from __future__ import annotations

import asyncio
import base64
import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

import httpx
import pytest
import trustme

from lab.machines.simulated import root, unitfile
from lab.machines.simulated.ignition import IgnitionError
from lab.machines.simulated.ignition.apply import Applier
from lab.machines.simulated.ignition.merge import merge
from lab.machines.simulated.ignition.render import render
from lab.machines.simulated.ignition.resource import Fetcher
from lab.machines.simulated.ignition.schema import parse

IGNITION = {"version": "3.3.0"}


def encoded(document: Any) -> bytes:
    return json.dumps(document).encode()


def data_url(content: bytes) -> str:
    return "data:;base64," + base64.b64encode(content).decode()


@pytest.mark.parametrize("version", ["3.0.0", "3.1.0", "3.2.0", "3.3.0", "3.4.0"])
def test_every_version_up_to_3_4_is_known(version: str) -> None:
    assert parse(encoded({"ignition": {"version": version}}))


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({}, "couldn't parse"),
        ({"ignition": {"version": "2.2.0"}}, "unsupported config version"),
        ({"ignition": IGNITION, "storag": {}}, "Unused key storag"),
        ({"ignition": IGNITION, "systemd": {"units": [{"name": "a.service", "enable": True}]}}, "Unused key enable"),
        ({"ignition": {"version": "3.2.0"}, "kernelArguments": {}}, "Unused key kernelArguments"),
        ({"ignition": IGNITION, "storage": {"files": [{"path": "relative"}]}}, "path not absolute"),
        ({"ignition": IGNITION, "storage": {"files": [{"path": "/a", "mode": "644"}]}}, "not of type int"),
        ({"ignition": IGNITION, "storage": {"files": [{"path": "/a"}, {"path": "/a"}]}}, "duplicate entry"),
        ({"ignition": IGNITION, "storage": {"files": [{"path": "/a", "overwrite": True}]}}, "source is unspecified"),
        ({"ignition": IGNITION, "systemd": {"units": [{"name": "a.sevice"}]}}, "invalid systemd unit extension"),
        ({"ignition": {**IGNITION, "config": {"merge": [{}]}}}, "source is required"),
    ],
)
def test_invalid_configurations(document: Any, message: str) -> None:
    with pytest.raises(IgnitionError, match=message):
        parse(encoded(document))


@pytest.mark.parametrize(
    ("data", "message"), [(b"", "empty"), (b"#cloud-config", "not valid"), (b"[]", "not an object")]
)
def test_what_is_no_configuration(data: bytes, message: str) -> None:
    with pytest.raises(IgnitionError, match=message):
        parse(data)


def test_a_child_overrides_by_key_and_adds_the_rest() -> None:
    parent = {
        "storage": {
            "files": [{"path": "/a", "mode": 420, "contents": {"source": "data:,1"}}],
            "links": [{"path": "/l"}],
        },
        "passwd": {"users": [{"name": "core", "sshAuthorizedKeys": ["one"]}]},
        "systemd": {"units": [{"name": "u.service", "enabled": False, "contents": "x"}]},
    }
    child = {
        "storage": {"files": [{"path": "/a", "contents": {"source": "data:,2"}}, {"path": "/l"}]},
        "passwd": {"users": [{"name": "core", "sshAuthorizedKeys": ["one", "two"]}]},
        "systemd": {"units": [{"name": "u.service", "enabled": True}, {"name": "v.service"}]},
    }
    merged = merge(parent, child)
    assert merged["storage"] == {
        "files": [{"path": "/a", "mode": 420, "contents": {"source": "data:,2"}}, {"path": "/l"}],
        "links": [],
    }
    assert merged["passwd"]["users"] == [{"name": "core", "sshAuthorizedKeys": ["one", "two"]}]
    assert merged["systemd"]["units"] == [
        {"name": "u.service", "enabled": True, "contents": "x"},
        {"name": "v.service"},
    ]
    assert parent["storage"]["links"] == [{"path": "/l"}]  # the arguments stay as they were


class Net:
    """URLs with the answers they give in turn; the last one stays. An exception is raised."""

    def __init__(self, **_: Any) -> None:
        self.answers: dict[str, list[httpx.Response | Exception]] = {}
        self.pauses: list[float] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        answers = self.answers[str(request.url)]
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)


@pytest.fixture
def net(monkeypatch: pytest.MonkeyPatch) -> Net:
    """Everything the fetcher asks goes here."""
    net = Net()

    def client(address: str, trust: object) -> httpx.AsyncClient:
        return httpx.AsyncClient(transport=httpx.MockTransport(net))

    monkeypatch.setattr("lab.machines.simulated.fetch.client", client)
    return net


@pytest.fixture
def ca(tmp_path: Path) -> Path:
    path = tmp_path / "ca.pem"
    trustme.CA().cert_pem.write_to_path(path)
    return path


def rendered(config: dict[str, Any], net: Net, ca: Path) -> dict[str, Any]:
    async def run() -> dict[str, Any]:
        fetcher = Fetcher("127.0.0.1", ca, print, net.sleep)
        try:
            return await render(parse(encoded(config)), fetcher, print)
        finally:
            await fetcher.close()

    return asyncio.run(run())


def test_references_are_merged_recursively_and_verified(net: Net, ca: Path) -> None:
    leaf = encoded({"ignition": IGNITION, "storage": {"files": [{"path": "/leaf"}]}})
    middle = encoded({"ignition": {**IGNITION, "config": {"merge": [{"source": data_url(leaf)}]}}})
    packed = gzip.compress(middle)
    net.answers["https://boot.test/a.ign"] = [httpx.Response(200, content=packed)]
    digest = hashlib.sha512(middle).hexdigest()
    reference: dict[str, Any] = {
        "source": "https://boot.test/a.ign",
        "compression": "gzip",
        "verification": {"hash": f"sha512-{digest}"},
    }
    config = {"ignition": {**IGNITION, "config": {"merge": [reference]}}, "storage": {"files": [{"path": "/own"}]}}
    files = rendered(config, net, ca)["storage"]["files"]
    assert [entry["path"] for entry in files] == ["/own", "/leaf"]
    reference["verification"]["hash"] = "sha512-" + "0" * 128
    with pytest.raises(IgnitionError, match="hash verification failed .calculated " + digest):
        rendered(config, net, ca)


def test_replace_forgets_everything_else(net: Net, ca: Path) -> None:
    other = encoded({"ignition": IGNITION, "storage": {"files": [{"path": "/other"}]}})
    config = {
        "ignition": {**IGNITION, "config": {"replace": {"source": data_url(other)}}},
        "storage": {"files": [{"path": "/own"}]},
    }
    assert [entry["path"] for entry in rendered(config, net, ca)["storage"]["files"]] == ["/other"]


def test_patience_is_endless_with_servers_and_short_with_404(net: Net, ca: Path) -> None:
    url = "https://api-int.lab.test:22623/config/master"
    good = httpx.Response(200, content=encoded({"ignition": IGNITION}))
    net.answers[url] = [*[httpx.ConnectError("refused")] * 3, *[httpx.Response(503)] * 4, good]
    config = {"ignition": {**IGNITION, "config": {"merge": [{"source": url}]}}}
    assert rendered(config, net, ca)
    assert net.pauses == [0.2, 0.4, 0.8, 1.0, 1.0, 1.0, 1.0]
    net.answers[url] = [httpx.Response(404)]
    with pytest.raises(IgnitionError, match="resource not found"):
        rendered(config, net, ca)


def test_authorities_must_be_certificates(net: Net, ca: Path) -> None:
    security = {"tls": {"certificateAuthorities": [{"source": "data:,nonsense"}]}}
    with pytest.raises(IgnitionError, match="PEM"):
        rendered({"ignition": {**IGNITION, "security": security}}, net, ca)


def applied(config: dict[str, Any], directory: Path, net: Net, ca: Path) -> Path:
    async def run() -> None:
        fetcher = Fetcher("127.0.0.1", ca, print, net.sleep)
        try:
            await Applier(directory, fetcher, print).apply(parse(encoded({"ignition": IGNITION, **config})))
        finally:
            await fetcher.close()

    root.make(directory, Path("/usr/bin/true"), "ID=rhcos-lab\n")
    asyncio.run(run())
    return directory


def test_everything_is_written(tmp_path: Path, net: Net, ca: Path) -> None:
    config: dict[str, Any] = {
        "passwd": {"users": [{"name": "core", "sshAuthorizedKeys": ["ssh-ed25519 AAAA one"]}]},
        "storage": {
            "directories": [{"path": "/etc/dir", "mode": 0o700}],
            "files": [
                {"path": "/etc/hostname", "mode": 0o644, "contents": {"source": "data:,node"}},
                {"path": "/etc/group", "append": [{"source": "data:,more:x:1:%0A"}]},
                {"path": "/usr/local/bin/tool", "mode": 0o755, "contents": {"source": "data:,x"}},
                {"path": "/etc/os-release", "overwrite": True, "contents": {"source": "data:,mine"}},
            ],
            "links": [{"path": "/etc/link", "target": "hostname"}],
        },
        "systemd": {
            "units": [
                {"name": "a.service", "enabled": True, "contents": "[Service]\nExecStart=/bin/true\n",
                 "dropins": [{"name": "10.conf", "contents": "[Service]\nExecStart=\nExecStart=/bin/false %n\n"}]},
                {"name": "b.service", "enabled": True},
                {"name": "sshd.service", "mask": True},
            ]
        },
    }  # fmt: skip
    directory = applied(config, tmp_path / "root", net, ca)
    assert (directory / "home/core/.ssh/authorized_keys.d/ignition").read_text() == "ssh-ed25519 AAAA one\n"
    assert (directory / "etc/dir").stat().st_mode & 0o777 == 0o700
    assert (directory / "etc/hostname").read_text() == "node"
    assert (directory / "etc/group").read_text().endswith("nogroup:x:65534:\nmore:x:1:\n")
    assert (directory / "var/usrlocal/bin/tool").stat().st_mode & 0o777 == 0o755
    assert (directory / "etc/os-release").read_text() == "mine"
    assert (directory / "etc/link").read_text() == "node"
    wanted = unitfile.wanted(directory)
    assert list(wanted) == ["a.service", "b.service"]
    unit = wanted["a.service"]
    assert unit is not None
    assert unit.all("Service", "ExecStart") == ["/bin/false a.service"]
    assert wanted["b.service"] is None
    assert unitfile.is_masked(directory, "sshd.service")


@pytest.mark.parametrize(
    ("storage", "message"),
    [
        ({"files": [{"path": "/etc/os-release", "contents": {"source": "data:,x"}}]}, "overwrite is false"),
        ({"files": [{"path": "/usr/bin/x", "contents": {"source": "data:,x"}}]}, "read-only file system"),
        ({"disks": [{"device": "/dev/sda"}]}, "do not partition disks"),
    ],
)
def test_what_cannot_be_applied(tmp_path: Path, net: Net, ca: Path, storage: dict[str, Any], message: str) -> None:
    with pytest.raises(IgnitionError, match=message):
        applied({"storage": storage}, tmp_path / "root", net, ca)
