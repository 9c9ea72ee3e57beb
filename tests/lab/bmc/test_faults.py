"""BMCs that misbehave, by request, and servers that lose their power."""

from __future__ import annotations

import datetime
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
import sushy

from lab.bmc.control import ask
from lab.bmc.faults import Refused
from lab.errors import LabError
from tests.lab.bmc.harness import World
from tests.lab.waiting import until

pytestmark = pytest.mark.servers


def once(lab: World) -> Any:
    """Ask for one boot from the network."""
    system = lab.system()
    system.set_system_boot_options(sushy.BootSource.PXE, enabled=sushy.BootSourceOverrideEnabled.ONCE)
    system.refresh()
    return system


def test_a_one_time_boot_is_shown_and_not_honoured(lab: World) -> None:
    lab.fault("boot_not_honoured")
    system = once(lab)
    assert system.boot.enabled is sushy.BootSourceOverrideEnabled.ONCE
    system.reset_system(sushy.ResetType.ON)
    system.refresh()
    assert system.boot.enabled is sushy.BootSourceOverrideEnabled.DISABLED
    assert lab.machines.boots == [("disk", "network")]


def test_a_one_time_boot_is_dropped(lab: World) -> None:
    lab.fault("boot_dropped")
    system = once(lab)
    assert system.boot.enabled is sushy.BootSourceOverrideEnabled.DISABLED
    system.set_system_boot_options(sushy.BootSource.PXE, enabled=sushy.BootSourceOverrideEnabled.CONTINUOUS)
    system.reset_system(sushy.ResetType.ON)
    assert lab.machines.boots == [("network", "disk")], "what is for ever is kept"


def test_it_is_busy_for_so_many_requests_or_so_long(lab: World) -> None:
    lab.fault("unavailable", count=2)
    answers = [lab.get() for _ in range(3)]
    assert [answer.status_code for answer in answers] == [503, 503, 200]
    assert answers[0].headers["Retry-After"] == "1"
    lab.fault("unavailable", seconds=0.3)
    assert lab.get().status_code == 503
    until(lambda: lab.get().status_code == 200)


def test_it_is_slow(lab: World) -> None:
    lab.fault("slow", seconds=0.4, count=1)
    before = time.monotonic()
    assert lab.get().status_code == 200
    assert time.monotonic() - before >= 0.4


def test_it_cuts_connections(lab: World) -> None:
    lab.fault("reset")
    with pytest.raises((httpx.ReadError, httpx.RemoteProtocolError)):
        lab.get()
    assert lab.get().status_code == 200


def test_it_forgets_sessions(lab: World) -> None:
    bmc = lab.servers[0].bmc
    login = {"UserName": bmc.username, "Password": bmc.password}
    with lab.client() as made:
        token = {"X-Auth-Token": made.post("SessionService/Sessions", json=login).headers["X-Auth-Token"]}
    assert lab.get(**token).status_code == 200
    lab.fault("session_lost")
    assert [lab.get(**token).status_code for _ in range(2)] == [401, 401]
    assert lab.get().status_code == 200, "name and password still open it"
    system = lab.system()
    lab.fault("session_lost")
    system.refresh()
    assert system.power_state is sushy.PowerState.OFF, "sushy logs in again"


@pytest.mark.parametrize(
    ("which", "reason"),
    [
        ("expired", "has expired"),
        ("early", "not yet valid"),
        ("other-name", r"mismatch|doesn't match"),
        ("other-ca", r"signature failure|unable to get local issuer"),
    ],
)
def test_its_certificate_is_wrong(lab: World, which: str, reason: str) -> None:
    lab.fault("certificate", which=which)
    with pytest.raises(httpx.ConnectError, match=reason):
        lab.get()
    lab.do(do="clear", server="all")
    assert lab.get().status_code == 200


def test_its_clock_is_wrong(lab: World) -> None:
    path = f"Managers/{lab.servers[0].uuid}"

    def off_by() -> float:
        told = datetime.datetime.fromisoformat(lab.get(path).json()["DateTime"])
        return (told - datetime.datetime.now(datetime.UTC)).total_seconds()

    assert abs(off_by()) < 5
    lab.fault("clock", days=-3650)
    assert abs(off_by() + 3650 * 86400) < 5


