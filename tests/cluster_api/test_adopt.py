"""A cluster's state between `up` and a hub."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from metal_ipi.cluster_api.adopt import NotAdoptable, given_back, main, taken
from metal_ipi.cluster_api.engine.state import Entry, State
from metal_ipi.provider.alike import differences

_SECRET = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270"}
_COMPONENT = "urn:pulumi:rack::metal-ipi::metal-ipi:machines:Workers::workers"
_PROVIDER = "urn:pulumi:rack::metal-ipi::pulumi:providers:metal-ipi::metal-ipi"
_SERVER = "urn:pulumi:rack::metal-ipi::metal-ipi:index:RedfishMachine::rack-worker-0-server"
_INSTALLATION = "urn:pulumi:rack::metal-ipi::metal-ipi:index:Installation::rack-worker-0-installation"


def _wrapped(value: Any) -> dict[str, Any]:
    return {**_SECRET, "plaintext": json.dumps(value)}


def _export(**more: Any) -> dict[str, Any]:
    def resource(urn: str, **fields: Any) -> dict[str, Any]:
        return {"urn": urn, "type": urn.split("::")[2], "custom": True, **fields}

    key = _wrapped("a key")
    server = resource(_SERVER, id="worker-0/1", inputs={"mac": "52:54"}, outputs={"mac": "52:54", "serial": "1"})
    installation = resource(
        _INSTALLATION,
        id="i",
        inputs={"privateKey": key, "__defaults": []},
        outputs={"privateKey": key, "generation": "1"},
        dependencies=[_COMPONENT, _PROVIDER, _SERVER],
        initErrors=[],
    )
    resources = [
        {"urn": _COMPONENT, "type": "metal-ipi:machines:Workers", "custom": False},
        resource(_PROVIDER, id="p"),
        server,
        installation,
    ]
    return {"version": 3, "deployment": {"manifest": {}, "resources": resources, **more}}


def test_installations_are_taken_over_whole() -> None:
    """A hub's state is a Secret for each resource: what a pool has in common is with each again."""
    export = _export()
    pool = {"cluster": "rack.test", "name": "workers", "members": ["a"], "script": "#!ipxe\nboot the disk now\n"}
    resources = export["deployment"]["resources"]
    urn = "urn:pulumi:rack::metal-ipi::metal-ipi:index:InstallationPool::worker-installation-common"
    resources.insert(3, {"urn": urn, "type": urn.split("::")[2], "custom": True, "id": "p1", "inputs": pool})
    other = f"{pool['script']}# of worker 0\n"
    resources[4]["inputs"] |= {"common": "p1", "derived": {"script": differences(str(pool["script"]), other)}}
    found = taken(export, "rack").entries[_INSTALLATION].inputs
    assert found == {"members": ["a"], "script": other, "privateKey": "a key"}


def test_what_up_made_is_taken_over() -> None:
    found = taken(_export(), "rack")
    assert list(found.entries) == [_SERVER, _INSTALLATION]
    assert found.entries[_INSTALLATION] == Entry(
        urn=_INSTALLATION,
        id="i",
        inputs={"privateKey": "a key"},
        outputs={"privateKey": "a key", "generation": "1"},
        dependencies=(_SERVER,),
        order=3,
    )


def test_all_that_is_in_the_way_is_told() -> None:
    export = _export(pending_operations=[{"type": "creating", "resource": {"urn": _SERVER}}])
    resources = export["deployment"]["resources"]
    device = "urn:pulumi:rack::metal-ipi::equinix-metal:index/device:Device::rack-worker-1"
    resources.append({"urn": device, "type": "equinix-metal:index/device:Device", "custom": True})
    resources[2]["delete"] = True
    with pytest.raises(NotAdoptable) as told:
        taken(export, "rack")
    assert [line.split(" ")[0] for line in str(told.value).splitlines()] == [
        *("rack-worker-0-server", "rack-worker-0-server", "rack-worker-1")
    ]
    with pytest.raises(NotAdoptable, match="is of stack rack, and the Cluster is other"):
        taken(_export(), "other")
    resources = _export()["deployment"]["resources"]
    resources[3]["inputs"]["privateKey"] = {**_SECRET, "ciphertext": "v1:x"}
    with pytest.raises(NotAdoptable, match="--show-secrets"):
        taken({"deployment": {"resources": resources}}, "rack")
    with pytest.raises(NotAdoptable, match=r"no deployment\.resources"):
        taken({}, "rack")


def test_what_a_hub_made_of_it_is_given_back() -> None:
    export, state = _export(), taken(_export(), "rack")
    assert given_back(export, state) == export
    entry = state.entries[_INSTALLATION]
    changed = replace(entry, outputs={**entry.outputs, "generation": "2"})
    (*_, installation) = given_back(export, State(entries={_SERVER: state.entries[_SERVER], _INSTALLATION: changed}))[
        "deployment"
    ]["resources"]
    assert installation["inputs"] == export["deployment"]["resources"][3]["inputs"]
    assert installation["outputs"] == {"privateKey": _wrapped("a key"), "generation": _wrapped("2")}
    # What the hub took away is gone; what it made has no place in the export, and what is not finished none anywhere.
    there = given_back(export, State(entries={_SERVER: state.entries[_SERVER]}))["deployment"]["resources"]
    assert [each["urn"] for each in there] == [_COMPONENT, _PROVIDER, _SERVER]
    new = Entry(urn=f"{_SERVER}1", id="x", inputs={}, outputs={}, unfinished="begun")
    with pytest.raises(
        NotAdoptable, match=r"was made by the hub[\s\S]*not finished: begun|not finished[\s\S]*by the hub"
    ):
        given_back(export, State(entries={new.urn: new}))


def test_the_command_prints_a_secret_and_takes_it_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    export = json.dumps(_export())

    def adopt(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["adopt", *arguments])
        monkeypatch.setattr(sys, "stdin", io.StringIO(export))
        status, (printed, told) = main(), capsys.readouterr()
        return status, printed, told

    command = [sys.executable, "-m", "metal_ipi.cluster_api.adopt", "take", "rack"]
    took = subprocess.run(command, input=export, capture_output=True, text=True, check=True)
    secret = yaml.safe_load(took.stdout)
    assert secret["metadata"]["name"] == "rack-install-state" and len(secret["data"]) == 2
    (file := tmp_path / "secret.yaml").write_text(took.stdout)
    status, printed, _ = adopt("give-back", str(file))
    assert (status, json.loads(printed)) == (0, json.loads(export))
    status, _, told = adopt("take", "other")
    assert status == 1 and "they must be the same" in told and "a key" not in told
