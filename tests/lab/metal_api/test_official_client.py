"""The official Python client, unchanged, walks a device through its life over a real socket."""

from __future__ import annotations

import asyncio
import importlib
import threading
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from lab.metal_api import wire
from lab.metal_api.application import api
from lab.metal_api.bgp.models import BgpSession
from lab.metal_api.ips.models import Reservation
from lab.metal_api.projects.models import Project
from lab.metal_api.ssh_keys.models import SshKey
from tests.lab.metal_api.harness import IDENTITY, PUBLIC_KEY, World, world


@contextmanager
def served(directory: Path) -> Generator[tuple[str, World], None, None]:
    """The API on a loopback port, in a thread with a loop of its own: the client blocks."""
    ready, found = threading.Event(), dict[str, Any]()

    async def serve() -> None:
        async with world(directory) as lab:
            sock = wire.listen("127.0.0.1", 0)
            server = wire.server(api(lab.account, lab.provisioner, lab.store), certificate=None)
            found.update(port=sock.getsockname()[1], lab=lab, server=server)
            lab.loop = asyncio.get_running_loop()
            task = await server.begin(sock)
            ready.set()
            await task

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        assert ready.wait(10)
        yield f"http://127.0.0.1:{found['port']}/metal/v1", found["lab"]
    finally:
        found["server"].should_exit = True
        thread.join()


