"""`up` of the stack capi7: a cluster through the lab's hub, by Cluster API and the image of our providers."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Generator

import pytest

from lab import control
from lab.hub import control as hub
from lab.hub import programs
from lab.openshift.real import openshift_install
from tests.end_to_end import processes, racks
from tests.end_to_end.conftest import copies
from tests.end_to_end.project import Project, await_
from tests.end_to_end.provisioned import kubectl

pytestmark = [
    pytest.mark.lab,
    pytest.mark.engine,
    pytest.mark.nightly,
    pytest.mark.skipif(isinstance(programs.find(), str), reason=f"no hub here: {programs.find()}"),
]
_NAME, _SERVERS = "capi7", 4
_LONGEST = 1200.0
_VICTIMS = ("metal_ipi.cluster_api", "--bind-address=192.0.2.15", "lab.hub.node")
"""The providers, the hub's API server, all of the hub: by their command lines. A kubelet starts the first again; the
others are started again by who runs the hub."""
_MOMENTS, _RUNS = 5, 4
"""At how many moments one `up` is struck, each time that it tells that the providers have begun with something else,
or after a while; and how many of them there are: 20 kills. One takes up to a minute to get over."""
_WHILE = 30.0
_STEP = re.compile(r"(?:Working|Failing): ([a-z0-9-]+)")
"""What `up` tells that the providers are doing."""


@pytest.fixture
def project(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Generator[Project]:
    """A copy with emulated machines and the lab's stand-in for openshift-install; as a test wants it, with others."""
    machines, installer = getattr(request, "param", ("libvirt", "stand-in"))
    if installer == "real" and openshift_install.cached() is None:
        pytest.skip("the real openshift-install is not built yet: `make conformance` builds it")
    if machines == "libvirt":
        request.getfixturevalue("emulation")
    variant = {"lab": {"installer": installer}}
    yield from copies(tmp_path_factory.mktemp("capi"), machines, stack=_NAME, variant=variant)


def _assert_there(project: Project) -> None:
    """The cluster is as one that `up` installed itself, and nothing of it is there twice."""
    told = project.output()
    names = [f"{_NAME}-{racks.name(number)}" for number in range(_SERVERS)]
    assert [node["name"].partition(".")[0] for node in told["nodes"]] == names
    assert all(check["status"] in ("passed", "skipped") for node in told["nodes"] for check in node["checks"]), told
    assert told["bootstrap"] == {"present": False}
    assert told["api"]["url"] == f"https://api.{_NAME}.facility.test:6443"
    assert told["kubeconfig"] == told["kubeadminPassword"] == "[secret]"
    made = json.loads(kubectl(project, "get", "machines,metalipimachines", "-o", "json", space=_NAME))["items"]
    assert sorted(each["kind"] for each in made) == ["Machine"] * _SERVERS + ["MetalIpiMachine"] * _SERVERS
    leases = json.loads(kubectl(project, "get", "leases", "-o", "json", space="metal-ipi-system"))["items"]
    assert sum(each["metadata"]["name"].startswith("server-") for each in leases) == _SERVERS
    assert {each["power"] for each in project.rack("servers").values()} == {"on"}
    project.assert_unchanged("up")


@pytest.mark.parametrize(
    "project", [("simulated", "stand-in"), ("libvirt", "stand-in"), ("simulated", "real")], indirect=True
)
def test_a_cluster_comes_and_goes(project: Project) -> None:
    """It tells whom it waits for; the bootstrap machine had the worker's server first."""
    project.make("hub", seconds=_LONGEST)
    assert "metal-ipi" in kubectl(project, "get", "deployments", "-o", "name", space="metal-ipi-system")
    told = project.make("up", seconds=_LONGEST).text
    assert "waiting for ControlPlaneInitialized: OpenShiftControlPlane capi7: Working: " in told
    _assert_there(project)
    boots = project.booted()["server-3"]
    assert boots[0] == boots[1], "the live system, twice"
    project.assert_unchanged("refresh", "up")
    project.assert_down()


@pytest.mark.parametrize("project", [("simulated", "stand-in")], indirect=True)
def test_an_installation_that_was_stopped_goes(project: Project) -> None:
    """The API answers, and the providers wait until bootstrap is complete."""
    project.make("hub", seconds=_LONGEST)
    run = project.start("up")
    provisioned = ("get", "clusters", "-o", "jsonpath={.items[*].status.initialization.infrastructureProvisioned}")
    run.until(lambda: "true" in kubectl(project, *provisioned, space=_NAME), "the API answers", _LONGEST)
    run.kill(project.supervisor())
    began = time.monotonic()
    project.assert_down()
    assert time.monotonic() - began < 120, "not what the gate would wait for"


@pytest.mark.parametrize("first", range(_RUNS))
def test_a_cluster_comes_whatever_is_killed(project: Project, first: int) -> None:
    """One `up` gets over all of it. The next victim is always another one: a kubelet that starts the providers again
    and again waits longer each time, up to five minutes, until it is started again itself."""
    run = project.start("up")
    struck: list[str] = []
    seen, end, due = set[str](), time.monotonic() + _LONGEST, float("inf")
    while not run.over():
        assert time.monotonic() < end, f"{struck}\n{run.printed()}"
        begun = set(_STEP.findall(run.printed()))
        if len(struck) < _MOMENTS and (begun - seen or time.monotonic() > due):
            victim = _VICTIMS[(first + len(struck)) % len(_VICTIMS)]
            struck.append(f"{victim} at {', '.join(sorted(begun - seen)) or 'the same'}")
            seen |= begun
            _kill(project, victim)
            due = time.monotonic() + _WHILE
        time.sleep(0.1)
    done = run.wait()
    assert done.status == 0, f"{struck}\n{done.text}"
    assert len(struck) == _MOMENTS, f"{struck}\n{done.text}"
    print(*struck, sep="\n")
    _assert_there(project)
    project.assert_down()


def _kill(project: Project, victim: str) -> None:
    """kill -9 a program on the hub; the hub is started again."""
    lab = project.supervisor()
    assert lab is not None
    found = [each for each in processes.family(lab.pid) if any(victim in word for word in each.command)]
    assert found, victim
    processes.kill(found)
    if victim != _VICTIMS[0]:
        await_(lambda: control.status(project.layout)["services"][hub.SERVICE]["state"] != "ready", "it is missed")
        # Not by `project`, whose commands write to the files that `up` writes to.
        command = (sys.executable, "-m", "lab", "hub", "--state", str(project.layout.state))
        subprocess.run(command, cwd=project.root, env=project.environment(), check=True, capture_output=True)
