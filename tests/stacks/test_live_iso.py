"""Servers that boot CoreOS's live ISO, and what is looked at of servers before anything is done with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from metal_ipi.components.boot.stream import Artifact, StreamError
from metal_ipi.provider.types import Plan, Server
from metal_ipi.stacks import connections, preflight
from metal_ipi.stacks.settings import Settings, parse
from metal_ipi.stacks.stream import boot_artifacts
from tests.stacks.answers import settings
from tests.stacks.rack import SERVERS, rack_problems, rack_settings

_ROOT = Path(__file__).resolve().parents[2]
_ISO = Artifact(url="https://boot.example.com/live.iso", sha256="1" * 64)
_VM = {"type": "local-vm", "address": "192.0.2.9", "mac": "52:54:00:00:00:09", "bridge": "br0"}
_ONE = {"platform__servers__0__bmc": {"address": "https://10.0.0.14", "bootMethod": "live-iso"}}


def _plan(settings: Settings) -> Plan:
    return preflight.plan(settings, boot_artifacts(settings), "s1")


def test_only_a_server_that_boots_it_is_told_where_it_is() -> None:
    found = connections.provider_sections(rack_settings(**_ONE), _ISO)["bmcs"]
    assert found["worker-4"]["liveIso"] == {"url": _ISO.url, "sha256": _ISO.sha256}
    assert found["worker-4"]["bootMethod"] == "live-iso"
    assert [name for name, section in found.items() if "liveIso" in section] == ["worker-4"]


@pytest.mark.parametrize(
    "preflight", [{"excused": ["secure-boot", "cards"]}, {"overrides": {"secure-boot": "keys of ours", "cards": "why"}}]
)
def test_what_is_excused_or_overridden_is_no_matter_for_claims_either(preflight: dict[str, Any]) -> None:
    assert {"secureBoot", "cards"}.isdisjoint(connections.provider_sections(rack_settings())["bmcs"]["worker-4"])
    found = connections.provider_sections(rack_settings(preflight=preflight))["bmcs"].values()
    assert {(section["secureBoot"], section["cards"]) for section in found} == {("ignore", "ignore")}


def test_what_a_server_must_have_is_looked_at() -> None:
    tang = [{"url": "http://tang.test", "thumbprint": "x" * 27}]
    encryption = {"roles": ["worker"], "tpm2": True, "tang": tang, "threshold": 2}
    given = {"platform__servers__4__installDevice": {"serial": "S1"}}
    plan = _plan(
        rack_settings(**given, machineConfig={"diskEncryption": encryption}, preflight={"overrides": {"tpm": _WHY}})
    )
    servers = {each.name: each for each in plan.servers}
    name = SERVERS[4]["name"]
    assert (servers[name].macs, servers[name].device) == ((SERVERS[4]["mac"],), {"serial": "S1"})
    assert len(_plan(parse(settings("bonded"), "bonded")).servers[0].macs) == 2, "all cards that networkConfig names"
    assert {name: each.tpm2 for name, each in servers.items()} == {name: "worker" in name for name in servers}
    assert plan.overrides == {"tpm": _WHY}
    either = {"tpm2": True, "tang": tang}
    assert not any(each.tpm2 for each in _plan(rack_settings(machineConfig={"diskEncryption": either})).servers)


_WHY = "modules come next week"


@pytest.mark.parametrize("changes", [_ONE, {}], ids=["booted", "not booted"])
def test_the_iso_is_looked_at_where_it_is_booted(changes: dict[str, Any]) -> None:
    urls = {file.name: file.url for file in _plan(rack_settings(**changes)).boot}
    assert ("live ISO" in urls) == bool(changes)
    assert urls.get("live ISO", "-live-iso.x86_64.iso").endswith("-live-iso.x86_64.iso")


@pytest.mark.parametrize(
    ("image", "asking", "why"),
    [
        ("iso", _ONE, r"names no live ISO .* of worker-4 needs; use another bootMethod"),
        ("raw.gz", {"boot__install__image": "stream"}, r"names no disk image .* set it to 'live'"),
    ],
)
def test_a_stream_without_an_image_cannot_give_one(
    tmp_path: Path, image: str, asking: dict[str, Any], why: str
) -> None:
    tree = json.loads((_ROOT / "stacks/rhcos-4.21.json").read_text())
    del tree["architectures"]["x86_64"]["artifacts"]["metal"]["formats"][image]
    stream = tmp_path / "stream.json"
    stream.write_text(json.dumps(tree))
    found = boot_artifacts(rack_settings(boot__streamFile=str(stream)))
    assert [found.iso, found.disk].count(None) == 1, "nobody asks for it"
    with pytest.raises(StreamError, match=why):
        boot_artifacts(rack_settings(boot__streamFile=str(stream), **asking))


@pytest.mark.parametrize("argument", ["a=$x", "a='b'", 'a="b', "a;b", "a\\b"])
def test_what_a_boot_loader_would_read_itself_is_refused(argument: str) -> None:
    arguments = {"boot__kernelArguments": ["nosmt", argument]}
    assert rack_settings(**arguments).boot.kernel_arguments == ("nosmt", argument)
    (problem,) = rack_problems(**arguments, **_ONE)
    assert (problem.path, problem.value) == ("metal-ipi:boot.kernelArguments", argument)
    assert "would not pass it on unchanged" in problem.why


def _server(name: str, role: str, *, live: bool = False) -> Server:
    macs = {each["name"]: each["mac"] for each in SERVERS}
    return Server(name=name, role=role, live=live, bmc=name, macs=(macs[name],), device={"smallest": True})


def test_the_servers_that_are_looked_at() -> None:
    found = _plan(rack_settings()).servers
    assert sorted(found, key=lambda each: each.name) == [
        *(_server(f"control-plane-{number}", "control-plane") for number in range(3)),
        _server("worker-0", "worker", live=True),
        _server("worker-4", "worker"),
    ]
    *servers, virtual = _plan(rack_settings(platform__bootstrap={**_VM, "memory": 20480, "cpus": 6})).servers
    assert virtual == Server(name="bootstrap", role="bootstrap", live=True, memory_mib=20480, cpus=6)
    assert len(servers) == 5 and not any(server.live for server in servers)
    single = rack_settings(platform__bootstrap={"type": "none"}, platform__servers=SERVERS[2:3])
    assert _plan(single).servers == (_server("control-plane-0", "control-plane", live=True),)
