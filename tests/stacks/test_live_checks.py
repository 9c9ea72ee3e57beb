"""Machines that are looked at in their live systems before they are installed."""

from __future__ import annotations

from tests.mocks import plain
from tests.stacks.answers import declared, node_files, problems, settings, stack_file

_TOKEN = "metal-ipi:index:Installation"


def test_installers_wait_and_installations_say_for_what() -> None:
    recorder = declared("disconnected", values=settings("disconnected"))
    told = [plain(each.inputs["liveChecks"]) for each in recorder.of(_TOKEN)]
    assert len(told) == 4 and told[0] == told[3]
    assert told[0]["release"] == "4.19.0"
    assert told[0]["names"] == [f"{name}.disconnected.facility.test" for name in ("api", "api-int")]
    assert told[0]["registries"] == ["mirror.facility.test:5000"]
    assert told[0]["overrides"] == stack_file("disconnected")["preflight"]["live"]["overrides"]
    files = recorder.inputs("workers-installers")["files"]
    assert "HOLD=yes\n" in node_files(files["disconnected-worker-0.ign"])["/etc/metal-ipi/install.env"]


def test_other_stacks_know_nothing_of_it() -> None:
    recorder = declared("rack7", values=settings("rack7"))
    assert not any("liveChecks" in each.inputs for each in recorder.of(_TOKEN))
    files = recorder.inputs("workers-installers")["files"]
    assert "HOLD=''\n" in node_files(files["rack7-worker-0.ign"])["/etc/metal-ipi/install.env"]


def test_machines_that_are_not_installed_cannot_be_looked_at() -> None:
    (problem,) = problems(settings("lab", preflight={"live": {}}))
    assert problem.path == "metal-ipi:preflight.live" and "boot.install is not set" in problem.why
