"""Interrupted installations whose assets are not good any more: made anew, told before, and the cluster comes about."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.cluster import assert_finished
from tests.end_to_end.conftest import SMALL, copies
from tests.end_to_end.project import RACK, SINGLE, Project

pytestmark = [pytest.mark.lab, pytest.mark.engine, pytest.mark.nightly]

_WRONG, _RIGHT = (
    {"pullSecret": json.dumps({"auths": {"quay.io": {"auth": word}}})} for word in ("d3Jvbmc=", "cmlnaHQ=")
)
_SOON = {"machinesActive": 30, "machinesReachable": 40, "apiAnswers": 40, "bootstrapComplete": 40}
_FAULT = {"kind": "ignition_fails", "match": {"hostname": "lab-bootstrap"}, "count": None}
_TOLD = "the installer's assets are made anew, because"
_MAKES = "install-assets-create"


def _assets(project: Project) -> dict[str, Any]:
    """The resource that has them, as the state keeps it."""
    (found,) = [each for each in project.deployment()["resources"] if each["urn"].endswith(f"::{_MAKES}")]
    return found


def _when(project: Project) -> str:
    """When they were made, by the engine's own note; what is encrypted looks different after each run."""
    return _assets(project)["modified"]


def _fail(project: Project) -> None:
    """An `up` whose bootstrap machine does not come up; the cause of that is mended afterwards."""
    project.start_lab()
    project.faults(_FAULT)
    project.configure(timeouts={"machinesReachable": 15})
    project.make("up", fails=True)
    project.faults()
    project.configure()


def test_a_wrong_pull_secret_is_corrected(project: Project) -> None:
    """The bootstrap machine does not come up, and while that is looked for, the pull secret turns out to be wrong.

    The cluster is protected, and all policies are mandatory: neither keeps machines of no cluster from being replaced.
    """
    project.policies = True
    project.keep(protect=True)
    (project.root / "policy" / "configuration" / "lab.json").write_text(
        '{"all": "mandatory", "boot-artifacts": {"httpHosts": ["boot.facility.test"]}}'
    )
    project.start_lab()
    project.faults(_FAULT)
    project.configure(install=_WRONG, timeouts={"machinesReachable": 15})
    failed = project.make("up", fails=True).text
    assert "gate bootstrap-reachable" in failed
    first, before = _assets(project), project.devices()
    assert set(before) == {
        "lab-bootstrap",
        *(f"lab-control-plane-{n}" for n in range(3)),
        "lab-worker-0",
        "lab-worker-1",
    }
    project.faults()
    assert "is protected, and nothing was deleted" in project.make("down", fails=True).text

    project.keep(install=_RIGHT)
    refused = project.make("up", fails=True).text
    why = "the installer's assets would have to be made anew, because"
    assert f"{why} their sources have changed since: pullSecret of install-config.yaml" in refused
    assert "it is not known whether there is one" in refused and "does not answer" in refused
    assert _when(project) == first["modified"] and project.devices() == before, "nothing goes without consent"
    project.discard()
    preview = project.make("preview").text
    assert _TOLD in preview and "pullSecret of install-config.yaml" in preview and "install.discard says so" in preview
    assert _when(project) == first["modified"] and project.devices() == before, "a preview changes nothing"

    told = project.make("up").text
    assert _TOLD in told and "cmlnaHQ" not in told
    assert_finished(project)
    second, after = _assets(project), project.devices()
    assert second["urn"] == first["urn"] and second["id"] == first["id"], "the same resource, with other assets"
    assert second["modified"] != first["modified"]
    assert not set(before.values()) & set(after.values()), "no machine runs what the old assets configured"

    # From here on there is a cluster, and nothing of it is ever made anew.
    project.keep(install=_WRONG)
    again = project.make("up").text
    assert _TOLD not in again and re.search(r"^up: no changes", again, re.MULTILINE), again
    assert _when(project) == second["modified"] and project.devices() == after
    project.keep(protect=False)


