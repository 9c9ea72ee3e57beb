"""The lab's life: started, found running, broken, cut from power, taken down."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lab import control, leftovers
from lab.errors import LabError, ServiceFailed
from lab.kubernetes import programs
from lab.layout import Layout
from tests.lab.network.conftest import ROOT, Lab
from tests.lab.network.test_services import look_up, update
from tests.lab.waiting import processes, until

pytestmark = pytest.mark.lab


def main(*arguments: str, state: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "lab", arguments[0], "--state", str(state), *arguments[1:]]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=60, check=False)


def test_a_lab_that_runs_stays_as_it_is_and_only_its_owner_can_read_it(lab: Lab) -> None:
    said = lab.up()
    assert any("dns answers" in line for line in said)
    assert any("boot answers" in line for line in said)
    started = time.monotonic()
    assert len(lab.up()) == 1
    assert time.monotonic() - started < 0.3
    status = main("status", state=lab.layout.state)
    assert status.returncode == 0
    assert "dns: ready" in status.stdout
    with pytest.raises(LabError, match="make down"):
        lab.up(machines="libvirt")
    if not isinstance(programs.find(), str):
        assert _told_of_the_api(lab, real=False) == "real"
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (lab.layout.state, lab.layout.facts)]
    assert modes == [0o700, 0o600]
    assert json.loads(main("facts", state=lab.layout.state).stdout)["dns"]["tsig"]["secret"]


def test_facts_of_another_version_are_refused_with_a_remedy(lab: Lab) -> None:
    lab.layout.make()
    lab.layout.facts.write_text('{"machines": "simulated"}')
    with pytest.raises(LabError, match=r"is of another version of this project: .*make down"):
        lab.up()
    assert control.down(lab.layout, lambda _: None) == []


def _told_of_the_api(lab: Lab, *, real: bool) -> str:
    """What is said of a running lab's Kubernetes API when the other kind is asked for: which one stays."""
    (_, told) = lab.up(real_kubernetes=real)
    stays = re.search(r"its Kubernetes API stays (\w+)", told)
    assert stays and "`make down` first" in told
    return stays[1]


def test_a_power_cut_leaves_nothing_running_and_loses_nothing(lab: Lab) -> None:
    lab.up(real_kubernetes=False)
    if not isinstance(programs.find(), str):
        assert _told_of_the_api(lab, real=True) == "small"
    assert update(lab, "add", "kept", "A", "198.51.100.7") == "NOERROR"
    facts, authority, own = lab.facts, lab.layout.ca.read_text(), lab.layout.facility_ca.read_text()
    with leftovers.watched_namespaces(lab.layout) as spaces:
        assert set(spaces) == {"pid", "net", "mnt"}
        lab.cut_power()
        left = leftovers.find(lab.layout, spaces)
    assert left == [f"directory {lab.layout.state}"]
    assert control.status(lab.layout)["state"] == "stopped"
    lab.up(real_kubernetes=False)
    assert (lab.facts, lab.layout.ca.read_text(), lab.layout.facility_ca.read_text()) == (facts, authority, own)
    assert look_up(lab, "kept.facility.test", "A") == "198.51.100.7"


@pytest.mark.skipif(isinstance(programs.find(), str), reason="no Kubernetes API here")
def test_api_servers_are_shared_from_the_start_or_not_at_all(lab: Lab) -> None:
    lab.up()
    with pytest.raises(LabError, match="an API server for each machine of a control plane, not one for each"):
        lab.up(shared_api_servers=True)
    control.down(lab.layout, lambda _: None)
    lab.up(shared_api_servers=True)
    lab.cut_power()
    lab.up()
    assert lab.facts.kubernetes and lab.facts.kubernetes.shared


def _assert_down_leaves_nothing(lab: Lab) -> None:
    done = main("down", state=lab.layout.state)
    assert (done.returncode, done.stderr) == (0, "")
    assert not lab.layout.state.exists()
    assert main("verify-clean", state=lab.layout.state).returncode == 0
    assert main("down", state=lab.layout.state).returncode == 0  # again: nothing to do


def test_an_interrupted_removal_is_found_and_finished(tmp_path: Path) -> None:
    layout = Layout.of(tmp_path / "lab")
    layout.removed.mkdir()
    assert leftovers.find(layout, settle=0) == [f"directory {layout.removed}"]
    assert control.down(layout, lambda _: None) == []


