"""Workers that are installed again are interrupted at every stage: the run is killed, or servers lose their power.

The next run finds from the machine itself where it is, and finishes. Nobody else is touched, and of a worker's disks
only the one it is installed to. Stages are told by what the machines' consoles say, not by time.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pytest

from lab import facts
from lab.machines.simulated.disk import SUPERBLOCK_AT, superblock
from tests.end_to_end import racks
from tests.end_to_end.conftest import copies
from tests.end_to_end.project import RACK, Done, Project
from tests.end_to_end.user import User

pytestmark = [pytest.mark.lab, pytest.mark.engine, pytest.mark.nightly]

_MIB = 1 << 20


@dataclass(frozen=True)
class Stage:
    """How far a re-provisioning is."""

    name: str
    says: tuple[str, ...]
    """What the machine's console has said then since the beginning, in this order."""

    def __str__(self) -> str:
        return self.name

    def reached(self, printed: str) -> bool:
        """Whether a machine whose console says so was there."""
        end = 0
        for words in self.says:
            found = printed.find(words, end)
            if found < 0:
                return False
            end = found + len(words)
        return True


_BEGUN = ": 0%"
"""What coreos-installer says first, each time that a disk is written."""
SENT = Stage("sent to its installer", ("Rebooting with kexec",))
LIVE = Stage("live system up", (*SENT.says, "Started OpenSSH server"))
WRITING = Stage("writing to disk", (*LIVE.says, _BEGUN))
WRITTEN = Stage("done, not restarted", (*WRITING.says, "done: installed"))
RESTARTING = Stage("restarting", (*WRITTEN.says, "Rebooting."))
FIRST_BOOT = Stage("first boot", (*RESTARTING.says, "Linux version"))
CHECKING = Stage("not let back yet", (*FIRST_BOOT.says, "login: ", "waiting for its approval"))
POWER_GOES = {"off": (SENT, WRITING, FIRST_BOOT, CHECKING), "loss": (LIVE, WRITING, WRITTEN, RESTARTING)}
"""How, and when: each worker's at another stage."""
KILLED = ((LIVE, FIRST_BOOT), (SENT, RESTARTING), (WRITING, CHECKING), (WRITTEN,))
"""Of each round first the run that begins, then the one that goes on; the next one finishes."""
WORKERS = 4


