"""The official Python client, unchanged, over a real socket."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Generator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from tests.lab.metal_api.harness import IDENTITY, PUBLIC_KEY, served

pytestmark = pytest.mark.servers

PROJECT = IDENTITY.project_id
URL = "http://boot.facility.test/boot.ipxe"


@pytest.fixture
def it(tmp_path: Path) -> Generator[Any, None, None]:
    """The client's module `metal`, its APIs, and the world that they talk to: `lab`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the generated client is not free of deprecated calls
        metal: Any = importlib.import_module("equinix_metal")
        with served(tmp_path) as (url, lab):
            client = metal.ApiClient(metal.Configuration(host=url, api_key={"x_auth_token": IDENTITY.token}))
            names = ("BGP", "Capacity", "Devices", "Events", "Facilities", "HardwareReservations", "IPAddresses")
            names += ("MetalGateways", "Metros", "OperatingSystems", "Plans", "Ports", "Projects", "SSHKeys")
            names += ("SpotMarket", "VLANs")
            apis = {name: getattr(metal, f"{name}Api")(client) for name in names}
            yield SimpleNamespace(metal=metal, lab=lab, url=url, **apis)


def ordered(it: Any, **fields: Any) -> Any:
    """A device."""
    order = it.metal.DeviceCreateInMetroInput(
        metro="lb",
        plan="c3.small.x86",
        operating_system="custom_ipxe",
        hostname="node",
        ipxe_script_url=URL,
        tags=["metal-ipi"],
        **fields,
    )
    return it.Devices.create_device(PROJECT, it.metal.CreateDeviceRequest(actual_instance=order))


def control(it: Any, method: str, path: str, body: dict[str, Any]) -> Any:
    """Ask one of the lab's own routes."""
    url = it.url.replace("/metal/v1", "/lab")
    answer = httpx.request(method, f"{url}/{path}", json=body, headers={"X-Auth-Token": IDENTITY.token}, verify=False)
    assert answer.is_success, answer.text
    return answer.json()


def soon(condition: Callable[[], bool]) -> None:
    """Ask many times until something holds."""
    assert any(condition() for _ in range(1000))


def test_projects_and_keys(it: Any) -> None:
    assert it.Projects.find_project_by_id(PROJECT).name == "lab"
    made = it.Projects.create_project(it.metal.ProjectCreateFromRootInput(name="p", customdata={"a": [1]}, tags=["t"]))
    assert (made.name, made.tags, made.type) == ("p", ["t"], "default")
    assert made.id in [each.id for each in it.Projects.find_projects().projects]
    assert {each.name for each in it.Projects.find_projects_all_pages(per_page=1).projects} == {"lab", "p"}
    assert it.Projects.update_project(made.id, it.metal.ProjectUpdateInput(name="q", tags=[])).tags == []
    with pytest.raises(it.metal.exceptions.ApiException, match="can't be blank"):
        it.Projects.update_project(made.id, it.metal.ProjectUpdateInput(name=" "))
    it.Projects.delete_project(made.id)
    assert [each.name for each in it.Projects.find_projects().projects] == ["lab"]
    key = it.SSHKeys.create_project_ssh_key(PROJECT, it.metal.SSHKeyCreateInput(label="k", key=PUBLIC_KEY))
    assert it.SSHKeys.update_ssh_key(key.id, it.metal.SSHKeyInput(label="m", tags=["t"])).tags == ["t"]
    assert it.SSHKeys.find_ssh_key_by_id(key.id).entity.href == f"/metal/v1/projects/{PROJECT}"
    it.SSHKeys.delete_ssh_key(key.id)
    assert it.SSHKeys.find_project_ssh_keys(PROJECT).ssh_keys == []


def test_a_device_is_ordered_reinstalled_and_released(it: Any) -> None:
    key = it.SSHKeys.create_project_ssh_key(PROJECT, it.metal.SSHKeyCreateInput(label="k", key=PUBLIC_KEY))
    device = ordered(it)
    assert (device.always_pxe, device.ipxe_script_url) == (False, URL)
    assert [each.href.rpartition("/")[2] for each in device.ssh_keys] == [key.id]
    drives = [(drive.count, drive.size, drive.type, drive.category) for drive in device.plan.specs.drives]
    assert drives == [(1, "240GB", "SSD", "boot"), (1, "480GB", "SSD", "storage")]
    shown = it.Devices.find_device_by_id(device.id, include=["project", "facility"])
    assert (shown.hostname, shown.facility.code, shown.ip_addresses[0].address) == ("node", "lab1", "198.51.100.1")
    listed = it.Devices.find_project_devices(PROJECT, tag="metal-ipi").devices
    assert [entry.id for entry in listed] == [device.id]
    soon(lambda: it.Devices.find_device_by_id(device.id).state == "provisioning")
    it.lab.inside(lambda: it.lab.provisioner.script_served(it.lab.devices[device.id]))
    change = it.metal.DeviceUpdateInput(ipxe_script_url=f"{URL}?again", userdata="{}")
    changed = it.Devices.update_device(device.id, change)
    assert (changed.ipxe_script_url, changed.userdata) == (f"{URL}?again", "{}")
    assert "reinstall" in {action.type for action in changed.actions}
    asked = it.metal.DeviceActionInput(type="reinstall", preserve_data=True, deprovision_fast=True)
    it.Devices.perform_action(device.id, asked)
    assert it.Devices.find_device_by_id(device.id).state == "reinstalling"
    assert it.Events.find_device_events(device.id).events[0].type == "instance.reinstalling"
    it.Devices.delete_device(device.id, force_delete=True)
    soon(lambda: not it.Devices.find_project_devices(PROJECT).devices)