def test_assets_that_were_left_lying_are_too_old(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stand-in's certificates begin an hour before they are made, so that of these less than half is left."""
    monkeypatch.setenv("LAB_OPENSHIFT_CERTIFICATE_VALIDITY", "50m")
    _fail(project)
    monkeypatch.delenv("LAB_OPENSHIFT_CERTIFICATE_VALIDITY")
    project.discard()
    told = project.make("up").text
    assert _TOLD in told and "their certificate CN=" in told
    assert_finished(project)


def test_good_assets_go_on(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    _fail(project)
    first, before = _when(project), project.devices()
    del before["lab-bootstrap"]
    # The way on for a user whose assets are good: the machine that failed is made anew by name.
    monkeypatch.setenv("REPLACE", "lab-bootstrap")
    told = project.make("up").text
    assert _TOLD not in told and "it is not known whether there is a cluster" in told
    assert_finished(project)
    assert _when(project) == first and project.devices() == before


def test_a_bootstrap_machine_that_answers_says_that_there_is_no_cluster(project: Project) -> None:
    """The control plane does not come about. Nobody has to say what the bootstrap machine can be asked."""
    project.start_lab()
    project.faults({"kind": "ignition_fails", "match": {"hostname": "lab-control-plane-0"}, "count": None})
    project.configure(install=_WRONG, timeouts={"bootstrapComplete": 10, "machinesReachable": 25})
    assert "error" in project.make("up", fails=True).text
    first, before = _when(project), project.devices()
    project.faults()
    project.keep(install=_RIGHT)
    told = project.make("up").text
    assert _TOLD in told and "There is no cluster yet" in told, told
    assert_finished(project)
    assert _when(project) != first and not set(before.values()) & set(project.devices().values())


def test_a_cluster_that_was_formed_after_a_gate_gave_up_is_kept(project: Project) -> None:
    """Without SSH the bootstrap machine forms the cluster all the same; then its assets are corrected in vain."""
    project.start_lab()
    project.faults({"kind": "no_ssh", "match": {"hostname": "lab-bootstrap"}, "count": None})
    project.configure(timeouts={"machinesReachable": 15})
    project.make("up", fails=True)
    first, before = _when(project), project.devices()
    project.configure(install=_RIGHT)
    told = project.make("preview").text
    assert _TOLD not in told
    assert _when(project) == first and project.devices() == before


def test_servers_are_installed_again(tmp_path: Path) -> None:
    """The server that is lent has no power, and the control plane waits for a configuration in vain."""
    for project in copies(tmp_path, stack=RACK, variant=SMALL):
        project.start_lab()
        project.configure(install=_WRONG, timeouts=_SOON)
        run, seen = project.start("up"), 0
        while not run.over():  # it is switched on again as long as nobody saw that it was on
            if (boots := len(project.booted()["server-3"])) > seen:
                seen = boots
                time.sleep(2)
                project.rack("power", server="server-3", to="off")
            time.sleep(0.2)
        done = run.wait()
        # Whether it was seen to be on before it lost its power.
        ends = "is still provisioning after 30 s", "gate bootstrap-reachable"
        assert seen and done.status != 0 and any(end in done.text for end in ends), done.text
        first, before = _when(project), project.booted()
        assert {name: boots[-1] for name, boots in before.items()} == {
            "server-3": "network",
            **{f"server-{n}": "disk" for n in range(3)},
        }

        project.keep(install=_RIGHT)
        project.discard()
        told = project.make("up").text
        assert _TOLD in told
        assert _when(project) != first and project.output()["bootstrap"] == {"present": False}
        after = project.booted()
        for name in ("server-0", "server-1", "server-2"):
            assert after[name][len(before[name]) :][-1] == "disk" and len(after[name]) > len(before[name]), after
        project.assert_unchanged("up")


def test_a_single_node_is_installed_again(tmp_path: Path) -> None:
    """Its run is killed while it boots its live system, and then somebody switches it off."""
    for project in copies(tmp_path, stack=SINGLE, variant=SMALL):
        project.start_lab()
        project.configure(install=_WRONG)
        run = project.start("up")
        run.until(lambda p=project: any(p.booted().values()), "the server boots")
        run.kill(project.supervisor())
        project.rack("power", server="all", to="off")
        first = _when(project)
        project.keep(install=_RIGHT)
        project.discard()
        told = project.make("up").text
        assert _TOLD in told and _when(project) != first
        project.assert_unchanged("up")
