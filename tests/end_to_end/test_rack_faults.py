"""BMCs that misbehave while `make up` works with them: it gets through, or says which machine and what to do.

Each server of the rack has one fault, so that one run rehearses many. The first run claims servers, the second installs
all of them, the third installs some workers again, which are switched off so that their BMC is needed for it. `down`
is the only one that asks servers to shut down. In every run of the tests test_rack.py installs a rack whose BMCs have
the faults that pass; tests/provider has each fault.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from lab.bmc.names import CERTIFICATES, FAULTS
from tests.end_to_end import racks
from tests.end_to_end.project import Done, Project

pytestmark = [pytest.mark.lab, pytest.mark.engine, pytest.mark.nightly]

WORKERS = 6
COUNTED = frozenset({"slow", "unavailable", "reset", "session_lost", "boot_not_honoured", "boot_dropped"})
"""Faults of which the lab tells how often they struck."""
During = Literal["claim", "installation", "re-provisioning", "removal"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Case:
    """One fault of one server's BMC."""

    server: int
    """Its place in the rack: the first three are the control plane."""
    during: During
    fault: dict[str, Any] = field(default_factory=dict[str, Any])
    """Empty: the BMC reboots once the installation of its server has begun."""
    says: tuple[str, ...] = ()
    """What is said of the machine, beside its name and its BMC's address."""

    @property
    def lab_name(self) -> str:
        """As the lab calls the server."""
        return f"server-{self.server}"

    @property
    def name(self) -> str:
        """As the stack calls it."""
        return racks.name(self.server)

    @property
    def bmc(self) -> str:
        """Where its BMC is."""
        return f"https://192.0.2.{65 + self.server}"

    def __str__(self) -> str:
        return " ".join(map(str, self.fault.values())) or "bmc-reboot"


def _certificate(server: int, which: str, *says: str) -> Case:
    fault = {"kind": "certificate", "which": which}
    return Case(server=server, during="claim", fault=fault, says=says)