def test_it_reports_the_former_power_state_for_a_while(lab: World) -> None:
    lab.fault("stale_power", seconds=0.5)
    system = lab.system()
    system.reset_system(sushy.ResetType.ON)
    system.refresh()
    assert (system.power_state, len(lab.machines.boots)) == (sushy.PowerState.OFF, 1)

    def on() -> bool:
        system.refresh()
        return system.power_state is sushy.PowerState.ON

    until(on)


def test_the_power_button_is_not_pressed(lab: World) -> None:
    lab.fault("deaf_shutdown")
    system = lab.system()
    system.reset_system(sushy.ResetType.ON)
    system.reset_system(sushy.ResetType.GRACEFUL_SHUTDOWN)
    assert "shutdown" not in {call for call, _ in lab.machines.calls}
    system.reset_system(sushy.ResetType.FORCE_OFF)
    system.refresh()
    assert system.power_state is sushy.PowerState.OFF


def test_a_bmc_is_away_until_it_is_back(lab: World) -> None:
    path, account = "Systems", (lab.servers[0].bmc.username, lab.servers[0].bmc.password)
    with lab.client() as connected:
        assert connected.get(path, auth=account).status_code == 200
        lab.fault("away")
        with pytest.raises(httpx.TransportError):
            connected.get(path, auth=account)
    with pytest.raises(httpx.TransportError):
        lab.get()
    lab.do(do="clear", server="all")
    assert lab.get().status_code == 200


def test_a_power_loss_takes_the_bmc_along_and_ends(lab: World) -> None:
    once(lab).reset_system(sushy.ResetType.ON)
    lab.do(do="power", server="server-0", to="loss", seconds=0.3)
    assert ("power_off", lab.servers[0].uuid) in lab.machines.calls
    with pytest.raises(httpx.TransportError):
        lab.get()
    with pytest.raises(Refused, match="no mains"):
        lab.do(do="power", server="server-0", to="on")
    until(lambda: len(lab.machines.boots) == 2)
    assert lab.machines.boots[1] == ("disk", "network")
    until(lambda: _answers(lab))


def test_a_bmc_restarts_and_its_server_does_not(lab: World) -> None:
    lab.do(do="power", server="server-0", to="on")
    lab.do(do="power", server="server-0", to="bmc-reboot")
    with pytest.raises(httpx.TransportError):
        lab.get()
    until(lambda: _answers(lab))
    assert lab.machines.calls == [("power_on", "server-0")]


def _answers(lab: World) -> bool:
    try:
        return lab.get().status_code == 200
    except httpx.TransportError:
        return False


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ({"kind": "earthquake"}, "earthquake"),
        ({"kind": "slow"}, "needs seconds"),
        ({"kind": "certificate", "which": "blue"}, "blue"),
        ({"kind": "clock", "days": 1, "count": 2}, "takes days, not count, days"),
    ],
)
def test_a_fault_that_would_never_strike_is_refused(lab: World, fault: dict[str, Any], reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        lab.do(do="fault", server="server-0", fault=fault)


def test_the_command_line_reaches_a_rack_by_its_socket(lab: World, tmp_path: Path) -> None:
    assert ask(lab.layout, {"do": "power", "server": "all", "to": "on"})["server-0"]["power"] == "on"
    ask(lab.layout, {"do": "fault", "server": "server-0", "fault": {"kind": "reset", "count": 3}})
    (seen,) = ask(lab.layout, {"do": "servers"}).values()
    assert (seen["boots"], seen["faults"]) == (["disk"], [{"kind": "reset", "count": 3, "hits": 0}])
    with pytest.raises(LabError, match="there is no server-9"):
        ask(lab.layout, {"do": "power", "server": "server-9", "to": "on"})
    with pytest.raises(LabError, match="upside"):
        ask(lab.layout, {"do": "power", "server": "server-0", "to": "upside down"})
    (tmp_path / "other").mkdir()
    with pytest.raises(LabError, match="no rack runs"):
        ask(type(lab.layout)(tmp_path / "other"), {"do": "servers"})
