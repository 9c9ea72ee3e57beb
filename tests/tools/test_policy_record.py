"""When the policies must be asked again before an `up`."""

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

from tools import policy_record
from tools.files import write_private
from tools.layout import Layout

_URN = "urn:pulumi:lab::p::metal-ipi:index:Artifacts::boot"


@dataclass
class Stacks:
    """A project with a cluster's stack and that of a pool, each after an `up` that asked the policies."""

    root: Path

    @property
    def cluster(self) -> Layout:
        """The cluster's stack."""
        return Layout(root=self.root, stack="lab")

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
        os.utime(path, ns=(1, len(text)))  # another time for another text, however fast this is


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
        "policy/configuration/default.json",
        "site/manifests/a",
    ):
        found.write(file, "")
    for layout in (found.cluster, found.pool):
        write_private(layout.config_stamp, "settings")
        found.state(layout, _resource("a"), _resource("b", dependencies=["c", "d"]))
    for layout in (found.cluster, found.pool):
        policy_record.write(layout, policy_record.about(layout))
    return found


def _covers(layout: Layout) -> bool:
    return policy_record.covers(layout, policy_record.about(layout))


def test_there_is_no_record_at_first(tmp_path: Path) -> None:
    assert not policy_record.covers(Layout(root=tmp_path, stack="lab"), "whatever it is")


def test_the_same_is_not_asked_about_again(stacks: Stacks, monkeypatch: pytest.MonkeyPatch) -> None:
    stacks.state(stacks.cluster, _resource("b", "anew", dependencies=["d", "c"], stackTrace=[]), _resource("a", "anew"))
    stacks.write("components/__pycache__/dns.pyc", "compiled")
    stacks.write("README.md", "changed")
    monkeypatch.setenv("METAL_IPI_PLUGIN_HOST", "another process")
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "must be in no hash")
    assert _covers(stacks.cluster) and _covers(stacks.pool)


def test_what_is_edited_during_an_up_is_asked_about_by_the_next_one(stacks: Stacks) -> None:
    asked = policy_record.about(stacks.cluster)
    stacks.write("components/dns.py", "edited")
    policy_record.write(stacks.cluster, asked)
    assert not _covers(stacks.cluster)


_CHANGES: dict[str, Callable[[Stacks], object]] = {
    "settings": lambda stacks: write_private(stacks.cluster.config_stamp, "others"),
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
    monkeypatch.setattr(policy_record, "datetime", Later)
    assert not _covers(stacks.cluster)
