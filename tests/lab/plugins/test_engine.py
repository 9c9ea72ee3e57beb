"""`command` and `equinix-metal` under the real engine, driven by the official SDKs, on the emulated API."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pulumi
import pytest

from tests.lab.metal_api.harness import IDENTITY
from tests.lab.plugins.emulated import Emulation
from tests.lab.plugins.metal_types import ORGANIZATION, PROJECT, PUBLIC_KEY
from tests.lab.plugins.stack import Stack
from tests.real_engine import needs_engine

pytestmark = needs_engine

SCRIPT = "http://boot.facility.test/boot.ipxe"
PASSWORD, USER_DATA = "Swordfish4bgp", "hunter2-userdata"
TYPES = 9
REQUESTS_PER_WORKER = 8


@pytest.fixture
def lab(tmp_path: Path, metal: Emulation) -> Stack:
    return Stack(tmp_path, METAL_API_URL=metal.url, METAL_AUTH_TOKEN=IDENTITY.token)


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


def bond_of(machine: Any) -> pulumi.Output[str]:
    return machine.ports.apply(lambda ports: next(port["id"] for port in ports if port["name"] == "bond0"))


def platform(*, hostname: str = "first", stdin: str = "a", trigger: str = "1", quantity: int = 8) -> Callable[[], None]:
    """Every resource type that the program uses."""

    def run() -> None:
        import pulumi_command as command
        import pulumi_equinix_metal as equinix

        password = pulumi.Output.secret(PASSWORD)
        bgp = equinix.ProjectBgpConfigArgs(deployment_type="local", asn=65000, md5=password)
        project = equinix.Project("project", organization_id=ORGANIZATION, bgp_config=bgp)
        key = equinix.ProjectSshKey("key", project_id=project.id, public_key=PUBLIC_KEY)
        first = device(
            "first", hostname=hostname, metro="LB", tags=["b", "a"], user_data=pulumi.Output.secret(USER_DATA)
        )
        device(
            "second",
            facilities=["lab2", "lab1"],
            always_pxe=True,
            description="on the spot",
            custom_data="{}",
            termination_time="2099-09-03T16:32:00Z",
            ip_addresses=[
                equinix.DeviceIpAddressArgs(type="public_ipv4", cidr=29),
                equinix.DeviceIpAddressArgs(type="private_ipv4"),
            ],
        )
        device("reserved", metro="lb", hardware_reservation_id="next-available", wait_for_reservation_deprovision=True)
        one = equinix.Vlan("one", project_id=PROJECT, metro="lb", vxlan=1001, description="one")
        two = equinix.Vlan("two", project_id=PROJECT, metro="lb", vxlan=1002)
        equinix.Port(
            "bond", port_id=bond_of(first), bonded=True, layer2=False, vlan_ids=[one.id, two.id], reset_on_delete=True
        )
        equinix.ReservedIpBlock("block", project_id=PROJECT, quantity=quantity, metro="lb", tags=["b", "a", "c"])
        equinix.BgpSession("session", device_id=first.id, address_family="ipv4")
        equinix.Gateway("private", project_id=PROJECT, vlan_id=one.id, private_ipv4_subnet_size=16)
        equinix.SpotMarketRequest(
            "spot",
            project_id=PROJECT,
            devices_min=1,
            devices_max=1,
            max_bid_price=0.7,
            metro="LB",
            wait_for_devices=False,
            instance_parameters=equinix.SpotMarketRequestInstanceParametersArgs(
                hostname="spot",
                plan="c3.small.x86",
                operating_system="custom_ipxe",
                billing_cycle="hourly",
                ipxe_script_url=SCRIPT,
                userdata=pulumi.Output.secret(USER_DATA),
            ),
        )
        told = pulumi.Output.concat("echo ", first.access_public_ipv4, "; cat")
        check = command.local.Command("check", create=told, stdin=stdin, add_previous_output_in_env=False)
        command.local.Command("triggered", create="echo hi", triggers=[trigger], add_previous_output_in_env=False)
        pulumi.export("checked", check.stdout)
        pulumi.export("key", key.fingerprint)

    return run


def test_the_whole_platform_lives_its_life_without_telling_secrets(lab: Stack, metal: Emulation) -> None:
    before, asked = metal.left(), metal.log.counts.total()
    made = lab.preview(platform())["create"]
    assert metal.log.counts.total() == asked
    assert lab.up(platform()) == {"create": made}
    state = lab.state()
    assert len({entry["type"] for entry in state.values() if entry["type"].startswith("equinix")}) == TYPES
    assert state["check"]["outputs"]["stdout"] == f"{state['first']['outputs']['accessPublicIpv4']}\na"
    lab.refresh(platform())
    assert lab.up(platform()) == {"same": made}
    other = platform(hostname="other", stdin="b", trigger="2", quantity=4)
    assert lab.up(other) == {"same": made - 4, "update": 2, "replace": 2}
    written = lab.everything_written()
    assert [secret for secret in (IDENTITY.token, PASSWORD, USER_DATA) if secret in written] == []
    lab.destroy(other)
    assert metal.left() == before
    assert [status for status in metal.log.statuses if status.endswith(" 501")] == []


@pytest.mark.nightly
def test_workers_take_few_requests_each(lab: Stack, metal: Emulation) -> None:
    """Ordered, waited for, in two networks over their bonds: all that a worker is on this platform."""

    def workers(count: int) -> Callable[[], None]:
        def run() -> None:
            import pulumi_equinix_metal as equinix

            vlans = [
                equinix.Vlan(f"v{vxlan}", project_id=PROJECT, metro="lb", vxlan=vxlan).id for vxlan in (1001, 1002)
            ]
            for number in range(count):
                worker = device(f"worker-{number}", metro="lb")
                equinix.Port(f"bond-{number}", port_id=bond_of(worker), bonded=True, vlan_ids=vlans)

        return run

    lab.up(workers(2))
    before = Counter(metal.log.counts)
    lab.up(workers(22))
    asked = Counter(metal.log.counts)
    asked.subtract(before)
    assert asked.total() / 20 <= REQUESTS_PER_WORKER, +asked
    lab.destroy(workers(0))