class Worker:
    """One worker's server as it stands in the rack."""

    def __init__(self, rack: Project, number: int) -> None:
        known = facts.require(rack.layout).rack
        assert known is not None
        server = known.servers[racks.CONTROL_PLANE + number]
        self.name = racks.name(racks.CONTROL_PLANE + number)
        self.lab_name = server.name
        directory = rack.layout.state / "machines" / server.uuid
        self.second_disk = directory / "disks" / f"{server.serial}B"
        self._console = directory / "console.log"
        self._start = 0

    def begin(self) -> None:
        """Only what it prints from now on counts."""
        self._start = self._console.stat().st_size

    def printed(self) -> str:
        """Its console."""
        with self._console.open("rb") as stream:
            stream.seek(self._start)
            return stream.read().decode(errors="replace")

    def fill(self) -> None:
        """Have the second disk hold a file system, and data everywhere."""
        with self.second_disk.open("r+b") as stream:
            size = self.second_disk.stat().st_size
            for place in (0, size // 2, size - _MIB):
                stream.seek(place)
                stream.write(os.urandom(_MIB))
            stream.seek(SUPERBLOCK_AT)
            stream.write(superblock("data", uuid4(), size))

    def first_and_last(self) -> bytes:
        """Of the second disk, the first and the last MiB."""
        with self.second_disk.open("rb") as stream:
            head = stream.read(_MIB)
            stream.seek(-_MIB, os.SEEK_END)
            return head + stream.read()

    def digest(self) -> str:
        """SHA-256 of what the second disk holds, and of where; holes are left out, not read."""
        found = hashlib.sha256()
        with self.second_disk.open("rb") as stream:
            place, size = 0, self.second_disk.stat().st_size
            while place < size:
                try:
                    start = os.lseek(stream.fileno(), place, os.SEEK_DATA)
                except OSError:  # nothing but a hole is left
                    break
                place = os.lseek(stream.fileno(), start, os.SEEK_HOLE)
                stream.seek(start)
                found.update(f"{start} {place}".encode())
                found.update(stream.read(place - start))
        return found.hexdigest()


class Rack:
    """An installed rack whose workers are installed again and again."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.workers = [Worker(project, number) for number in range(WORKERS)]
        self._rounds = 0
        self._own: dict[str, dict[str, Any]] = {}

    def change(self, *workers: Worker, **more: Any) -> None:
        """Have these workers run something else than they do; the others keep what they have."""
        self._rounds += 1
        for worker in workers:
            self._own[worker.name] = {"kernelArguments": [f"lab.round={self._rounds}"], **more}
            worker.begin()
        self.project.keep(platform={"servers": racks.servers(WORKERS, self._own)})


@pytest.fixture(scope="module")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Generator[Rack, None, None]:
    """Shared by this module's tests; the second disks hold data."""
    for project in copies(tmp_path_factory.mktemp("rack"), stack=RACK):
        project.keep(platform={"servers": racks.servers(WORKERS, {})}, reprovision={"maxUnavailable": WORKERS})
        project.make("up")
        rack = Rack(project)
        for worker in rack.workers:
            worker.fill()
        yield rack


@pytest.fixture(scope="module")
def user(kubernetes: None, rack: Rack, tmp_path_factory: pytest.TempPathFactory) -> User:
    """Of the rack's cluster."""
    return User(rack.project, tmp_path_factory.mktemp("user"))


@pytest.fixture
def others_are_untouched(rack: Rack) -> Generator[None, None, None]:
    """Whatever a test does: the control plane boots nothing, and second disks keep what they hold."""
    boots, disks = rack.project.booted(), [worker.digest() for worker in rack.workers]
    yield
    now = rack.project.booted()
    for number in range(racks.CONTROL_PLANE):
        assert now[f"server-{number}"] == boots[f"server-{number}"]
    assert [worker.digest() for worker in rack.workers] == disks


@pytest.mark.usefixtures("others_are_untouched")
@pytest.mark.parametrize("how", ["off", "loss"])
def test_power_goes_at_every_stage(rack: Rack, how: str) -> None:
    rack.change(*rack.workers)
    waiting = dict(zip(POWER_GOES[how], rack.workers, strict=True))
    run = rack.project.start("up")
    while waiting and not run.over():
        for stage, worker in list(waiting.items()):
            if stage.reached(worker.printed()):
                rack.project.rack("power", server=worker.lab_name, to=how)
                del waiting[stage]
        time.sleep(0.002)
    assert not waiting, run.printed()

    done = run.wait()

    _assert_finished(rack, done)
    for stage, worker in zip(POWER_GOES[how], rack.workers, strict=True):
        assert worker.printed().count(_BEGUN) == (2 if stage is WRITING else 1), stage


@pytest.mark.usefixtures("others_are_untouched")
@pytest.mark.parametrize("stages", KILLED, ids=lambda stages: ", ".join(map(str, stages)))
def test_killed_at_every_stage(rack: Rack, user: User, stages: Sequence[Stage]) -> None:
    worker, *others = rack.workers
    before = rack.project.booted()
    node = f"{RACK}-{worker.name}.{RACK}.facility.test"
    taint = {"key": "lab.test/gpu", "effect": "NoSchedule"}
    metadata = {"name": node, "labels": {"lab.test/rack": "7"}, "annotations": {"lab.test/owner": "shop"}}
    assert user.apply({"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {"taints": [taint]}}) == (
        200,
        "",
    )
    former = user("get", f"/api/v1/nodes/{node}")
    rack.change(worker)
    for stage in stages:
        run = rack.project.start("up")
        run.until(lambda stage=stage: stage.reached(worker.printed()), str(stage))
        run.kill(rack.project.supervisor())

    done = rack.project.make("up")

    _assert_finished(rack, done)
    assert worker.printed().count(_BEGUN) == 1
    after = rack.project.booted()
    assert {other.lab_name: after[other.lab_name] for other in others} == {
        other.lab_name: before[other.lab_name] for other in others
    }
    # By kexec, which no firmware sees, and then from its disk: never through the installer once more.
    assert after[worker.lab_name] == [*before[worker.lab_name], "disk"][-10:]
    # It is another Node object, with what somebody had put on the former one, and nothing more.
    found = user("get", f"/api/v1/nodes/{node}")
    assert found["metadata"]["uid"] != former["metadata"]["uid"]
    for key in ("labels", "annotations"):
        assert found["metadata"][key] == former["metadata"][key]
    assert found["spec"]["taints"] == [taint] and "unschedulable" not in found["spec"]
    kept = user("get", "/api/v1/namespaces/kube-system/configmaps")["items"]
    assert not [each for each in kept if each["metadata"]["name"].startswith("metal-ipi-")]


@pytest.mark.usefixtures("others_are_untouched")
@pytest.mark.parametrize("end", ["killed", "off"])
def test_interrupted_while_it_drains(rack: Rack, user: User, end: str) -> None:
    worker = rack.workers[0]
    metadata = {"name": "slow-to-end", "namespace": "default", "finalizers": ["lab.test/slow"]}
    node = f"{RACK}-{worker.name}.{RACK}.facility.test"
    spec = {"nodeName": node, "containers": [{"name": "slow", "image": "slow.test/slow"}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    assert user.apply(pod) == (200, "")
    rack.change(worker)
    run = rack.project.start("up", live=True)
    draining = f"draining {node}: default/slow-to-end: is terminating"
    run.until(lambda: draining in run.printed(), draining)
    if end == "killed":
        run.kill(rack.project.supervisor())
    else:
        rack.project.rack("power", server=worker.lab_name, to=end)
    assert not SENT.reached(worker.printed()), "it was sent to its installer although a pod is left"
    assert user.apply({**pod, "metadata": {**metadata, "finalizers": []}}) == (200, "")

    done = rack.project.make("up") if end == "killed" else run.wait()

    _assert_finished(rack, done)


def test_a_listed_disk_is_wiped_again_by_consent_only(rack: Rack) -> None:
    wiped, listed, other = rack.workers[:3]
    kept = {worker: worker.digest() for worker in (listed, other)}
    assert any(wiped.first_and_last())
    rack.change(wiped, wipeDisks=[{"serial": wiped.second_disk.name}], consent="wipe")
    rack.change(listed, wipeDisks=[{"serial": listed.second_disk.name}])
    rack.change(other)

    done = rack.project.make("up")

    assert not any(wiped.first_and_last())
    assert {worker: worker.digest() for worker in kept} == kept
    _assert_finished(rack, done)


def _assert_finished(rack: Rack, done: Done) -> None:
    assert done.status == 0, done.text
    racks.assert_finished(rack.project, WORKERS)
    rack.project.assert_unchanged("up")
