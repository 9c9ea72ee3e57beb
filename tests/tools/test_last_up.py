"""When the policies must be asked again before an `up`, and which pools have nothing to do."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from tools import last_up, stackfile
from tools.files import write_private
from tools.layout import ROOT as PROJECT
from tools.layout import Layout
from tools.state import SPOT_REQUEST

_URN = "urn:pulumi:lab::p::metal-ipi:index:Artifacts::boot"


@dataclass
class Stacks:
    """A project with a cluster's stack and that of a pool, each after an `up` that asked the policies."""

    root: Path
    name: str = "lab"

    @property
    def cluster(self) -> Layout:
        """The cluster's stack."""
        return Layout(root=self.root, stack=self.name)

    @property
    def pool(self) -> Layout:
        """The pool's stack."""
        return self.cluster.of_pool("gpu")

    def state(self, layout: Layout, *resources: dict[str, Any]) -> None:
        """Write the state of a stack."""
        file = layout.state_file("metal-ipi")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({"checkpoint": {"latest": {"resources": resources}}}))

    def write(self, file: str, text: str) -> None:
        """Write a file of the project."""
        path = self.root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        os.utime(path, ns=(1, hash(text) % 10**9))  # another time for another text, however fast this is


def _resource(name: str, secret: str = "one", **more: Any) -> dict[str, Any]:
    encrypted = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "ciphertext": secret}
    return {"urn": f"{_URN}-{name}", "type": "t", "modified": "then", "outputs": {"token": encrypted}, **more}


@pytest.fixture
def stacks(tmp_path: Path) -> Stacks:
    found = Stacks(tmp_path)
    config = {"metal-ipi:install": {"manifests": ["site/manifests"]}, "metal-ipi:disk": "/", "metal-ipi:odd": "\0"}
    found.write("stacks/Pulumi.lab.yaml", yaml.safe_dump({"config": config}))
    for file in (
        "components/dns.py",
        "policy/rules/quorum.py",
        "site/manifests/a",
    ):
        found.write(file, "")
    found.write("policy/configuration/default.json", "{}")
    for layout in (found.cluster, found.pool):
        found.state(layout, _resource("a"), _resource("b", dependencies=["c", "d"]))
    for layout in (found.cluster, found.pool):
        last_up.write(layout, _about(layout))
    return found


def _config(layout: Layout, **secrets: str) -> stackfile.Config:
    """The configuration of a stack, with secrets of the lab."""
    document = stackfile.of_pool(stackfile.read(layout.stack_file), layout.pool)
    return stackfile.Config(document=document, secrets={"metal-ipi:dns.tsig.secret": "c2VjcmV0", **secrets})


def _about(layout: Layout) -> str:
    return last_up.about(layout, _config(layout))


def _covers(layout: Layout) -> bool:
    return last_up.covers(layout, _about(layout))


def test_there_is_no_record_at_first(tmp_path: Path) -> None:
    assert not last_up.covers(Layout(root=tmp_path, stack="lab"), "whatever it is")


def test_the_same_is_not_asked_about_again(stacks: Stacks, monkeypatch: pytest.MonkeyPatch) -> None:
    stacks.state(stacks.cluster, _resource("b", "anew", dependencies=["d", "c"], stackTrace=[]), _resource("a", "anew"))
    stacks.write("components/__pycache__/dns.pyc", "compiled")
    stacks.write("README.md", "changed")
    monkeypatch.setenv("METAL_IPI_PLUGIN_HOST", "another process")
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "must be in no hash")
    assert _covers(stacks.cluster) and _covers(stacks.pool)


def test_what_is_edited_during_an_up_is_asked_about_by_the_next_one(stacks: Stacks) -> None:
    asked = _about(stacks.cluster)
    stacks.write("components/dns.py", "edited")
    last_up.write(stacks.cluster, asked)
    assert not _covers(stacks.cluster)


_CHANGES: dict[str, Callable[[Stacks], object]] = {
    "settings": lambda stacks: stacks.write("stacks/Pulumi.lab.yaml", yaml.safe_dump({"config": {}})),
    "a manifest that the settings name": lambda stacks: stacks.write("site/manifests/a", "changed"),
    "another manifest": lambda stacks: stacks.write("site/manifests/b", "new"),
    "the program": lambda stacks: stacks.write("components/dns.py", "changed"),
    "a rule": lambda stacks: stacks.write("policy/rules/quorum.py", "changed"),
    "the configuration of the rules": lambda stacks: stacks.write("policy/configuration/lab.json", "{}"),
    "a changed resource": lambda stacks: stacks.state(stacks.cluster, _resource("a", modified="now"), _resource("b")),
    "one resource less": lambda stacks: stacks.state(stacks.cluster, _resource("a")),
}


@pytest.mark.parametrize("change", _CHANGES.values(), ids=_CHANGES)
def test_what_changed_is_asked_about(stacks: Stacks, change: Callable[[Stacks], object]) -> None:
    change(stacks)
    assert not _covers(stacks.cluster)


def test_a_pool_is_not_asked_about_again_when_its_cluster_is_handled_otherwise(stacks: Stacks) -> None:
    """The second `up` of a cluster ignores changes of more properties, since machines are not ordered anew then."""
    stacks.state(stacks.cluster, _resource("a", ignoreChanges=["userData"]), _resource("b"))
    assert _covers(stacks.pool) and not _covers(stacks.cluster)


