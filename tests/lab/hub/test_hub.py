"""The hub as it runs: real pods on a real node in the lab's network. It takes root, and Debian's containerd."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from lab import control as lab_control
from lab.errors import NotRunning
from lab.hub import cgroups, control
from lab.hub.configs import TUNABLES
from lab.hub.layout import HubLayout
from lab.layout import Layout
from lab.network import plan
from tests.lab.hub.hub import FOUND, ask, logs, pod
from tests.lab.network.conftest import Lab, made
from tests.lab.waiting import processes, until

pytestmark = [
    pytest.mark.libvirt,
    pytest.mark.skipif(isinstance(FOUND, str), reason=f"no hub here: {FOUND}"),
]

_MEMORY_BYTES = 1.5 * 2**30


def test_pods_are_reached_through_a_service_and_reach_the_facility(lab: Lab, hub: HubLayout) -> None:
    """The scheduler, controllers, kubelet, containerd, CNI and kube-proxy all have their part in it."""
    server = pod(
        "sh", "-c", "mkdir /w; echo served > /w/index.html; exec /usr/bin/busybox httpd -f -p 8080 -h /w", name="web"
    )
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": server},
    }
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web"},
        "spec": {
            "type": "NodePort",
            "selector": {"app": "web"},
            "ports": [{"port": 80, "targetPort": 8080, "nodePort": 30080}],
        },
    }
    ask(lab, "POST", "/apis/apps/v1/namespaces/default/deployments", deployment)
    address = ask(lab, "POST", "/api/v1/namespaces/default/services", service)["spec"]["clusterIP"]
    path = "/apis/apps/v1/namespaces/default/deployments/web"
    until(lambda: ask(lab, "GET", path)["status"].get("readyReplicas") == 2, 60)

    # From the facility, by the node's port. kube-proxy writes the kernel's rules a moment after a pod is ready.
    fetch = ("curl", "--silent", "--noproxy", "*", f"http://{plan.HUB}:30080/")
    until(lambda: lab.run(*fetch).stdout.strip() == "served", 30)
    # From a pod, by the service's address; and from a pod to the facility, behind the hub's address.
    box = "/usr/bin/busybox"
    script = f"{box} wget -qO- http://{address}/ && {box} wget -qO- http://{plan.BOOT}/streams/lab.json && echo reached"
    client = pod("sh", "-c", script, name="client")
    client["spec"]["restartPolicy"] = "Never"
    client["metadata"]["name"] = "client"
    ask(lab, "POST", "/api/v1/namespaces/default/pods", {"apiVersion": "v1", "kind": "Pod", **client})
    until(lambda: "reached" in logs(lab, "client"), 60)
    assert "served" in logs(lab, "client")


def test_it_is_no_larger_than_it_may_be(lab: Lab, hub: HubLayout) -> None:
    """All of its processes and its pods', with what they share counted once."""
    sizes = 0
    pods = cgroups.processes(cgroups.name(lab.layout.state))
    assert pods
    for entry in {*_inside(_space_of(hub)), *(Path(f"/proc/{pid}") for pid in pods)}:
        with suppress(OSError):  # it ended meanwhile
            line = next(line for line in (entry / "smaps_rollup").read_text().splitlines() if line.startswith("Pss:"))
            sizes += int(line.split()[1]) * 1024
    assert 100 * 2**20 < sizes < _MEMORY_BYTES


def test_the_system_keeps_its_own_settings(lab: Lab, hub: HubLayout) -> None:
    """The kubelet sets the kernel's; the hub's must not."""
    before = lab.layout.state / "settings-before"
    assert {setting: (Path("/proc/sys") / setting).read_text() for setting in TUNABLES} == json.loads(
        before.read_text()
    )


def test_one_that_runs_is_left_alone(lab: Lab, hub: HubLayout) -> None:
    """Whoever wants a hub need not know whether there is one."""
    said: list[str] = []
    control.up(lab.layout, said.append)
    assert said[0] == "the hub is running"