def test_addresses_and_bgp(it: Any) -> None:
    device = ordered(it)
    assert it.BGP.find_bgp_config_by_project(PROJECT).id is None
    wanted = it.metal.BgpConfigRequestInput(deployment_type="local", asn=65000, md5="Secret1234")
    it.BGP.request_bgp_config(PROJECT, wanted)
    config = it.BGP.find_bgp_config_by_project(PROJECT)
    assert (config.asn, config.md5, config.status, config.max_prefix) == (65000, "Secret1234", "enabled", 10)
    request = it.metal.IPReservationRequestInput(type="public_ipv4", quantity=2, metro="lb", tags=["api"])
    asked = it.metal.RequestIPReservationRequest(actual_instance=request)
    block = it.IPAddresses.request_ip_reservation(PROJECT, asked).actual_instance
    assert (block.network, block.cidr, block.state, block.tags) == ("192.0.2.128", 31, "created", ["api"])
    listed = it.IPAddresses.find_ip_reservations(PROJECT).ip_addresses
    assert [entry.actual_instance.id for entry in listed][-1] == block.id
    session = it.Devices.create_bgp_session(device.id, it.metal.BGPSessionInput(address_family="ipv4"))
    assert (session.status, session.default_route) == ("unknown,unknown", False)
    assert it.BGP.find_bgp_session_by_id(session.id).device.href.endswith(device.id)
    assert [entry.id for entry in it.Devices.find_bgp_sessions(device.id).bgp_sessions] == [session.id]
    assert [entry.id for entry in it.BGP.find_project_bgp_sessions(PROJECT).bgp_sessions] == [session.id]
    (neighbor,) = it.Devices.get_bgp_neighbor_data(device.id).bgp_neighbors
    us = (neighbor.customer_as, neighbor.customer_ip, neighbor.md5_password)
    assert us == (65000, "203.0.113.1", "Secret1234")
    assert (neighbor.peer_as, neighbor.peer_ips) == (65530, ["169.254.255.1", "169.254.255.2"])
    assert [entry.route for entry in neighbor.routes_in] == ["192.0.2.128/31"]
    it.BGP.delete_bgp_session(session.id)
    it.IPAddresses.delete_ip_address(block.id)
    assert it.Devices.find_bgp_sessions(device.id).bgp_sessions == []


def test_the_catalogue(it: Any) -> None:
    assert next(metro for metro in it.Metros.find_metros().metros if metro.code == "da").name == "Dallas"
    codes = {each.code for each in it.Facilities.find_facilities().facilities if each.metro.code == "da"}
    assert codes == {"da6", "da11"}
    systems = it.OperatingSystems.find_operating_systems().operating_systems
    assert all("c3.small.x86" in system.provisionable_on for system in systems)
    plan = next(plan for plan in it.Plans.find_plans().plans if plan.slug == "c3.medium.x86")
    assert (plan.pricing, plan.deployment_types) == ({"hour": 1.5}, ["on_demand", "spot_market"])
    wanted = it.metal.CapacityInput(servers=[it.metal.ServerInfo(metro="da", plan="c3.medium.x86", quantity="3")])
    assert it.Capacity.check_capacity_for_metro(wanted).servers[0].available is True
    control(it, "PUT", "capacity", {"metro": "da", "plan": "c3.medium.x86", "servers": 1})
    assert it.Capacity.check_capacity_for_metro(wanted).servers[0].available is False