def test_down_reports_what_the_lab_still_held(lab: Lab) -> None:
    lab.up()
    assert update(lab, "add", "forgotten", "A", "198.51.100.7") == "NOERROR"
    done = main("down", state=lab.layout.state)
    assert done.returncode == 1
    assert "DNS record forgotten.facility.test. A 198.51.100.7" in done.stderr
    assert not lab.layout.state.exists()


def test_a_namespace_that_is_held_open_is_found(lab: Lab) -> None:
    lab.up()
    with leftovers.watched_namespaces(lab.layout) as spaces:
        pid = control.Supervisor.find(lab.layout.lock)
        assert pid is not None
        os.close(pid.pidfd)
        with (
            Path(f"/proc/{pid.pid}/ns/net").open("rb") as space,
            subprocess.Popen(["sleep", "60"], stdin=space) as holder,
        ):
            try:
                control.stop(lab.layout)
                left = [line for line in leftovers.find(lab.layout, spaces, settle=0) if "process" in line]
                assert left == [f"process {holder.pid} (holding its namespaces open): sleep 60"]
            finally:
                holder.kill()


def test_a_process_started_for_the_lab_is_found(tmp_path: Path) -> None:
    layout = Layout.of(tmp_path / "gone")
    with subprocess.Popen([sys.executable, "-c", "input()", str(layout.state)], stdin=subprocess.PIPE) as process:
        try:
            (line,) = leftovers.find(layout, settle=0)
            assert line.startswith(f"process {process.pid} (started for it)")
        finally:
            process.kill()


def test_a_dead_service_is_seen_the_next_up_mends_it_and_down_leaves_nothing(lab: Lab) -> None:
    lab.up()
    (service,) = processes("lab.network.boot", lab.layout.state)
    os.kill(service, signal.SIGKILL)
    until(lambda: control.status(lab.layout)["state"] == "failed")
    assert "boot: dead it ended with status -9" in main("status", state=lab.layout.state).stdout
    said = lab.up()
    assert said[0].startswith("boot dead: it ended with status -9")
    assert control.status(lab.layout)["state"] == "ready"
    _assert_down_leaves_nothing(lab)


def test_a_service_that_cannot_start_is_named_with_its_log(lab: Lab) -> None:
    lab.layout.make()
    (lab.layout.tls / "boot.facility.test.crt").write_text("not a certificate")
    for name in ("metadata.platformequinix.com", "kubernetes.facility.test"):
        (lab.layout.tls / f"{name}.crt").touch()
    lab.layout.ca.touch()
    lab.layout.facility_ca.touch()
    with pytest.raises(ServiceFailed, match=r"(?s)boot dead.*boot\.log.*SSL"):
        lab.up()


def test_an_interrupted_start_is_taken_over(lab: Lab) -> None:
    lab.layout.make()
    code = (
        "import os, sys\nfrom pathlib import Path\nfrom lab import control\nfrom lab.layout import Layout\n"
        "from tests.lab.openshift import kinds\n"
        "control._await = lambda *_: os._exit(9)\n"
        "control.up(control.Wanted(layout=Layout.of(sys.argv[1]), machines='simulated', services=('dns', 'boot'),"
        " openshift=lambda: kinds.of(Path('/nonexistent'))), print)\n"
    )
    died = subprocess.run(
        [sys.executable, "-c", code, str(lab.layout.state)], cwd=ROOT, check=False, capture_output=True
    )
    assert died.returncode == 9
    lab.up()
    assert control.status(lab.layout)["state"] == "ready"


def test_a_long_path_is_no_obstacle(lab: Lab, tmp_path: Path) -> None:
    far = Lab(Layout.of(tmp_path / ("d" * 120) / "lab"))  # longer than a socket's path may be
    try:
        far.up()
        assert look_up(far, "api.equinix.com", "A") == "192.0.2.10"
    finally:
        control.stop(far.layout)


def test_nothing_listens_outside(running: Lab) -> None:
    for port in (22, 53, 80, 443):
        with socket.socket() as outside:
            outside.settimeout(0.2)
            with pytest.raises(OSError):
                outside.connect(("192.0.2.12", port))