@pytest.mark.nightly
def test_a_broken_one_is_started_again_with_what_it_had(lab: Lab, hub: HubLayout) -> None:
    """Its objects are in etcd, and its pods are started again."""
    made_before = ask(lab, "POST", "/api/v1/namespaces", {"metadata": {"name": "kept"}})["metadata"]["uid"]
    (proxy,) = processes("kube-proxy", "--config", hub.root)
    os.kill(proxy, signal.SIGKILL)
    until(lambda: lab_control.status(lab.layout)["services"]["hub"]["state"] == "dead", 30)
    assert lab_control.status(lab.layout)["state"] == "failed"
    assert "kube-proxy ended with status -9" in lab.layout.log("hub").read_text()
    said: list[str] = []
    control.up(lab.layout, said.append)
    assert said[0] == "the hub is broken: it is stopped and started again"
    assert lab_control.status(lab.layout)["state"] == "ready"
    assert ask(lab, "GET", "/api/v1/namespaces/kept")["metadata"]["uid"] == made_before
    running = "/apis/apps/v1/namespaces/default/deployments/web"
    until(lambda: ask(lab, "GET", running)["status"].get("readyReplicas") == 2, 90)


def test_one_that_was_killed_is_started_again(lab: Lab, hub: HubLayout) -> None:
    """Nothing that ran there outlives it, and is in the way."""
    space = _space_of(hub)
    (service,) = (
        pid for pid in processes("lab.hub", "--state", lab.layout.state) if "lab.hub.node" not in _command(pid)
    )
    os.kill(service, signal.SIGKILL)
    until(lambda: not _inside(space), 10)
    # The kernel may not have taken its cable away yet.
    lab.run("sh", "-c", "ip link add hub0 type veth peer name old0 || ip link show hub0")
    said: list[str] = []
    control.up(lab.layout, said.append)
    assert said[0] == "the hub is broken: it is stopped and started again"
    assert lab_control.status(lab.layout)["state"] == "ready"


def test_nothing_of_it_is_left(lab: Lab, hub: HubLayout) -> None:
    """Process, cgroup, device and file; the lab goes on without it. What still uses its files is told."""
    space = _space_of(hub)
    assert _inside(space)
    stays = subprocess.Popen(["sh", "-c", "sleep 60", str(lab.layout.hub / "ready")])
    try:
        (left,) = control.down(lab.layout, lambda line: None)
        assert left.startswith(f"process {stays.pid} (started for it)")
    finally:
        stays.kill()
        stays.wait()
    assert not processes("lab.hub", "--state", lab.layout.state)
    assert not _inside(space)
    assert cgroups.left(cgroups.name(lab.layout.state)) == []
    assert "hub0" not in lab.run("ip", "-brief", "link").stdout
    assert lab_control.status(lab.layout)["state"] == "ready"
    assert "hub" not in lab_control.status(lab.layout)["services"]
    said: list[str] = []
    assert control.down(lab.layout, said.append) == []
    assert said == ["there is no hub"]


@pytest.mark.nightly
def test_it_is_not_taken_for_ready_after_a_power_cut(tmp_path: Path) -> None:
    """What it said before proves nothing: its programs have to start again first. The lab takes it along in the end."""
    for lab in made(tmp_path / "lab"):
        lab.up()
        control.up(lab.layout, lambda line: None)
        ask(lab, "POST", "/api/v1/namespaces", {"metadata": {"name": "kept"}})
        lab.cut_power()
        assert HubLayout(lab.layout.hub).ready.exists()
        lab.up()
        assert ask(lab, "GET", "/api/v1/namespaces/kept")["metadata"]["name"] == "kept"
        assert cgroups.left(cgroups.name(lab.layout.state))
        assert lab_control.down(lab.layout, lambda line: None) == []
        assert cgroups.left(cgroups.name(lab.layout.state)) == []


def test_without_a_lab_there_is_no_hub(tmp_path: Path) -> None:
    """It says what to start first, whether there was ever a lab or not."""
    layout = Layout.of(tmp_path / "lab")
    for prepare in (lambda: None, layout.make):
        prepare()
        with pytest.raises(NotRunning, match="start it with `python -m lab up"):
            control.up(layout, lambda line: None)


def _space_of(hub: HubLayout) -> str:
    """The hub's process id namespace: everything that it starts is in it, or in one below."""
    (node,) = (pid for pid in processes("lab.hub.node", hub.root.parent) if _name(pid) == "unshare")
    return str(Path(f"/proc/{node}/ns/pid_for_children").readlink())


def _inside(space: str) -> list[Path]:
    return [entry for entry in Path("/proc").glob("[0-9]*") if _space(entry) == space]


def _space(process: Path) -> str | None:
    try:
        return str((process / "ns/pid").readlink())
    except OSError:
        return None  # it has ended since


def _command(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text()


def _name(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text().strip()
