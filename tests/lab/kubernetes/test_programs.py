"""Which Kubernetes API a lab has: the real one where all of it is there, and said so where it is not."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from binaries.errors import ProgramMissing
from lab import control, etcd, facts, metallb, olm, setup
from lab.errors import LabError
from lab.kubernetes import build, crds, programs
from lab.layout import Layout
from tests.lab.openshift import kinds


@pytest.fixture
def complete(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A system on which everything is there."""
    monkeypatch.setattr(etcd, "cached", lambda: tmp_path / "etcd")
    monkeypatch.setattr(build, "cached", lambda: tmp_path / "kube-apiserver")
    monkeypatch.setattr(crds.Definitions, "cached", lambda each: tmp_path / each.name)
    monkeypatch.setattr(olm, "cached", lambda: None)
    monkeypatch.setattr(metallb, "cached", lambda: tmp_path / "metallb-manifest")
    return tmp_path


@pytest.fixture
def layout(complete: Path) -> Layout:
    """A lab of that system, before its start."""
    layout = Layout.of(complete / "lab")
    layout.make()
    layout.ca.write_text("a certificate")
    return layout


def test_all_of_it_is_found(complete: Path) -> None:
    assert programs.find() == programs.Programs(
        apiserver=complete / "kube-apiserver",
        etcd=complete / "etcd",
        version=build.pinned(),
        definitions={name: complete / name for name in ("metallb-crds", "openshift-crds")},
        metallb=complete / "metallb-manifest",
    )


def test_what_is_missing_is_the_reason(complete: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as without:
        without.setattr(etcd, "cached", lambda: None)
        assert programs.find() == "etcd is not there: run set-up"
    for owner, name in ((build, "cached"), (crds.Definitions, "cached")):
        with monkeypatch.context() as without:
            without.setattr(owner, name, lambda *_: None)
            assert programs.find() == "kube-apiserver or its resource definitions are not there: run set-up"


def test_set_up_goes_on_without_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(_: object) -> programs.Programs:
        raise ProgramMissing("building kube-apiserver failed")

    monkeypatch.setattr(programs, "ensure", nothing)
    assert setup.kubernetes(print) == (
        "no real Kubernetes API, small services of the lab's own stand in: building kube-apiserver failed"
    )


def test_the_installer_is_told_where_api_servers_run(layout: Layout) -> None:
    known = facts.ensure(layout, "simulated", kinds.of(Path("/none")))
    assert known.kubernetes is not None and facts.require(layout) == known
    assert f"kube-apiserver {build.pinned()} and etcd" in control.prepare_kubernetes(layout, known)
    assert json.loads(layout.api_servers.read_text()) == {
        "server": "192.0.2.14:7443",
        "name": "kubernetes.facility.test",
        "authority": "a certificate",
    }


def test_a_lab_that_loses_it_says_so_but_does_not_lose_clusters(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = facts.ensure(layout, "simulated", kinds.of(Path("/none")))
    control.prepare_kubernetes(layout, known)
    monkeypatch.setattr(etcd, "cached", lambda: None)
    without = facts.ensure(layout, "simulated", kinds.of(Path("/none")))
    assert without == replace(known, kubernetes=None)
    assert "the real one cannot run: etcd is not there" in control.prepare_kubernetes(layout, without)
    (layout.kubernetes / "one" / "etcd").mkdir(parents=True)
    with pytest.raises(LabError, match=r"the real one cannot run: etcd is not there: .*; run `make setup`"):
        control.prepare_kubernetes(layout, without)


def test_a_lab_may_do_without_it(layout: Layout) -> None:
    known = facts.ensure(layout, "simulated", kinds.of(Path("/none")), real_kubernetes=False)
    assert known.kubernetes is None
    (layout.kubernetes / "small" / "objects").mkdir(parents=True)
    assert "says lab.kubernetes: small" in control.prepare_kubernetes(layout, known, asked_for=False)
    assert layout.api_servers.exists()
    (layout.kubernetes / "one" / "etcd").mkdir(parents=True)
    with pytest.raises(LabError, match=r"have a real Kubernetes API, and the stack file says .* leave that out, or"):
        control.prepare_kubernetes(layout, known, asked_for=False)
