"""ssh-reachable: nodes and consoles are SSH servers on loopback, the platform a Metal API on loopback."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
import subprocess
from pathlib import Path
from typing import Any

import asyncssh
import pytest

from metal_ipi.provider.errors import GateFailed
from metal_ipi.provider.gates import ssh as gates_ssh
from metal_ipi.provider.gates import ssh_reachable
from metal_ipi.provider.gates.causes import recognise
from metal_ipi.provider.gates.first_boot import QUESTION
from metal_ipi.provider.gates.ssh_reachable import ignition_failure
from metal_ipi.provider.platforms.contract import Event
from tests.provider import ssh_servers as ssh
from tests.provider.fake_metal import FakeMetal
from tests.provider.harness import Resource, configured, until
from tests.provider.knot import free_port

pytestmark = pytest.mark.usefixtures("no_waiting")

HOST, CLIENT = ssh.key(), ssh.key()


def node(name: str, port: int, host_key: asyncssh.SSHKey = HOST, **more: Any) -> dict[str, Any]:
    return {"name": name, "address": "127.0.0.1", "port": port, "hostKey": ssh.public(host_key), **more}


def gate(nodes: list[dict[str, Any]], timeout: float = 10, **more: Any) -> dict[str, Any]:
    spec = {"nodes": nodes, "user": "core", "privateKey": ssh.private(CLIENT), **more}
    return {"kind": "ssh-reachable", "spec": spec, "timeoutSeconds": timeout, "triggers": []}


async def resource(metal: FakeMetal | None = None) -> Resource:
    section: dict[str, Any] = {"metal": {"authToken": "token", "endpoint": metal.url}} if metal else {}
    return await configured("Gate", "workers-reachable", **section)


async def test_a_late_node_is_waited_for_and_named() -> None:
    late = free_port()
    it = await resource()
    async with ssh.node(HOST, CLIENT) as port:
        wanted = gate([node("early", port), node("late", late)], 600)
        waiting = asyncio.ensure_future(it.up(wanted))
        await until(lambda: bool(it.harness.log.messages))
        async with ssh.node(HOST, CLIENT, port=late):
            state = await waiting
    assert "waiting for late (connection refused), 0 s" in it.harness.log.messages
    assert "early after" in state["observed"] and "late after" in state["observed"]


async def test_a_node_of_both_families_answers_at_both() -> None:
    it = await resource()
    async with ssh.node(HOST, CLIENT) as port:
        wanted = gate([node("both", port, ipv6="::1")], 600)
        waiting = asyncio.ensure_future(it.up(wanted))
        await until(lambda: bool(it.harness.log.messages))
        async with ssh.node(HOST, CLIENT, address="::1", port=port):
            state = await waiting
    assert "waiting for both (at ::1: connection refused), 0 s" in it.harness.log.messages
    assert state["observed"].startswith("both after") and "not tried" not in state["observed"]


async def test_another_machine_at_the_ipv6_address_is_fatal() -> None:
    it = await resource()
    async with ssh.node(HOST, CLIENT) as port, ssh.node(ssh.key(), CLIENT, address="::1", port=port):
        with pytest.raises(GateFailed, match="another machine answers at this address"):
            await it.up(gate([node("both", port, ipv6="::1")]))


async def test_without_a_route_the_ipv6_address_is_not_tried_and_that_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ssh_reachable, "has_route", lambda address: False)  # pyright: ignore
    it = await resource()
    async with ssh.node(HOST, CLIENT) as port:
        state = await it.up(gate([node("both", port, ipv6="2001:db8::1")]))
    assert "not tried at IPv6, because there is no route from here: both" in state["observed"]


@pytest.mark.parametrize(
    ("looks", "told"),
    [
        # As OpenShift's nodes: another boot follows the one that puts the operating system in place.
        (
            [("1", "pending"), ("1", "restarting"), ("1", "restarted"), ("2", "restarted")],
            "its first boot is not finished",
        ),
        # Seen late: the unit runs still. Seen too seldom to meet it.
        ([("1", "restarting"), ("2", "restarted")], "about to restart"),
        ([("1", "pending"), ("1", "restarted"), ("2", "restarted")], "its first boot is not finished"),
        # Where nothing had to change, it does not restart.
        ([("1", "pending"), ("1", "finished")], "its first boot is not finished"),
    ],
)
async def test_a_node_that_is_still_to_restart_is_waited_for(looks: list[tuple[str, str]], told: str) -> None:
    it, left = await resource(), list(looks)
    async with ssh.node(HOST, CLIENT, boot_states=lambda: left.pop(0) if len(left) > 1 else left[0]) as port:
        state = await it.up(gate([node("worker", port)]))
    assert len(left) == 1 and state["observed"].startswith("worker after")
    assert any(told in message for message in it.harness.log.messages)


async def test_a_first_boot_that_does_not_end_fails_with_what_was_last_seen() -> None:
    async with ssh.node(HOST, CLIENT, boot_states=lambda: ("1", "pending")) as port:
        with pytest.raises(GateFailed, match="did not pass within 1 s") as caught:
            await (await resource()).up(gate([node("worker", port)], timeout=1))
    assert "worker (its first boot is not finished: the operating system of the cluster's release is not in" in str(
        caught.value
    )


@pytest.mark.parametrize(
    ("files", "unit", "word"),
    [
        ([""], "activating", "pending"),
        ([".bak"], "activating", "restarting"),
        ([".bak"], "deactivating", "restarting"),
        ([".bak"], "inactive", "restarted"),
        ([".bak"], "inactive stopping", "restarting"),  # the reboot has ended the unit, and not sshd yet
        ([".bak"], "inactive degraded", "restarted"),
        ([".bak"], "", "restarted"),  # no systemd there
        ([], "active", "finished"),
    ],
)
def test_how_far_the_first_boot_is(tmp_path: Path, files: list[str], unit: str, word: str) -> None:
    for name in files:
        (tmp_path / f"ignition-machine-config-encapsulated.json{name}").touch()
    units = tmp_path / "systemd/system"
    units.mkdir(parents=True)
    (units / "machine-config-daemon-firstboot.service").touch()
    assert _asked(tmp_path, unit) == word


def test_a_bootstrap_machine_has_no_first_boot(tmp_path: Path) -> None:
    # openshift-install leaves the file there for FIPS, and nobody ever removes it.
    (tmp_path / "ignition-machine-config-encapsulated.json").touch()
    assert _asked(tmp_path, "inactive") == "finished"


def _asked(etc: Path, unit: str) -> str:
    state, _, system = unit.partition(" ")
    systemctl = etc / "systemctl"
    systemctl.write_text(
        f'#!/bin/sh\n[ "$*" = "is-active machine-config-daemon-firstboot.service" ] && echo {state}\n'
        f'[ "$*" = is-system-running ] && echo {system}\nexit 3\n'
    )
    systemctl.chmod(0o755)
    question = QUESTION.replace("/etc/", f"{etc}/")
    environment = {"PATH": f"{etc}:{os.environ['PATH']}"}
    done = subprocess.run(["sh", "-c", question], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


async def test_only_new_nodes_are_waited_for() -> None:
    it = await resource()
    async with ssh.node(HOST, CLIENT) as port:
        await it.up(gate([node("first", port)]))
    # The first node answers no more; only the second one is tried.
    async with ssh.node(HOST, CLIENT) as other:
        state = await it.up(gate([node("first", port), node("second", other)]))
    assert state["observed"].startswith("second after")
    before = state["passedAt"]
    assert (await it.up(gate([node("second", other)])))["passedAt"] == before


async def test_another_host_key_fails_at_once() -> None:
    async with ssh.node(ssh.key(), CLIENT) as port:
        with pytest.raises(GateFailed, match="failed after 0 s") as caught:
            await (await resource()).up(gate([node("impostor", port)], timeout=60))
    assert "impostor (its SSH host key is not the pinned one)" in str(caught.value)


async def test_a_node_that_resets_a_connection_at_once_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    connect, it = gates_ssh._tcp, await resource()  # pyright: ignore[reportPrivateUsage]

    async def reset(host: str, port: int) -> socket.socket:
        """As of a machine whose SSH server ends before it has accepted."""
        monkeypatch.setattr(gates_ssh, "_tcp", connect)
        with socket.create_server((host, 0)) as server:
            return await connect(host, server.getsockname()[1])

    monkeypatch.setattr(gates_ssh, "_tcp", reset)
    async with ssh.node(HOST, CLIENT) as port:
        state = await it.up(gate([node("worker", port)]))
    assert state["observed"].startswith("worker after")
    assert "waiting for worker (connection reset by peer), 0 s" in it.harness.log.messages


async def test_failed_ignition_ends_the_wait_with_the_console_gathered(
    metal: FakeMetal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gates_ssh, "_CONSOLE_SILENCE", 0.1)
    device = metal.add("lab-worker-0", [])
    metal.events[device] = [
        {
            "type": "user_state",
            "state": "failed",
            "body": "[fetch] Ignition error: boot.facility.test: 404 Not Found",
        }
    ]
    printed = "iPXE 1.21\r\nIgnition failed: boot.facility.test: 404 Not Found\r\n"
    async with ssh.node(HOST, CLIENT, console=printed) as console:
        console_host = f"{device}@127.0.0.1:{console}"
        wanted = gate(
            [node("lab-worker-0", free_port(), machineId=device, console=console_host)],
            60,
            logDirectory=str(tmp_path),
        )
        with pytest.raises(GateFailed) as caught:
            await (await resource(metal)).up(wanted)
    message = str(caught.value)
    assert "gate workers-reachable (ssh-reachable) failed after 0 s" in message
    assert "lab-worker-0: [fetch] Ignition error: boot.facility.test: 404 Not Found" in message
    assert "cause on lab-worker-0: Ignition could not apply" in message
    log = tmp_path / "workers-reachable" / "lab-worker-0.console.log"
    assert f"logs: {log.parent}" in message
    assert "Ignition failed" in log.read_text()
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


async def test_many_machines_are_asked_for_in_turn(metal: FakeMetal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ssh_reachable, "_EVENTS_EVERY", 0.0)
    devices = [metal.add(f"w-{number}", []) for number in range(25)]
    metal.events[devices[4]] = [{"type": "user_state", "state": "failed", "body": "Ignition error: 404"}]
    nodes = [node(f"w-{number}", free_port(), machineId=device) for number, device in enumerate(devices)]
    with pytest.raises(GateFailed, match="w-4: Ignition error: 404"):
        await (await resource(metal)).up(gate(nodes, 600))
    asked = [path.split("/")[-2] for _, path in metal.requests if path.endswith("/events")]
    assert len(asked) <= 30 and set(asked[:20]) == {*devices[10:], *devices[:5]}, "ten each time, then the next ten"


async def test_a_machine_that_is_gone_ends_the_wait(metal: FakeMetal) -> None:
    with pytest.raises(GateFailed, match="machine gone-id does not exist any more"):
        await (await resource(metal)).up(gate([node("w", free_port(), machineId="gone-id")], 60))


async def test_a_timeout_tells_what_was_last_seen_and_shows_no_key() -> None:
    async with ssh.node(HOST, ssh.key()) as port:
        with pytest.raises(GateFailed, match="SSH answers, but refuses the login of core") as caught:
            await (await resource()).up(gate([node("w", port)], timeout=1))
    assert "PRIVATE KEY" not in str(caught.value)


@pytest.mark.parametrize(
    ("line", "what", "fatal"),
    [
        ("coreos-livepxe-rootfs: rootfs hash mismatch", "root file system", True),
        ("Ignition failed: disk on fire", "Ignition", True),
        ("[    1.2] Kernel panic - not syncing: VFS: Unable to mount root fs", "kernel panicked", True),
        ("You are in emergency mode. After logging in, type", "emergency mode", True),
        ("http://boot/k... No such file or directory (http://ipxe.org/2d0c613b)", "iPXE", False),
        ("Could not boot image: Error 0x3e11618e", "iPXE", False),
        ("x509: certificate has expired or is not yet valid", "certificate", False),
        ("ignition[412]: GET https://api-int/config/worker: attempt #5", None, False),
        ("Welcome to the lab", None, False),
    ],
)
def test_known_causes(line: str, what: str | None, fatal: bool) -> None:
    cause = recognise(f"before\r\n{line}\r\nafter")
    if what is None:
        assert cause is None
    else:
        assert cause is not None and what in cause.what and cause.fatal is fatal and cause.line == line.strip()


def test_a_later_success_outweighs_an_ignition_error() -> None:
    failed = Event(type="user", text="[disks] Ignition error: no disk", state="failed")
    fine = Event(type="user", text="[files] Ignition status: finished successfully", state="running")
    assert ignition_failure([failed, fine]) == "[disks] Ignition error: no disk"
    assert ignition_failure([fine, failed]) is None
    assert ignition_failure([Event(type="provisioning.104", text="Device connected", state="")]) is None