@contextmanager
def connected(directory: Path) -> Generator[tuple[Any, Any, World], None, None]:
    """The client's module, a client, and the world that it talks to."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the generated client is not free of deprecated calls
        metal: Any = importlib.import_module("equinix_metal")
        with served(directory) as (url, lab):
            yield metal, metal.ApiClient(metal.Configuration(host=url, api_key={"x_auth_token": IDENTITY.token})), lab


def ordered(metal: Any, devices: Any) -> Any:
    """A device."""
    order = metal.DeviceCreateInMetroInput(
        metro="lb",
        plan="c3.small.x86",
        operating_system="custom_ipxe",
        hostname="node",
        ipxe_script_url="http://boot.facility.test/boot.ipxe",
        tags=["metal-ipi"],
    )
    return devices.create_device(IDENTITY.project_id, metal.CreateDeviceRequest(actual_instance=order))


def test_the_official_client(tmp_path: Path) -> None:
    with connected(tmp_path) as (metal, client, lab):
        devices, keys = metal.DevicesApi(client), metal.SSHKeysApi(client)
        project = metal.ProjectsApi(client).find_project_by_id(IDENTITY.project_id)
        assert project.name == "lab"
        key = keys.create_project_ssh_key(IDENTITY.project_id, metal.SSHKeyCreateInput(label="k", key=PUBLIC_KEY))
        device = ordered(metal, devices)
        shown = devices.find_device_by_id(device.id, include=["project", "facility"])
        assert (shown.hostname, shown.facility.code) == ("node", "lab1")
        assert shown.ip_addresses[0].address == "198.51.100.1"
        listed = devices.find_project_devices(IDENTITY.project_id, tag="metal-ipi")
        assert [entry.id for entry in listed.devices] == [device.id]
        assert metal.EventsApi(client).find_device_events(device.id) is not None
        devices.delete_device(device.id, force_delete=True)
        keys.delete_ssh_key(key.id)
        assert not lab.account.table(SshKey)


def test_the_official_client_has_a_device_reinstalled(tmp_path: Path) -> None:
    with connected(tmp_path) as (metal, client, lab):
        devices = metal.DevicesApi(client)
        device = ordered(metal, devices)
        assert (device.always_pxe, device.ipxe_script_url) == (False, "http://boot.facility.test/boot.ipxe")
        drives = device.plan.specs.drives
        assert [(drive.count, drive.size, drive.type, drive.category) for drive in drives] == [
            (1, "240GB", "SSD", "boot"),
            (1, "480GB", "SSD", "storage"),
        ]
        for _ in range(1000):
            if devices.find_device_by_id(device.id).state == "provisioning":
                break
        lab.inside(lambda: lab.provisioner.script_served(lab.devices[device.id]))
        url = "http://boot.facility.test/again.ipxe"
        changed = devices.update_device(device.id, metal.DeviceUpdateInput(ipxe_script_url=url, userdata="{}"))
        assert (changed.ipxe_script_url, changed.userdata) == (url, "{}")
        offered = {action.type for action in devices.find_device_by_id(device.id).actions}
        assert "reinstall" in offered
        asked = metal.DeviceActionInput(type="reinstall", preserve_data=True, deprovision_fast=True)
        devices.perform_action(device.id, asked)
        assert devices.find_device_by_id(device.id).state == "reinstalling"


def test_the_official_client_speaks_of_addresses_and_bgp(tmp_path: Path) -> None:
    with connected(tmp_path) as (metal, client, lab):
        devices, ips, bgp = metal.DevicesApi(client), metal.IPAddressesApi(client), metal.BGPApi(client)
        device = ordered(metal, devices)
        assert bgp.find_bgp_config_by_project(IDENTITY.project_id).id is None
        wanted = metal.BgpConfigRequestInput(deployment_type="local", asn=65000, md5="Secret1234")
        bgp.request_bgp_config(IDENTITY.project_id, wanted)
        config = bgp.find_bgp_config_by_project(IDENTITY.project_id)
        assert (config.asn, config.md5, config.status, config.max_prefix) == (65000, "Secret1234", "enabled", 10)

        request = metal.IPReservationRequestInput(type="public_ipv4", quantity=2, metro="lb", tags=["api"])
        asked = metal.RequestIPReservationRequest(actual_instance=request)
        block = ips.request_ip_reservation(IDENTITY.project_id, asked).actual_instance
        assert (block.network, block.cidr, block.state, block.tags) == ("192.0.2.128", 31, "created", ["api"])
        listed = ips.find_ip_reservations(IDENTITY.project_id, types=["public_ipv4"])
        assert [entry.actual_instance.id for entry in listed.ip_addresses][-1] == block.id
        changed = ips.update_ip_address(block.id, ip_assignment_update_input=metal.IPAssignmentUpdateInput(tags=["x"]))
        assert changed.actual_instance.tags == ["x"]
        assigned = devices.create_ip_assignment(device.id, metal.IPAssignmentInput(address="192.0.2.129/32"))
        assert assigned.assigned_to.href.endswith(device.id)
        assert assigned.parent_block.href.endswith(block.id)
        assert devices.find_device_by_id(device.id).ip_addresses[-1].address == "192.0.2.129"
        ips.delete_ip_address(assigned.id)

        session = devices.create_bgp_session(device.id, metal.BGPSessionInput(address_family="ipv4"))
        assert (session.status, session.default_route) == ("unknown,unknown", False)
        assert bgp.find_bgp_session_by_id(session.id).device.href.endswith(device.id)
        assert [entry.id for entry in devices.find_bgp_sessions(device.id).bgp_sessions] == [session.id]
        assert [entry.id for entry in bgp.find_project_bgp_sessions(IDENTITY.project_id).bgp_sessions] == [session.id]
        (neighbor,) = devices.get_bgp_neighbor_data(device.id).bgp_neighbors
        assert (neighbor.customer_as, neighbor.customer_ip, neighbor.md5_password) == (
            65000,
            "203.0.113.1",
            "Secret1234",
        )
        assert (neighbor.peer_as, neighbor.peer_ips) == (65530, ["169.254.255.1", "169.254.255.2"])
        assert [entry.route for entry in neighbor.routes_in] == ["192.0.2.128/31"]
        bgp.delete_bgp_session(session.id)
        ips.delete_ip_address(block.id)
        assert not lab.account.table(BgpSession)
        assert not lab.account.table(Reservation)


def test_the_official_client_manages_a_project(tmp_path: Path) -> None:
    with connected(tmp_path) as (metal, client, lab):
        projects = metal.ProjectsApi(client)
        wanted = metal.ProjectCreateFromRootInput(name="p", customdata={"a": [1]}, tags=["t"])
        made = projects.create_project(wanted)
        assert (made.name, made.tags, made.type) == ("p", ["t"], "default")
        assert [each.id for each in projects.find_projects(name="p").projects] == [made.id]
        assert {each.name for each in projects.find_projects_all_pages(per_page=1).projects} == {"lab", "p"}
        assert projects.update_project(made.id, metal.ProjectUpdateInput(name="q", tags=[])).tags == []
        with pytest.raises(metal.exceptions.ApiException, match="can't be blank"):
            projects.update_project(made.id, metal.ProjectUpdateInput(name=" "))
        projects.delete_project(made.id)
        assert list(lab.account.table(Project)) == [IDENTITY.project_id]


def test_the_official_client_manages_keys_of_devices(tmp_path: Path) -> None:
    with connected(tmp_path) as (metal, client, lab):
        keys, devices = metal.SSHKeysApi(client), metal.DevicesApi(client)
        device = ordered(metal, devices)
        wanted = metal.SSHKeyCreateInput(label="late", key=PUBLIC_KEY, instances_ids=[device.id])
        key = keys.create_project_ssh_key(IDENTITY.project_id, wanted)
        assert [each.href.rpartition("/")[2] for each in devices.find_device_by_id(device.id).ssh_keys] == [key.id]
        assert [each.label for each in keys.find_project_ssh_keys(IDENTITY.project_id, query="LATE").ssh_keys] == [
            "late"
        ]
        assert keys.find_project_ssh_keys(IDENTITY.project_id, query="nothing like it").ssh_keys == []
        assert keys.update_ssh_key(key.id, metal.SSHKeyInput(label="m", tags=["t"])).tags == ["t"]
        assert keys.find_ssh_key_by_id(key.id).entity.href == f"/metal/v1/projects/{IDENTITY.project_id}"
        keys.delete_ssh_key(key.id)
        assert not lab.account.table(SshKey)


def test_the_official_client_reads_the_catalogue(tmp_path: Path) -> None:
    with connected(tmp_path) as (metal, client, _lab):
        metros, capacity = metal.MetrosApi(client), metal.CapacityApi(client)
        assert next(metro for metro in metros.find_metros().metros if metro.code == "da").name == "Dallas"
        facilities = metal.FacilitiesApi(client)
        codes = {each.code for each in facilities.find_facilities().facilities if each.metro.code == "da"}
        assert codes == {"da6", "da11"}
        systems = metal.OperatingSystemsApi(client).find_operating_systems().operating_systems
        assert all("c3.small.x86" in system.provisionable_on for system in systems)
        (plan,) = metal.PlansApi(client).find_plans(slug="c3.medium.x86").plans
        assert (plan.pricing, plan.deployment_types) == (
            {"hour": 1.5},
            ["on_demand", "spot_market"],
        )
        wanted = metal.CapacityInput(servers=[metal.ServerInfo(metro="da", plan="c3.medium.x86", quantity="2")])
        assert capacity.check_capacity_for_metro(wanted).servers[0].available is True
        control = client.configuration.host.replace("/metal/v1", "/lab/capacity")
        for facility, servers in (("da6", 1), ("da11", 0)):
            told = {"facility": facility, "plan": "c3.medium.x86", "servers": servers}
            httpx.put(control, json=told, headers={"X-Auth-Token": IDENTITY.token}).raise_for_status()
        assert capacity.check_capacity_for_metro(wanted).servers[0].available is False
