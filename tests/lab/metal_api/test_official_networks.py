"""The official Python client, unchanged: networks, reserved hardware and the spot market."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.lab.metal_api.harness import IDENTITY
from tests.lab.metal_api.test_official_client import connected, ordered

PROJECT = IDENTITY.project_id


def control(client: Any, path: str, body: dict[str, Any]) -> Any:
    """Ask one of the lab's own routes."""
    url = client.configuration.host.replace("/metal/v1", "/lab")
    answer = httpx.post(f"{url}/{path}", json=body, headers={"X-Auth-Token": IDENTITY.token})
    assert answer.is_success, answer.text
    return answer.json()


def vlan(metal: Any, client: Any, **fields: Any) -> Any:
    """A VLAN."""
    wanted = metal.VirtualNetworkCreateInput(metro="lb", **fields)
    return metal.VLANsApi(client).create_virtual_network(PROJECT, wanted)


def test_vlans(tmp_path: Path) -> None:
    with connected(tmp_path) as (metal, client, _):
        vlans = metal.VLANsApi(client)
        network = vlan(metal, client, description="storage", vxlan=1999, tags=["a"])
        assert (network.vxlan, network.metro_code, network.assigned_to_virtual_circuit) == (1999, "lb", False)
        changed = vlans.update_virtual_network(network.id, metal.VirtualNetworkUpdateInput(tags=["b"]))
        assert (changed.tags, changed.description) == (["b"], "storage")
        listed = vlans.find_virtual_networks(PROJECT, include=["assigned_to"], metro="lb").virtual_networks
        assert [(entry.id, entry.assigned_to.name) for entry in listed] == [(network.id, "lab")]
        vlans.delete_virtual_network(network.id)
        with pytest.raises(metal.exceptions.NotFoundException):
            vlans.get_virtual_network(network.id)


def test_ports_to_layer_2_and_back(tmp_path: Path) -> None:
    with connected(tmp_path) as (metal, client, lab):
        ports, devices = metal.PortsApi(client), metal.DevicesApi(client)
        device, network = ordered(metal, devices), vlan(metal, client)
        bond, first, second = device.network_ports
        assert (bond.name, bond.type, bond.network_type, bond.data.bonded) == (
            "bond0",
            "NetworkBondPort",
            "layer3",
            True,
        )
        assert (first.bond.id, first.data.mac != second.data.mac) == (bond.id, True)
        assert ports.assign_port(bond.id, metal.PortAssignInput(vnid=network.id)).network_type == "hybrid-bonded"
        (entry,) = ports.find_port_vlan_assignments(bond.id).vlan_assignments
        assert (entry.vlan, entry.state, entry.native) == (1000, "assigned", False)
        again = ports.find_port_vlan_assignment_by_port_id_and_assignment_id(bond.id, entry.id)
        assert again.virtual_network.href.endswith(network.id)
        shown = ports.find_port_by_id(bond.id, include=["virtual_networks"])
        assert [each.vxlan for each in shown.virtual_networks] == [1000]
        assert ports.unassign_port(bond.id, metal.PortAssignInput(vnid="1000")).network_type == "layer3"
        assert ports.convert_layer2(bond.id, metal.PortAssignInput()).network_type == "layer2-bonded"
        assert devices.find_device_by_id(device.id).ip_addresses == []
        assert ports.disbond_port(bond.id, bulk_disable=True).network_type == "layer2-individual"
        other = vlan(metal, client)
        for each in (network, other):
            ports.assign_port(second.id, metal.PortAssignInput(vnid=each.id))
        assert ports.assign_native_vlan(second.id, "1001").native_virtual_network.href.endswith(other.id)
        assert ports.delete_native_vlan(second.id).native_virtual_network is None
        removal = [
            metal.PortVlanAssignmentBatchCreateInputVlanAssignmentsInner(vlan=number, state="unassigned")
            for number in ("1000", "1001")
        ]
        wanted = metal.PortVlanAssignmentBatchCreateInput(vlan_assignments=removal)
        batch = ports.create_port_vlan_assignment_batch(second.id, wanted)
        assert (batch.state, batch.quantity) == ("queued", 2)
        lab.elapse(5)
        done = ports.find_port_vlan_assignment_batch_by_port_id_and_batch_id(second.id, batch.id)
        assert (done.state, done.error_messages) == ("completed", [])
        assert len(ports.find_port_vlan_assignment_batches(second.id).batches) == 1
        assert ports.bond_port(bond.id, bulk_enable=True).network_type == "layer2-bonded"
        asked = [
            metal.PortConvertLayer3InputRequestIpsInner(address_family=4, public=public) for public in (True, False)
        ]
        back = ports.convert_layer3(bond.id, port_convert_layer3_input=metal.PortConvertLayer3Input(request_ips=asked))
        assert back.network_type == "layer3"
        addresses = devices.find_device_by_id(device.id).ip_addresses
        assert [entry.address for entry in addresses] == [entry.address for entry in device.ip_addresses]


