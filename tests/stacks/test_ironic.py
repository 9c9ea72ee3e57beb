"""What settings of servers through Ironic become, and which are refused."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from tests.mocks import Recorder, config_text, is_secret, plain
from tests.stacks.answers import declared, problems
from tests.stacks.rack import SECRET, SERVERS, rack

_BIOS = {
    "interface": "bios",
    "step": "apply_configuration",
    "args": {"settings": [{"name": "ProcHyperthreading", "value": "Disabled"}]},
}
_RAID = {"interface": "raid", "step": "delete_configuration"}
_FIRMWARE = {
    "interface": "firmware",
    "step": "update",
    "args": {"settings": [{"component": "bmc", "url": "https://boot.example.com/bmc.bin"}]},
}

_MATCHBOX = {"type": "ssh", "host": "192.0.2.1", "baseUrl": "https://boot.example.com", "matchbox": "/var/lib/matchbox"}


def _by_ipmi(**bmc: str) -> dict[str, Any]:
    """Changes that have the second server reached by IPMI."""
    return {
        "platform__servers__1__driver": "ipmi",
        "platform__servers__1__bmc": {"address": "ipmi://10.0.0.11:6230", **bmc},
    }


_CLAIM = "metal-ipi:index:IronicMachine"


def through_ironic(**changes: Any) -> dict[str, Any]:
    """The rack's settings through Ironic: enrolled, by name, by class; `platform__...` changes them as in `rack`."""
    tree = rack()
    platform = tree["platform"]
    platform["type"] = "ironic"
    platform["api"] = {"endpoint": "https://hub.example.com:31385", "username": "api-1", "password": SECRET}
    for server in platform["servers"]:
        if server["name"] == "control-plane-0":
            server["node"] = "rack-7-u12"
            del server["bmc"]
        elif server["name"] == "worker-4":
            server |= {"resourceClass": "compute", "traits": ["CUSTOM_GPU"]}
            del server["bmc"]
        else:
            server["driver"] = "redfish"
    for path, value in changes.items():
        place: Any = tree
        *way, last = path.split("__")
        for step in way:
            place = place[int(step) if step.isdigit() else step]
        key = int(last) if last.isdigit() else last
        if value is None:
            del place[key]
        else:
            place[key] = value
    return tree


def _declared(tree: dict[str, Any]) -> Recorder:
    return declared("rack", values=config_text(tree))


def test_all_servers_are_claimed_and_one_is_lent_before_it_is_a_worker() -> None:
    recorder = _declared(through_ironic(platform__bootMode="uefi"))
    claims = {args.name: plain(args.inputs) for args in recorder.of(_CLAIM)}
    assert set(claims) == {f"rack-{server['name']}-server" for server in SERVERS}
    assert claims["rack-worker-0-server"]["server"] == "worker-0"
    (machine,) = recorder.of("metal-ipi:index:EphemeralMachine")
    inputs = plain(machine.inputs)
    assert (inputs["platform"], inputs["server"], inputs["hostname"]) == ("ironic", "worker-0", "rack-bootstrap")
    asked = {each["name"]: each for each in plain(recorder.inputs("preflight")["servers"])}
    known = {"macs": ["52:54:00:00:00:0d"], "device": {"smallest": True}}
    assert asked["worker-0"] == {"name": "worker-0", "role": "worker", "live": True, "ironic": "worker-0", **known}
    assert asked.keys() == {server["name"] for server in SERVERS}
    assert {plain(args.inputs["platform"]) for args in recorder.of("metal-ipi:index:Installation")} == {"ironic"}
    (provider,) = recorder.of("pulumi:providers:metal-ipi")
    assert is_secret(provider.inputs["ironic"])
    section = json.loads(plain(provider.inputs["ironic"]))
    assert section["claimant"] == "rack.example.com" and section["release"] == "keep" and section["liveIso"]["sha256"]
    assert section["servers"]["worker-0"] == {
        "driver": "redfish",
        "address": "https://10.0.0.13",
        "username": "ipi",
        "password": SECRET,
        "bootMode": "uefi",
    }
    assert section["servers"]["control-plane-0"] == {"node": "rack-7-u12", "bootMode": "uefi"}
    assert section["servers"]["worker-4"]["traits"] == ["CUSTOM_GPU"]


