"""Both plug-ins under the real engine, driven by the official SDKs."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pulumi
import pytest
from pulumi import automation

from tests.lab.plugins.fake_metal import PROJECT, FakeMetal, serve
from tests.lab.plugins.harness import PLUGINS, engine, needs_engine

pytestmark = [
    needs_engine,
    pytest.mark.engine,
]
SECRET_DATA = "hunter2-userdata"


class Lab:
    """A stack in a directory of its own, and what was said about it."""

    def __init__(self, directory: Path, url: str, *, token: str = "hunter2-token") -> None:
        self._directory = directory
        self.said: list[str] = []
        self._environment = {
            "PATH": f"{Path(str(engine)).parent}:{PLUGINS}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PULUMI_HOME": str(directory / "home"),
            "PULUMI_CONFIG_PASSPHRASE": "passphrase",
            "PULUMI_SKIP_UPDATE_CHECK": "1",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "1",
            "METAL_API_URL": url,
            "METAL_AUTH_TOKEN": token,
        }

    def stack(self, program: Callable[[], None]) -> automation.Stack:
        backend = automation.ProjectBackend(f"file://{self._directory}")
        settings = automation.ProjectSettings("plugins", "python", backend=backend)
        options = automation.LocalWorkspaceOptions(
            work_dir=str(self._directory), project_settings=settings, env_vars=self._environment
        )
        return automation.create_or_select_stack("lab", "plugins", program, opts=options)

    def up(self, program: Callable[[], None]) -> dict[str, int]:
        result = self.stack(program).up(on_output=self.said.append, on_error=self.said.append, color="never", diff=True)
        return {str(name): count for name, count in (result.summary.resource_changes or {}).items()}

    def state(self) -> dict[str, Any]:
        document = json.loads((self._directory / ".pulumi/stacks/plugins/lab.json").read_text())
        return {entry["urn"].rsplit("::", 1)[1]: entry for entry in document["checkpoint"]["latest"]["resources"]}

    def everything_written(self) -> str:
        files = [
            path.read_text(errors="replace") for path in (self._directory / ".pulumi").rglob("*") if path.is_file()
        ]
        return "\n".join([*files, *self.said])


def kept_loops(monkeypatch: pytest.MonkeyPatch) -> list[asyncio.AbstractEventLoop]:
    """The event loops that inline programs are run in: the Automation API never closes them."""
    made: list[asyncio.AbstractEventLoop] = []
    make = asyncio.new_event_loop

    def remember() -> asyncio.AbstractEventLoop:
        made.append(make())
        return made[-1]

    monkeypatch.setattr(asyncio, "new_event_loop", remember)
    return made


class FakeLab(Lab):
    """One whose API only knows what it was told."""

    def __init__(self, directory: Path, metal: FakeMetal, url: str) -> None:
        super().__init__(directory, url)
        self.metal = metal


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[FakeLab, None, None]:
    metal = FakeMetal()
    with serve(metal) as url:
        made = FakeLab(tmp_path, metal, url)
        # The Automation API looks for the engine on the PATH of this process.
        monkeypatch.setenv("PATH", f"{Path(str(engine)).parent}:{os.environ['PATH']}")
        loops = kept_loops(monkeypatch)
        yield made
        for loop in loops:
            if not loop.is_running():
                loop.close()


def program(*, hostname: str = "lab-worker-0", stdin: str = "a", trigger: str = "1") -> Callable[[], None]:
    def run() -> None:
        import pulumi_command as command
        import pulumi_equinix_metal as equinix

        project = equinix.Project("project")
        key = equinix.ProjectSshKey("key", project_id=project.id, public_key="ssh-ed25519 AAAA")
        device = equinix.Device(
            "device",
            hostname=hostname,
            plan="c3.small.x86",
            operating_system="custom_ipxe",
            project_id=PROJECT,
            metro="lb",
            user_data=pulumi.Output.secret(SECRET_DATA),
            ipxe_script_url="http://boot/a",
            tags=["a", "b"],
            project_ssh_key_ids=[key.id],
            opts=pulumi.ResourceOptions(custom_timeouts=pulumi.CustomTimeouts(create="1m")),
        )
        check = command.local.Command(
            "check", create=pulumi.Output.concat("echo ", device.access_public_ipv4, "; cat"), stdin=stdin
        )
        command.local.Command("triggered", create="echo hi", delete="true", triggers=[trigger])
        pulumi.export("address", device.access_public_ipv4)
        pulumi.export("checked", check.stdout)

    return run


def test_a_stack_lives_its_life_without_telling_secrets(lab: FakeLab) -> None:
    preview = lab.stack(program()).preview(
        on_output=lab.said.append, on_error=lab.said.append, color="never", diff=True
    )
    assert {str(name): count for name, count in preview.change_summary.items()} == {"create": 5}
    assert lab.metal.requests == []
    assert lab.up(program()) == {"create": 5}
    assert lab.state()["check"]["outputs"]["stdout"] == "198.51.100.1\na"
    assert lab.up(program()) == {"same": 5}
    lab.stack(program()).refresh(on_output=lab.said.append, on_error=lab.said.append, color="never")
    assert lab.up(program()) == {"same": 5}
    assert lab.up(program(hostname="other", stdin="b", trigger="2")) == {"same": 3, "update": 2, "replace": 1}
    assert [device["hostname"] for device in lab.metal.devices.values()] == ["other"]
    written = lab.everything_written()
    for secret in (SECRET_DATA, "hunter2-root", "hunter2-token"):
        assert secret not in written
    lab.stack(program()).destroy(on_output=lab.said.append, on_error=lab.said.append, color="never")
    assert (lab.metal.devices, lab.metal.projects, lab.metal.keys) == ({}, {}, {})


def test_addresses_and_sessions_live_their_life(lab: FakeLab) -> None:
    def network(*, quantity: int) -> Callable[[], None]:
        def run() -> None:
            import pulumi_equinix_metal as equinix

            password = pulumi.Output.secret(SECRET_DATA)
            bgp = equinix.ProjectBgpConfigArgs(deployment_type="local", asn=65000, md5=password)
            project = equinix.Project("project", bgp_config=bgp)
            device = equinix.Device(
                "device",
                hostname="lab-worker-0",
                plan="c3.small.x86",
                operating_system="custom_ipxe",
                project_id=PROJECT,
                metro="lb",
                ipxe_script_url="http://boot/a",
            )
            block = equinix.ReservedIpBlock("block", project_id=project.id, quantity=quantity, metro="lb", tags=["api"])
            equinix.BgpSession("session", device_id=device.id, address_family="ipv4")
            pulumi.export("address", block.address)

        return run

    preview = lab.stack(network(quantity=1)).preview(on_output=lab.said.append, color="never", diff=True)
    assert {str(name): count for name, count in preview.change_summary.items()} == {"create": 5}
    assert lab.metal.requests == []
    assert lab.up(network(quantity=1)) == {"create": 5}
    lab.stack(network(quantity=1)).refresh(on_output=lab.said.append, on_error=lab.said.append, color="never")
    assert lab.up(network(quantity=1)) == {"same": 5}
    assert lab.state()["block"]["outputs"]["cidrNotation"] == "192.0.2.128/32"
    assert lab.state()["session"]["outputs"]["status"] == "unknown,unknown"
    assert lab.up(network(quantity=2))["replace"] == 1
    assert SECRET_DATA not in lab.everything_written()
    lab.stack(network(quantity=2)).destroy(on_output=lab.said.append, on_error=lab.said.append, color="never")
    assert (lab.metal.devices, lab.metal.projects, lab.metal.ips, lab.metal.sessions) == ({}, {}, {}, {})


def test_a_device_that_fails_stays_in_the_state_and_is_replaced(lab: FakeLab) -> None:
    lab.metal.final_state = "failed"
    lab.metal.events = ["no power"]
    with pytest.raises(automation.CommandError):
        lab.up(program())
    said = "".join(lab.said)
    assert "device lab-worker-0" in said
    assert "latest events: no power" in said
    [failed] = lab.metal.devices
    assert lab.state()["device"]["id"] == failed
    lab.metal.final_state = "active"
    assert lab.up(program())["replace"] == 1
    assert failed not in lab.metal.devices
    assert [lab.state()["device"]["id"]] == list(lab.metal.devices)


def test_a_device_that_was_slow_is_waited_for_by_the_next_update(lab: FakeLab) -> None:
    lab.metal.polls_until_active = 10**6

    def impatient() -> None:
        import pulumi_equinix_metal as equinix

        equinix.Device(
            "device",
            hostname="lab-worker-0",
            plan="c3.small.x86",
            operating_system="custom_ipxe",
            project_id=PROJECT,
            metro="lb",
            ipxe_script_url="http://boot/a",
            opts=pulumi.ResourceOptions(custom_timeouts=pulumi.CustomTimeouts(create="1s")),
        )

    with pytest.raises(automation.CommandError):
        lab.up(impatient)
    assert "still provisioning after" in "".join(lab.said)
    [slow] = lab.metal.devices
    lab.metal.polls_until_active = 0
    assert lab.up(impatient) == {"same": 1, "update": 1}
    assert list(lab.metal.devices) == [slow]
    assert lab.up(impatient) == {"same": 2}
    assert lab.metal.count("POST", "/devices") == 1
