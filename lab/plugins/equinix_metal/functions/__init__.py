"""The functions of the plug-in, Terraform's data sources: what is there, without making or keeping anything.

base            arguments, results, secrets
places          metros, facilities, operating systems, spot market prices
accounts        organizations, projects, SSH keys
machines        devices, ports, hardware reservations, spot market requests
bgp_neighbors   whom a device may announce addresses to
networks        blocks of addresses, virtual networks, gateways, connections, virtual circuits
"""

from collections.abc import Mapping

from lab.plugins.equinix_metal.functions import accounts, bgp_neighbors, machines, networks, places
from lab.plugins.equinix_metal.functions.base import Function

_NAMED = {
    "getConnection": networks.CONNECTION,
    "getDevice": machines.DEVICE,
    "getDeviceBgpNeighbors": bgp_neighbors.BGP_NEIGHBORS,
    "getFacility": places.FACILITY,
    "getGateway": networks.GATEWAY,
    "getHardwareReservation": machines.HARDWARE_RESERVATION,
    "getIpBlockRanges": networks.IP_BLOCK_RANGES,
    "getMetro": places.METRO,
    "getOperatingSystem": places.OPERATING_SYSTEM,
    "getOrganization": accounts.ORGANIZATION,
    "getPort": machines.PORT,
    "getPrecreatedIpBlock": networks.PRECREATED_IP_BLOCK,
    "getProject": accounts.PROJECT,
    "getProjectSshKey": accounts.PROJECT_SSH_KEY,
    "getReservedIpBlock": networks.RESERVED_IP_BLOCK,
    "getSpotMarketPrice": places.SPOT_MARKET_PRICE,
    "getSpotMarketRequest": machines.SPOT_MARKET_REQUEST,
    "getVirtualCircuit": networks.VIRTUAL_CIRCUIT,
    "getVlan": networks.VLAN,
}

FUNCTIONS: Mapping[str, Function] = {f"equinix-metal:index/{name}:{name}": found for name, found in _NAMED.items()}
"""By their tokens."""