def test_a_pool_is_asked_about_again_when_its_cluster_changed(stacks: Stacks) -> None:
    stacks.state(stacks.cluster, _resource("a", modified="now"), _resource("b", dependencies=["c", "d"]))
    assert not _covers(stacks.pool)


def test_variables_of_the_engine_and_of_this_project_count(stacks: Stacks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULUMI_EXPERIMENTAL", "1")
    assert not _covers(stacks.cluster)


def test_a_record_holds_for_a_day(stacks: Stacks, monkeypatch: pytest.MonkeyPatch) -> None:
    class Later(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:
            return datetime(2100, 1, 1, tzinfo=tz)

    assert datetime.now(UTC).year < 2100
    monkeypatch.setattr(last_up, "datetime", Later)
    assert not _covers(stacks.cluster)


# --- pools -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def facility(tmp_path: Path) -> Stacks:
    """A facility with the pools compute and gpu, after an `up`."""
    found = Stacks(tmp_path, "pooled")
    document = stackfile.read(PROJECT / "stacks/Pulumi.pooled.yaml")
    stackfile.put(document["config"], "metal-ipi:dns.tsig.name", "site")
    found.write("stacks/Pulumi.pooled.yaml", yaml.safe_dump(document))
    found.write("policy/configuration/lab.json", "{}")
    for layout in (found.cluster, found.pool):
        found.state(layout, _resource("a"))
    for layout in (found.cluster, found.pool):
        last_up.write(layout, _about(layout))
    return found


def _set(stacks: Stacks, path: str, value: object) -> None:
    """Change a setting of the facility."""
    file = stacks.cluster.stack_file
    document = yaml.safe_load(file.read_text())
    stackfile.put(document["config"], f"metal-ipi:{path}", value)
    stacks.write("stacks/Pulumi.pooled.yaml", yaml.safe_dump(document))


def _left(layout: Layout, **secrets: str) -> bool:
    return last_up.left_nothing_to_do(layout, _config(layout, **secrets))


def test_a_pool_has_nothing_to_do_when_nothing_has_changed(facility: Stacks) -> None:
    assert _left(facility.pool)


@pytest.mark.parametrize(
    ("path", "value"),
    [("workers.pools[0].count", 5), ("workers.count", 3), ("workers.pools[0].labels", {"example.com/kind": "cpu"})],
)
def test_a_pool_has_nothing_to_do_when_workers_of_others_changed(facility: Stacks, path: str, value: object) -> None:
    _set(facility, path, value)
    assert _left(facility.pool)
    assert _covers(facility.cluster) == (path != "workers.count")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("workers.pools[1].count", 3),
        ("workers.pools[1].first", 30),
        ("workers.pools[1].labels", {"example.com/kind": "tpu"}),
        ("workers.labels", {"example.com/site": "west"}),
        ("controlPlane.count", 5),
        ("openshiftVersion", "4.20.0-lab"),
        ("timeouts.nodesReady", 700),
        ("dns.tsig.name", "another"),
        ("platform.workerPlan", "m3.large.x86"),
        ("boot.kernelArguments", []),
    ],
)
def test_a_pool_has_something_to_do_when_what_it_sees_changed(facility: Stacks, path: str, value: object) -> None:
    _set(facility, path, value)
    assert not _left(facility.pool)


def test_a_cluster_sees_the_workers_of_all_stacks_if_it_has_operators(facility: Stacks) -> None:
    _set(facility, "dayTwo", {"catalog": "community-operators", "nmState": {}})
    last_up.write(facility.cluster, _about(facility.cluster))
    assert _left(facility.cluster)
    _set(facility, "workers.pools[0].taints", [{"key": "example.com/x", "value": "y", "effect": "NoSchedule"}])
    assert not _left(facility.cluster)


def test_an_operator_whose_objects_are_wrong_is_the_program_to_report(facility: Stacks) -> None:
    operator = {"package": "x", "namespace": "x", "objects": [{"file": "there-is-none.yaml"}]}
    _set(facility, "dayTwo", {"catalog": "community-operators", "operators": [operator]})
    assert not _left(facility.cluster)


def test_a_pool_has_something_to_do_when_a_secret_or_settings_of_others_changed(facility: Stacks) -> None:
    assert not _left(facility.pool, **{"metal-ipi:dns.tsig.secret": "YW5vdGhlcg=="})
    document = yaml.safe_load(facility.cluster.stack_file.read_text())
    document["config"]["equinix-metal:maxRetries"] = 3
    facility.write("stacks/Pulumi.pooled.yaml", yaml.safe_dump(document))
    assert not _left(facility.pool)


def test_a_pool_has_something_to_do_after_an_interrupted_run(facility: Stacks) -> None:
    write_private(facility.pool.running, "{}")
    assert not _left(facility.pool)


def test_a_pool_has_something_to_do_while_an_engine_holds_its_state(facility: Stacks) -> None:
    lock = facility.pool.backend / ".pulumi/locks/organization/metal-ipi" / facility.pool.stack / "1.json"
    lock.parent.mkdir(parents=True)
    lock.write_text("{}")
    assert not _left(facility.pool)


def test_evicted_machines_of_a_pool_are_looked_for_at_each_up(facility: Stacks) -> None:
    facility.state(facility.pool, {**_resource("a"), "type": SPOT_REQUEST})
    last_up.write(facility.pool, _about(facility.pool))
    assert _covers(facility.pool) and not _left(facility.pool)


def test_a_pool_without_a_state_has_something_to_do(facility: Stacks) -> None:
    state = facility.pool.checkpoint
    assert state is not None
    state.unlink()
    assert not _left(facility.pool)