def test_gateways(tmp_path: Path) -> None:
    with connected(tmp_path) as (metal, client, lab):
        gateways, ips = metal.MetalGatewaysApi(client), metal.IPAddressesApi(client)
        network = vlan(metal, client)
        wanted = metal.MetalGatewayCreateInput(virtual_network_id=network.id, private_ipv4_subnet_size=16)
        made = gateways.create_metal_gateway(PROJECT, metal.CreateMetalGatewayRequest(actual_instance=wanted))
        gateway = made.actual_instance
        assert (gateway.state, gateway.ip_reservation.cidr, gateway.ip_reservation.type) == (
            "ready",
            28,
            "private_ipv4",
        )
        listed = gateways.find_metal_gateways_by_project(PROJECT, include=["virtual_network"]).metal_gateways
        assert [entry.actual_instance.virtual_network.vxlan for entry in listed] == [1000]
        shown = metal.VLANsApi(client).get_virtual_network(network.id)
        assert [entry.gateway_address for entry in shown.metal_gateways] == ["10.64.0.1/28"]
        request = metal.IPReservationRequestInput(type="public_ipv4", quantity=1, metro="lb")
        block = ips.request_ip_reservation(PROJECT, metal.RequestIPReservationRequest(actual_instance=request))
        address = f"{block.actual_instance.address}/32"
        elastic = metal.MetalGatewayElasticIpCreateInput(address=address, next_hop="10.64.0.2")
        entry = gateways.create_metal_gateway_elastic_ip(gateway.id, elastic)
        assert (entry.next_hop, entry.state) == ("10.64.0.2", "active")
        assert [each.id for each in gateways.get_metal_gateway_elastic_ips(gateway.id).ip_addresses] == [entry.id]
        assert gateways.delete_metal_gateway(gateway.id).actual_instance.state == "deleting"
        lab.elapse(5)
        with pytest.raises(metal.exceptions.NotFoundException):
            gateways.find_metal_gateway_by_id(gateway.id)
        ips.delete_ip_address(block.actual_instance.id)
        metal.VLANsApi(client).delete_virtual_network(network.id)


def test_hardware_reservations(tmp_path: Path) -> None:
    with connected(tmp_path) as (metal, client, _):
        reservations, devices = metal.HardwareReservationsApi(client), metal.DevicesApi(client)
        sold = {"plan": "c3.small.x86", "facility": "lab1"}
        spare = control(client, "hardware-reservations", {**sold, "spare": True})["hardware_reservations"][0]["id"]
        note = metal.ActivateHardwareReservationRequest(description="in place of a broken one")
        activated = reservations.activate_hardware_reservation(spare, activate_hardware_reservation_request=note)
        assert (activated.spare, activated.provisionable) == (False, True)
        order = metal.DeviceCreateInMetroInput(
            metro="lb",
            plan="c3.small.x86",
            operating_system="custom_ipxe",
            ipxe_script_url="http://boot.facility.test/boot.ipxe",
            hardware_reservation_id="next-available",
        )
        device = devices.create_device(PROJECT, metal.CreateDeviceRequest(actual_instance=order))
        shown = reservations.find_hardware_reservation_by_id(spare, include=["device", "project"])
        assert (shown.device.id, shown.provisionable, shown.project.name) == (device.id, False, "lab")
        free = reservations.find_project_hardware_reservations(PROJECT, provisionable="only")
        assert free.hardware_reservations == []
        devices.delete_device(device.id)
        for _ in range(1000):
            if reservations.find_hardware_reservation_by_id(spare).provisionable:
                break
        project = metal.ProjectsApi(client).create_project(metal.ProjectCreateFromRootInput(name="other"))
        target = metal.MoveHardwareReservationRequest(project_id=project.id)
        moved = reservations.move_hardware_reservation(spare, target, include=["project"])
        assert moved.project.name == "other"


def test_the_spot_market(tmp_path: Path) -> None:
    with connected(tmp_path) as (metal, client, lab):
        market, devices = metal.SpotMarketApi(client), metal.DevicesApi(client)
        prices = market.find_metro_spot_market_prices(metro="da", plan="c3.small.x86").spot_market_prices
        assert list(prices.to_dict()) == ["da"], "the client knows no plans of this decade"
        assert market.find_spot_market_prices(plan="c3.small.x86").spot_market_prices is not None
        history = market.find_spot_market_prices_history("lab1", "c3.small.x86", "1767222000", "1767225600")
        assert len(history.prices_history.datapoints) == 2
        parameters = metal.SpotMarketRequestCreateInputInstanceParameters(
            plan="c3.small.x86", operating_system="custom_ipxe", userdata="#!ipxe\nboot", hostname="spot"
        )
        wanted = metal.SpotMarketRequestCreateInput(
            devices_min=1, devices_max=1, max_bid_price=0.2, metro="lb", instance_parameters=parameters
        )
        request = market.create_spot_market_request(PROJECT, wanted)
        assert (request.devices_max, request.max_bid_price, request.metro.code) == (1, 0.2, "lb")
        (device,) = devices.find_project_devices(PROJECT, type="spot").devices
        assert (device.hostname, device.spot_instance, device.spot_price_max) == ("spot", True, 0.2)
        control(client, "spot-prices", {"metro": "lb", "plan": "c3.small.x86", "price": 0.3})
        assert devices.find_device_by_id(device.id).termination_time is not None
        lab.elapse(121)
        for _ in range(1000):
            if not devices.find_project_devices(PROJECT).devices:
                break
        assert market.find_spot_market_request_by_id(request.id, include=["project"]).project.href.endswith(PROJECT)
        assert len(market.list_spot_market_requests(PROJECT).spot_market_requests) == 1
        market.delete_spot_market_request(request.id, force_termination=True)
        assert market.list_spot_market_requests(PROJECT).spot_market_requests == []
