"""Servers that boot CoreOS's live ISO: what their BMCs are told, what is looked at before, what cannot be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from components.boot.stream import Artifact, StreamError
from provider.types import Server
from stacks import connections, preflight
from stacks.problems import SettingsError
from stacks.settings import Settings, parse
from stacks.stream import boot_artifacts
from tests.mocks import config_text
from tests.stacks.rack import SERVERS, rack

_ROOT = Path(__file__).resolve().parents[2]
ISO = Artifact(url="https://boot.example.com/live.iso", sha256="1" * 64)
VM = {"type": "local-vm", "address": "192.0.2.9", "mac": "52:54:00:00:00:09", "bridge": "br0"}
ONE = {"platform__servers__0__bmc": {"address": "https://10.0.0.14", "bootMethod": "live-iso"}}


def _settings(**changes: Any) -> Settings:
    return parse(config_text(rack(**changes)), "s1")


def test_only_a_server_that_boots_it_is_told_where_it_is() -> None:
    settings = _settings(**ONE)
    found = connections.provider_sections(settings, ISO)["bmcs"]
    assert found["worker-4"]["liveIso"] == {"url": ISO.url, "sha256": ISO.sha256}
    assert found["worker-4"]["bootMethod"] == "live-iso"
    assert [name for name, section in found.items() if "liveIso" in section] == ["worker-4"]


def test_secure_boot_is_no_matter_where_it_is_excused() -> None:
    assert "secureBoot" not in connections.provider_sections(_settings())["bmcs"]["worker-4"]
    excused = _settings(preflight={"excused": ["secure-boot"]})
    found = connections.provider_sections(excused)["bmcs"].values()
    assert {section["secureBoot"] for section in found} == {"ignore"}


def test_the_iso_is_looked_at_where_it_is_booted() -> None:
    for changes, there in ((ONE, True), ({}, False)):
        settings = _settings(**changes)
        files = preflight.plan(settings, boot_artifacts(settings), "s1").boot
        assert ("live ISO" in [file.name for file in files]) is there


def test_the_committed_stream_names_it() -> None:
    iso = boot_artifacts(_settings(**ONE)).iso
    assert iso is not None and iso.url.endswith("-live-iso.x86_64.iso")


def test_a_stream_without_it_cannot_give_one(tmp_path: Path) -> None:
    tree = json.loads((_ROOT / "stacks/rhcos-4.21.json").read_text())
    del tree["architectures"]["x86_64"]["artifacts"]["metal"]["formats"]["iso"]
    stream = tmp_path / "stream.json"
    stream.write_text(json.dumps(tree))
    assert boot_artifacts(_settings(boot__streamFile=str(stream))).iso is None
    with pytest.raises(StreamError, match=r"names no live ISO .* of worker-4 is made of; take another bootMethod"):
        boot_artifacts(_settings(boot__streamFile=str(stream), **ONE))


@pytest.mark.parametrize("argument", ["a=$x", "a='b'", 'a="b', "a;b", "a\\b"])
def test_what_a_boot_loader_would_read_itself_is_refused(argument: str) -> None:
    arguments = {"boot__kernelArguments": ["nosmt", argument]}
    assert _settings(**arguments)
    with pytest.raises(SettingsError) as caught:
        _settings(**arguments, **ONE)
    (problem,) = caught.value.problems
    assert (problem.path, problem.value) == ("metal-ipi:boot.kernelArguments", argument)
    assert "would not hand it on as it stands" in problem.why


def _server(name: str, role: str, *, live: bool = False) -> Server:
    return Server(name=name, role=role, live=live, bmc=name)


def test_the_servers_that_are_looked_at() -> None:
    settings = _settings()
    found = preflight.plan(settings, boot_artifacts(settings), "s1").servers
    wanted = [
        *(_server(f"control-plane-{number}", "control-plane") for number in range(3)),
        _server("worker-0", "worker", live=True),
        _server("worker-4", "worker"),
    ]
    assert sorted(found, key=lambda each: each.name) == wanted


def test_a_virtual_machine_is_looked_at_by_its_settings() -> None:
    settings = _settings(platform__bootstrap={**VM, "memory": 20480, "cpus": 6})
    *servers, virtual = preflight.plan(settings, boot_artifacts(settings), "s1").servers
    assert virtual == Server(name="bootstrap", role="bootstrap", live=True, memory_mib=20480, cpus=6)
    assert len(servers) == 5 and not any(server.live for server in servers)


def test_a_single_node_forms_the_cluster_in_its_live_system() -> None:
    settings = _settings(platform__bootstrap={"type": "none"}, platform__servers=SERVERS[2:3])
    found = preflight.plan(settings, boot_artifacts(settings), "s1").servers
    assert found == (_server("control-plane-0", "control-plane", live=True),)