@pytest.mark.parametrize(
    ("changes", "path", "why"),
    [
        ({"platform__servers__0__resourceClass": None}, "platform.servers[0]", "nothing says which server it is"),
        ({"platform__servers__1__driver": None}, "platform.servers[1]", "only one of driver and bmc is set"),
        ({"platform__servers__1__node": "u7"}, "platform.servers[1]", "driver is set together with node or traits"),
        ({"platform__servers__2__traits": ["X"]}, "platform.servers[2]", "node is set together with resourceClass or "
            "traits"),
        ({"platform__servers__0__node": "rack-7-u12", "platform__servers__0__traits": None,
          "platform__servers__0__resourceClass": None}, "platform.servers[2].node", "is the same"),
        ({"platform__api__endpoint": "http://hub.example.com"}, "platform.api.endpoint", "it is not an https URL"),
        ({"platform__bmc__verifyCa": "maybe"}, "platform.bmc.verifyCa", "neither true nor false nor a path"),
        ({"apiAddress": {"type": "kube-vip", "mode": "bgp"}}, "apiAddress.mode", "ironic has neither BGP peers"),
        ({"platform__bootstrap": {"type": "lend", "server": "worker-9"}}, "platform.bootstrap.server", "not a worker"),
        ({"platform__api__password": None}, "platform.api.password", "it is required; only a rehearsal works without "
            "it"),
        ({"platform__bmc__password": None}, "platform.bmc.password", "it is required; only a rehearsal works without "
            "it"),
        ({"platform__servers__2__cleanSteps": [_BIOS]}, "platform.servers[2]", "cleanSteps are only for servers"),
        ({"platform__servers__1__cleanSteps": [{"interface": "bios", "step": "Apply!"}]},
         "platform.servers[1].cleanSteps[0].step", "it is not a name of a step"),
        ({"platform__cleanSteps": [{**_RAID, "step": "create_configuration"}]}, "platform.cleanSteps[0].step",
         "the node's target_raid_config, which nothing here sets"),
        ({"platform__servers__1__driver": "ipmi"}, "platform.servers[1].bmc.address", "does not use such an address"),
        ({"platform__servers__1__bmc__address": "ipmi://10.0.0.11"}, "platform.servers[1].bmc.address", "such an"),
        ({"platform__servers__1__bmc__address": "ipmi://h/x"}, "platform.servers[1].bmc.address", "not an ipmi URL"),
        (_by_ipmi(systemId="1"), "platform.servers[1].bmc", "systemId and verifyCa are for Redfish"),
        (_by_ipmi(password="21-bytes-are-too-many"), "platform.servers[1].bmc.password", "allows at most 20 bytes"),
        (_by_ipmi(username="seventeen-letters"), "platform.servers[1].bmc.username", "allows at most 16 bytes"),
        ({**_by_ipmi(), "platform__cleanSteps": [_BIOS]}, "platform.servers[1].cleanSteps", "has no such interface"),
        ({**_by_ipmi(), "artifacts": _MATCHBOX}, "platform.servers[1].driver", "scripts are served by matchbox"),
        ({"platform__cleanSteps": [_BIOS, _RAID]}, "platform.servers[1].cleanSteps", "destroys the data on"),
        ({"platform__deploySteps": [_RAID]}, "platform.servers[1].deploySteps", "destroys the data on"),
        ({"platform__deploySteps": [_FIRMWARE] * 2}, "platform.servers[1].deploySteps", "Ironic runs each step only "
            "once"),
        ({**_by_ipmi(), "platform__deploySteps": [_FIRMWARE]}, "platform.servers[1].deploySteps", "has no such step"),
        ({"platform__servers__2__deploySteps": [_FIRMWARE]}, "platform.servers[2]", "deploySteps are only for servers"),
        ({"platform__deploySteps": [{**_FIRMWARE, "interface": "raid"}]}, "platform.deploySteps[0].step",
         "raid has no deploy step update"),
        ({"platform__deploySteps": [_BIOS]}, "platform.deploySteps[0].interface", "raid"),
        ({"platform__servers__1__boot": "network"}, "platform.servers[1].boot", "the driver redfish boots discs"),
        ({"platform__servers__2__boot": "network", "artifacts": _MATCHBOX}, "platform.servers[2].boot",
         "scripts are served by matchbox"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(changes: dict[str, Any], path: str, why: str) -> None:
    found = problems(config_text(through_ironic(**copy.deepcopy(changes))))
    assert any(each.path == f"metal-ipi:{path}" and why in each.why for each in found), found
    assert SECRET not in repr(found)


def test_servers_of_ironics_own_need_no_account_of_a_bmc() -> None:
    tree = through_ironic()
    for number, server in enumerate(tree["platform"]["servers"]):
        for key in ("driver", "bmc"):
            server.pop(key, None)
        if not {"node", "resourceClass"} & set(server):
            server["node"] = f"u{number}"
    del tree["platform"]["bmc"]
    (provider,) = _declared(tree).of("pulumi:providers:metal-ipi")
    servers = json.loads(plain(provider.inputs["ironic"]))["servers"]
    assert all("password" not in server for server in servers.values())


@pytest.mark.parametrize(("key", "common"), [("cleanSteps", _BIOS), ("deploySteps", _FIRMWARE)])
def test_enrolled_servers_have_the_steps_of_all_or_their_own(key: str, common: dict[str, Any]) -> None:
    tree = through_ironic(**{f"platform__{key}": [common]})
    for server in tree["platform"]["servers"]:
        if server["name"] == "control-plane-1":
            server[key] = []
        elif server["name"] == "control-plane-2":
            server |= {key: [_RAID], "consent": "wipe"}
    (provider,) = _declared(tree).of("pulumi:providers:metal-ipi")
    servers = json.loads(plain(provider.inputs["ironic"]))["servers"]
    (step,) = servers["worker-0"][key]
    assert {**step, "args": json.loads(step["args"])} == common
    assert servers["control-plane-2"][key] == [{**_RAID, "args": "{}"}]
    assert not any(key in servers[name] for name in ("control-plane-1", "control-plane-0", "worker-4"))


def test_servers_that_boot_from_the_network_need_no_disc() -> None:
    tree = through_ironic(platform__bmc__verifyCa="/etc/ironic/bmc-ca.pem")
    for server in tree["platform"]["servers"]:
        for key in ("node", "resourceClass", "traits"):
            server.pop(key, None)
        if server["name"] == "worker-4":
            server |= {"node": "u4", "boot": "network"}
        else:
            server |= {"driver": "ipmi", "bmc": {"address": f"ipmi://10.0.0.{server['mac'][-2:]}"}}
    recorder = _declared(tree)
    (provider,) = recorder.of("pulumi:providers:metal-ipi")
    section = json.loads(plain(provider.inputs["ironic"]))
    assert "liveIso" not in section
    by_name = {server["name"]: server for server in tree["platform"]["servers"]}
    worker, taken = by_name["worker-0"], by_name["worker-4"]
    account = {"username": "ipi", "password": SECRET}
    assert section["servers"]["worker-4"] == {"node": "u4", "boot": "network", "mac": taken["mac"]}
    assert section["servers"]["worker-0"] == {
        "driver": "ipmi",
        "address": worker["bmc"]["address"],
        "mac": worker["mac"],
        **account,
    }
    (machine,) = recorder.of("metal-ipi:index:EphemeralMachine")
    assert plain(machine.inputs["chain"]).startswith("#!ipxe")
    assert not [each for each in plain(recorder.inputs("preflight")["boot"]) if each["name"].endswith("iso")]