def test_vlans_bonds_and_gateways(it: Any) -> None:
    wanted = it.metal.VirtualNetworkCreateInput(metro="lb", description="storage", vxlan=1999, tags=["a"])
    network = it.VLANs.create_virtual_network(PROJECT, wanted)
    assert (network.vxlan, network.metro_code, network.assigned_to_virtual_circuit) == (1999, "lb", False)
    assert (network.tags, network.description) == (["a"], "storage")
    listed = it.VLANs.find_virtual_networks(PROJECT, include=["assigned_to"]).virtual_networks
    assert [(entry.id, entry.assigned_to.name) for entry in listed] == [(network.id, "lab")]
    bond, first, second = ordered(it).network_ports
    shape = (bond.name, bond.type, bond.network_type, bond.data.bonded)
    assert shape == ("bond0", "NetworkBondPort", "layer3", True)
    assert (first.bond.id, first.data.mac != second.data.mac) == (bond.id, True)
    change = it.metal.PortVlanAssignmentBatchCreateInputVlanAssignmentsInner(vlan="1999", state="assigned")
    batch = it.Ports.create_port_vlan_assignment_batch(
        bond.id, it.metal.PortVlanAssignmentBatchCreateInput(vlan_assignments=[change])
    )
    it.lab.elapse(1)
    found = it.Ports.find_port_vlan_assignment_batch_by_port_id_and_batch_id(bond.id, batch.id)
    assert (found.state, found.quantity) == ("completed", 1)
    shown = it.Ports.find_port_by_id(bond.id, include=["virtual_networks"])
    assert [each.vxlan for each in shown.virtual_networks] == [1999]
    gateways = it.MetalGateways
    wanted = it.metal.MetalGatewayCreateInput(virtual_network_id=network.id, private_ipv4_subnet_size=16)
    made = gateways.create_metal_gateway(PROJECT, it.metal.CreateMetalGatewayRequest(actual_instance=wanted))
    gateway = made.actual_instance
    block = gateway.ip_reservation
    assert (gateway.state, block.cidr, block.type) == ("active", 28, "private_ipv4")
    listed = gateways.find_metal_gateways_by_project(PROJECT, include=["virtual_network"]).metal_gateways
    assert [entry.actual_instance.virtual_network.vxlan for entry in listed] == [1999]
    shown = it.VLANs.get_virtual_network(network.id)
    assert [entry.gateway_address for entry in shown.metal_gateways] == ["10.64.0.1/28"]
    assert it.Ports.unassign_port(bond.id, it.metal.PortAssignInput(vnid="1999")).network_type == "layer3"
    assert gateways.delete_metal_gateway(gateway.id).actual_instance.state == "deleting"
    it.lab.elapse(5)
    with pytest.raises(it.metal.exceptions.NotFoundException):
        gateways.find_metal_gateway_by_id(gateway.id)
    it.VLANs.delete_virtual_network(network.id)
    with pytest.raises(it.metal.exceptions.NotFoundException):
        it.VLANs.get_virtual_network(network.id)


def test_hardware_reservations(it: Any) -> None:
    made = control(it, "POST", "hardware-reservations", {"plan": "c3.small.x86", "facility": "lab1"})
    device = ordered(it, hardware_reservation_id="next-available")
    reservations = it.HardwareReservations
    shown = reservations.find_hardware_reservation_by_id(made["id"], include=["device", "project"])
    assert (shown.device.id, shown.provisionable, shown.project.name) == (device.id, False, "lab")
    it.Devices.delete_device(device.id)
    soon(lambda: reservations.find_hardware_reservation_by_id(made["id"]).provisionable)
    assert len(reservations.find_project_hardware_reservations(PROJECT).hardware_reservations) == 1


def test_the_spot_market(it: Any) -> None:
    market = it.SpotMarket
    prices = market.find_metro_spot_market_prices(metro="da", plan="c3.small.x86").spot_market_prices
    assert list(prices.to_dict()) == ["da"], "the client knows no plans of this decade"
    assert market.find_spot_market_prices(plan="c3.small.x86").spot_market_prices is not None
    parameters = it.metal.SpotMarketRequestCreateInputInstanceParameters(
        plan="c3.small.x86", operating_system="custom_ipxe", userdata="#!ipxe\nboot", hostname="spot"
    )
    wanted = it.metal.SpotMarketRequestCreateInput(
        devices_min=1, devices_max=1, max_bid_price=0.2, metro="lb", instance_parameters=parameters
    )
    request = market.create_spot_market_request(PROJECT, wanted)
    assert (request.devices_max, request.max_bid_price, request.metro.code) == (1, 0.2, "lb")
    (device,) = it.Devices.find_project_devices(PROJECT).devices
    assert (device.hostname, device.spot_instance, device.spot_price_max) == ("spot", True, 0.2)
    shown = market.find_spot_market_request_by_id(request.id, include=["project"])
    assert shown.project.href.endswith(PROJECT)
    assert len(market.list_spot_market_requests(PROJECT).spot_market_requests) == 1
    market.delete_spot_market_request(request.id, force_termination=True)
    assert market.list_spot_market_requests(PROJECT).spot_market_requests == []
    soon(lambda: not it.Devices.find_project_devices(PROJECT).devices)
