"""The resource types that the program uses, through their life, on the real engine and the emulated API."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import Any

import asyncssh
import pulumi
import pytest

from tests.lab.metal_api.harness import IDENTITY
from tests.lab.plugins.emulated import Emulation, emulation
from tests.lab.plugins.harness import engine, needs_engine
from tests.lab.plugins.test_engine import Lab, kept_loops

pytestmark = [needs_engine, pytest.mark.engine]

PROJECT, ORGANIZATION = IDENTITY.project_id, IDENTITY.organization_id
SCRIPT = "http://boot.facility.test/boot.ipxe"
PUBLIC_KEY = asyncssh.generate_private_key("ssh-ed25519").export_public_key().decode().strip()
PASSWORD = "Swordfish4bgp"
TYPES = 9
REQUESTS_PER_WORKER = 8


@pytest.fixture
def metal(tmp_path: Path) -> Generator[Emulation, None, None]:
    with emulation(tmp_path / "metal") as found:
        yield found


@pytest.fixture
def lab(tmp_path: Path, metal: Emulation, monkeypatch: pytest.MonkeyPatch) -> Generator[Lab, None, None]:
    monkeypatch.setenv("PATH", f"{Path(str(engine)).parent}:{os.environ['PATH']}")
    loops: list[asyncio.AbstractEventLoop] = kept_loops(monkeypatch)
    yield Lab(tmp_path, metal.url, token=IDENTITY.token)
    for loop in loops:
        if not loop.is_running():
            loop.close()


def device(name: str, **given: Any) -> Any:
    import pulumi_equinix_metal as equinix

    usual: dict[str, Any] = {
        "hostname": name,
        "plan": "c3.small.x86",
        "operating_system": "custom_ipxe",
        "project_id": PROJECT,
        "ipxe_script_url": SCRIPT,
    }
    return equinix.Device(name, **{**usual, **given})


def port_id(of: Any, name: str) -> pulumi.Output[str]:
    return of.ports.apply(lambda ports: next(port["id"] for port in ports if port["name"] == name))


def platform() -> None:
    import pulumi_equinix_metal as equinix

    password = pulumi.Output.secret(PASSWORD)
    bgp = equinix.ProjectBgpConfigArgs(deployment_type="local", asn=65000, md5=password)
    project = equinix.Project("project", organization_id=ORGANIZATION, bgp_config=bgp)
    equinix.ProjectSshKey("key", project_id=project.id, public_key=PUBLIC_KEY)
    first = device("first", metro="LB", tags=["b", "a"], user_data=pulumi.Output.secret("{}"), always_pxe=True)
    device(
        "second",
        facilities=["lab2", "lab1"],
        description="on the spot",
        custom_data="{}",
        termination_time="2099-09-03T16:32:00Z",
        ip_addresses=[
            equinix.DeviceIpAddressArgs(type="public_ipv4", cidr=29),
            equinix.DeviceIpAddressArgs(type="private_ipv4"),
        ],
    )
    reserved = device(
        "reserved", metro="lb", hardware_reservation_id="next-available", wait_for_reservation_deprovision=True
    )
    one = equinix.Vlan("one", project_id=PROJECT, metro="lb", vxlan=1001, description="one")
    two = equinix.Vlan("two", project_id=PROJECT, metro="lb", vxlan=1002, description="two")
    equinix.Port("bond", port_id=port_id(first, "bond0"), bonded=True, vlan_ids=[one.id, two.id], reset_on_delete=True)
    block = equinix.ReservedIpBlock("block", project_id=PROJECT, quantity=8, metro="lb", tags=["b", "a", "c"])
    equinix.ReservedIpBlock("elastic", project_id=PROJECT, quantity=1, metro="lb", description="api")
    equinix.BgpSession("session", device_id=first.id, address_family="ipv4")
    equinix.Gateway("private", project_id=PROJECT, vlan_id=one.id, private_ipv4_subnet_size=16)
    equinix.Gateway("public", project_id=PROJECT, vlan_id=two.id, ip_reservation_id=block.id)
    equinix.SpotMarketRequest(
        "spot",
        project_id=PROJECT,
        devices_min=1,
        devices_max=1,
        max_bid_price=0.7,
        metro="LB",
        wait_for_devices=True,
        instance_parameters=equinix.SpotMarketRequestInstanceParametersArgs(
            hostname="spot",
            plan="c3.small.x86",
            operating_system="custom_ipxe",
            billing_cycle="hourly",
            ipxe_script_url=SCRIPT,
            userdata=pulumi.Output.secret(f'{{"x": "{PASSWORD}"}}'),
        ),
    )
    pulumi.export("reservation", reserved.hardware_reservation_id)


def test_the_whole_platform_lives_its_life(lab: Lab, metal: Emulation) -> None:
    before = metal.left()
    made = lab.up(platform)["create"]
    state = lab.state()
    assert len({entry["type"] for entry in state.values() if entry["type"].startswith("equinix")}) == TYPES
    outputs = next(entry["outputs"] for entry in state.values() if entry["type"] == "pulumi:pulumi:Stack")
    assert outputs["reservation"] == "next-available"
    assert lab.up(platform) == {"same": made}
    lab.stack(platform).refresh(on_output=lab.said.append, on_error=lab.said.append, color="never")
    assert lab.up(platform) == {"same": made}
    written = lab.everything_written()
    assert IDENTITY.token not in written
    assert PASSWORD not in written
    lab.stack(platform).destroy(on_output=lab.said.append, on_error=lab.said.append, color="never")
    assert metal.left() == before
    assert [status for status in metal.log.statuses if status.endswith(" 501")] == []


def test_workers_take_few_requests_each(lab: Lab, metal: Emulation) -> None:
    """Ordered, waited for, in two networks over their bonds: all that a worker is on this platform."""

    def workers(count: int) -> Any:
        def run() -> None:
            import pulumi_equinix_metal as equinix

            one = equinix.Vlan("one", project_id=PROJECT, metro="lb", vxlan=1001)
            two = equinix.Vlan("two", project_id=PROJECT, metro="lb", vxlan=1002)
            for number in range(count):
                worker = device(f"worker-{number}", metro="lb")
                bond = port_id(worker, "bond0")
                equinix.Port(f"bond-{number}", port_id=bond, bonded=True, vlan_ids=[one.id, two.id])

        return run

    lab.up(workers(2))
    before = Counter(metal.log.counts)
    lab.up(workers(22))
    asked = Counter(metal.log.counts)
    asked.subtract(before)
    assert asked.total() / 20 <= REQUESTS_PER_WORKER, +asked
    lab.stack(workers(0)).destroy(on_output=lab.said.append, on_error=lab.said.append, color="never")