CASES = (
    _certificate(0, "expired", "has expired", "give the BMC a new certificate, or trust this one: `fingerprint"),
    _certificate(1, "early", "is not valid yet", "give the BMC a new certificate, or trust this one: `fingerprint"),
    _certificate(4, "other-name", "is for ", "correct `address`, give the BMC a certificate for it"),
    _certificate(5, "other-ca", "is not trusted", "set `ca` to the authority that signed it"),
    Case(
        server=6, during="claim", fault={"kind": "away"},
        says=("it closes connections before TLS is established", "check the BMC; then run the same command again"),
    ),
    Case(server=0, during="installation", fault={"kind": "slow", "seconds": 0.5}),
    Case(server=1, during="installation", fault={"kind": "unavailable", "count": 4}),
    Case(server=2, during="installation", fault={"kind": "reset", "count": 4}),
    Case(server=4, during="installation", fault={"kind": "session_lost", "count": 4}),
    Case(server=5, during="installation", fault={"kind": "clock", "days": -400}),
    Case(
        server=6, during="installation", fault={"kind": "boot_dropped"},
        says=("boots from the network every time until it is installed, not just once",),
    ),
    Case(server=7, during="installation", fault={"kind": "stale_power", "seconds": 3}),
    Case(server=8, during="installation"),
    Case(
        server=4, during="re-provisioning", fault={"kind": "boot_not_honoured"},
        says=("network boot: it booted from its disk instead; it is booted into its installer again",),
    ),
    Case(
        server=5, during="re-provisioning", fault={"kind": "boot_dropped"},
        says=("boots from the network every time until it is installed, not just once",),
    ),
    Case(server=6, during="re-provisioning", fault={"kind": "stale_power", "seconds": 3}),
    Case(
        server=3, during="removal", fault={"kind": "deaf_shutdown"},
        says=("did not shut down within 30 s: it is switched off",),
    ),
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Row:
    """A line of the table."""

    case: Case
    outcome: str


def test_faults_of_bmcs(rack: Project, capsys: pytest.CaptureFixture[str]) -> None:
    rows: list[Row] = []
    try:
        rack.keep(**_servers(), reprovision={"maxUnavailable": WORKERS})
        rack.start_lab()
        rows += _refusals(rack, _strike(rack, "claim"))

        rack.restore()
        installations = _strike(rack, "installation")
        done = _up_with_reboots(rack, [case for case in installations if not case.fault])
        rows += [_gone_through(case, done, rack) for case in installations]

        again = _strike(rack, "re-provisioning")
        for case in again:
            rack.rack("power", server=case.lab_name, to="off")
        rack.configure(**_servers(again))
        done = rack.make("up")
        rows += [_gone_through(case, done, rack) for case in again]

        rack.rack("clear", server="all")
        rack.assert_unchanged("up")
        racks.assert_finished(rack, WORKERS)

        removals = _strike(rack, "removal")
        done = _down(rack, removals)
        assert "nothing is left of the lab" in done.text, done.text
        rows += [_gone_through(case, done, None) for case in removals]
    finally:
        with capsys.disabled():
            for row in rows:
                print(f"\n{row.case.during:15} {row.case!s:24} {row.outcome}", end="")
    assert [row.case for row in rows] == list(CASES)
    assert {row.case.fault.get("kind", "") for row in rows} == {*FAULTS, ""}
    assert {row.case.fault["which"] for row in rows if "which" in row.case.fault} == set(CERTIFICATES)


def _servers(again: Sequence[Case] = ()) -> dict[str, Any]:
    """The rack's servers; these that are to be installed again have another kernel argument."""
    own = {case.name: {"kernelArguments": ["lab.again=1"]} for case in again}
    return {"platform": {"servers": racks.servers(WORKERS, own)}}


def _strike(project: Project, during: During) -> list[Case]:
    """Replace all faults by those of a part of the table."""
    project.rack("clear", server="all")
    cases = [case for case in CASES if case.during == during]
    for case in cases:
        if case.fault:
            project.rack("fault", server=case.lab_name, fault=case.fault)
    return cases


def _up_with_reboots(project: Project, rebooting: Sequence[Case]) -> Done:
    """A run in which BMCs reboot once they have sent their servers to the installer."""
    waiting = {case.lab_name for case in rebooting}
    run = project.start("up")
    while waiting and not run.over():
        servers = project.rack("servers")
        for name in [name for name in waiting if "network" in servers[name]["boots"]]:
            project.rack("power", server=name, to="bmc-reboot")
            waiting.remove(name)
        time.sleep(0.05)
    done = run.wait()
    assert not waiting and done.status == 0, done.text
    return done


def _down(project: Project, cases: Sequence[Case]) -> Done:
    """A removal whose faults end once they are told of: a fault that is left is something left of the lab."""
    run = project.start("down")
    while not run.over() and not all(words in run.printed() for case in cases for words in case.says):
        time.sleep(0.05)
    project.rack("clear", server="all")
    return run.wait()


def _refusals(project: Project, cases: Sequence[Case]) -> list[Row]:
    """As whoever mends what is named, and tries again: the engine begins nothing more after the first error."""
    project.configure(timeouts={"machinesActive": 5})
    named: list[Case] = []
    while len(named) < len(cases):
        failed = project.make("up", fails=True)
        lines = {case: _lines(failed, f"server {case.name} (BMC {case.bmc})") for case in cases if case not in named}
        seen = [case for case in lines if lines[case]]
        assert seen, failed.text
        for case in seen:
            assert all(words in lines[case] for words in case.says), f"{case}:\n{failed.text}"
            project.rack("clear", server=case.lab_name)
        named += seen
    return [Row(case=case, outcome=f"refused: {case.says[0]}") for case in cases]


def _lines(done: Done, *names: str) -> str:
    """What was said of any of these names."""
    return "\n".join(line for line in done.text.splitlines() if any(name in line for name in names))


def _gone_through(case: Case, done: Done, project: Project | None) -> Row:
    """The fault struck, and what was done about it is said of this machine."""
    if project is not None and case.fault.get("kind") in COUNTED:
        faults = project.rack("servers")[case.lab_name]["faults"]
        assert all(fault["hits"] for fault in faults), (case, faults)  # one that struck often enough is gone
    said = _lines(done, f"{case.bmc})", f"rack7-{case.name}:")
    assert all(words in said for words in case.says), f"{case}:\n{done.text}"
    return Row(case=case, outcome=f"converges: {case.says[0]}" if case.says else "converges")
