"""The resource types, a row for each property: its kind, what a change of it does, its names in the API."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lab.plugins.equinix_metal import documents as read
from lab.plugins.equinix_metal.documents import Document
from lab.plugins.fields import ABSENT, TEXT, Field, Kind
from lab.plugins.values import Json


@dataclass(frozen=True, kw_only=True)
class Property(Field):
    """An input, an output, or both."""

    sent: str = ""
    """Its name in an order. Empty: not sent."""
    encode: Callable[[Json], Json] | None = None
    """Its value in an order, where that is another one."""
    read: str | Callable[[Document], Json] = ""
    """Where the API's document has it, as `object.member`. Empty: the API does not tell; it stays as it was."""
    sparse: bool = False
    """Whether it stays as it was where the document has none; else it is empty."""
    output: bool = False
    """Whether only the API sets it."""
    filled: bool = False
    """Whether the API fills it in: its absence is not a change, and its value not known in a preview."""
    optional: bool = False
    """Whether its absence is not a change."""
    ordered: bool = True
    """Whether the order of a list means anything."""
    spelt: bool = False
    """Whether a refresh leaves it as it was given where the API only spells it differently."""
    same: Callable[[Document, Document], bool] | None = None
    """Whether state and inputs mean the same although they differ."""


@dataclass(frozen=True, kw_only=True)
class Type:
    """A resource type."""

    properties: Mapping[str, Property | Field]
    path: str
    """Where the API has those of its kind, each under its id."""
    orders: str = ""
    """Where one is ordered, with inputs in braces."""
    collection: str = ""
    """The name of the list that is there."""
    include: str = ""
    """What the API is asked to show of others with it."""
    alike: Sequence[str] = ()
    """What tells an order of ours from others', where its answer was lost."""
    marks: Sequence[str] = ()
    """One of these must be given, or nothing tells it from others."""
    title: str = ""
    """How messages call one without a mark."""
    method: str = "PATCH"
    """How it is changed."""
    timeouts: Sequence[str] = ()
    """The operations whose timeouts Terraform keeps with it."""
    sensitive: Sequence[str] = ()
    """Properties that are always secret, members of objects as `object.member`."""

    @property
    def inputs(self) -> Mapping[str, Field]:
        """What a program can give."""
        return {name: it for name, it in self.properties.items() if not (isinstance(it, Property) and it.output)}

    @property
    def own(self) -> Mapping[str, Property]:
        """What the stand-in implements."""
        return {name: it for name, it in self.properties.items() if isinstance(it, Property)}


def _given(sent: str, read: str | Callable[[Document], Json] = "", **more: Any) -> Property:
    return Property(sent=sent, read=read, **more)


def _fixed(sent: str, read: str | Callable[[Document], Json] = "", **more: Any) -> Property:
    return Property(replace=True, sent=sent, read=read, **more)


def output(read: str | Callable[[Document], Json], kind: Kind = "string", **more: Any) -> Property:
    """What only the API sets."""
    return Property(kind=kind, read=read, output=True, **more)


def rows(read: str | Callable[[Document], Json], fields: Mapping[str, Property]) -> Property:
    """A list of objects that only the API sets."""
    return output(read, "list", element=Field(kind="object", fields=fields))


_TEXTS: Mapping[str, Any] = {"kind": "list", "element": TEXT}
_ADDRESS = Field(
    kind="object",
    fields={
        "type": Field(required=True, choices=tuple(read.ADDRESS_TYPES)),
        "cidr": Field(kind="integer"),
        "reservationIds": ABSENT,
    },
)
_PROJECT_ID = _fixed("", read.reference("project"), required=True, sparse=True)
_METRO = _fixed("metro", "metro.code", encode=str.lower, sparse=True, spelt=True, same=read.same_metro)
_DATES: Mapping[str, Property] = {"created": output("created_at"), "updated": output("updated_at")}

DEVICE = Type(
    path="/devices",
    orders="/projects/{projectId}/devices",
    collection="devices",
    include="project,metro,facility,hardware_reservation",
    alike=("hostname", "tags"),
    marks=("hostname",),
    title="a device",
    method="PUT",
    timeouts=("create", "delete", "update"),
    sensitive=("rootPassword", "userData", "customData"),
    properties={
        "projectId": _PROJECT_ID,
        "plan": _fixed("plan", "plan.slug", required=True),
        "operatingSystem": _fixed("operating_system", "operating_system.slug", required=True),
        "hostname": _given("hostname", "hostname", filled=True),
        "description": _given("description"),
        "metro": replace(_METRO, optional=True),
        "facilities": _fixed(
            "facility", read.deployed_facility, **_TEXTS, sparse=True, optional=True, same=read.same_facilities
        ),
        "billingCycle": _fixed("billing_cycle", "billing_cycle", filled=True),
        "userData": _fixed("userdata"),
        "customData": _fixed("customdata"),
        "ipxeScriptUrl": _given("ipxe_script_url", "ipxe_script_url"),
        "alwaysPxe": _given("always_pxe", "always_pxe", kind="boolean", default=False),
        "hardwareReservationId": _fixed("hardware_reservation_id", same=read.same_reservation),
        "tags": _given("tags", "tags", **_TEXTS),
        "projectSshKeyIds": _fixed("project_ssh_keys", **_TEXTS),
        "terminationTime": _given("termination_time"),
        "forceDetachVolumes": Property(kind="boolean", default=False, only=(False,)),
        "waitForReservationDeprovision": Property(kind="boolean", default=False),
        "ipAddresses": _given("ip_addresses", kind="list", element=_ADDRESS, encode=read.address_bodies),
        "storage": ABSENT,
        "reinstall": ABSENT,
        "accessPrivateIpv4": output(read.access_address(4, public=False)),
        "accessPublicIpv4": output(read.access_address(4, public=True)),
        "accessPublicIpv6": output(read.access_address(6, public=True)),
        **_DATES,
        "deployedFacility": output("facility.code"),
        "deployedHardwareReservationId": output(read.reference("hardware_reservation"), sparse=True),
        "locked": output("locked", "boolean"),
        "networkType": output(lambda _: "layer3"),  # of every device of the lab
        "networks": rows(
            read.device_networks,
            {
                "address": output("address"),
                "gateway": output("gateway"),
                "family": output("address_family", "integer"),
                "cidr": output("cidr", "integer"),
                "public": output("public", "boolean"),
            },
        ),
        "ports": rows(
            "network_ports",
            {
                **{name: output(name) for name in ("name", "id", "type")},
                "mac": output("data.mac"),
                "bonded": output("data.bonded", "boolean"),
            },
        ),
        "rootPassword": output("root_password"),
        "sshKeyIds": output(read.ssh_keys, "list"),
        "state": output("state"),
    },
)

PROJECT = Type(
    path="/projects",
    orders="/projects",
    collection="projects",
    alike=("name",),
    sensitive=("bgpConfig.md5",),
    properties={
        "name": _given("name", "name"),
        "organizationId": _fixed(
            "organization_id", read.reference("organization"), filled=True, same=read.same_organization
        ),
        "backendTransfer": Property(kind="boolean", default=False, only=(False,), read="backend_transfer_enabled"),
        "bgpConfig": Property(
            kind="object",
            same=read.same_bgp,
            fields={
                "deploymentType": Property(required=True, choices=("local", "global"), read="deployment_type"),
                "asn": Property(kind="integer", required=True, read="asn"),
                "md5": Property(read="md5"),
                "status": Property(read="status"),
                "maxPrefix": Property(kind="integer", read="max_prefix"),
            },
        ),
        "paymentMethodId": Property(absent=True, filled=True, read=read.reference("payment_method"), sparse=True),
        **_DATES,
    },
)

PROJECT_SSH_KEY = Type(
    path="/ssh-keys",
    orders="/projects/{projectId}/ssh-keys",
    collection="ssh_keys",
    alike=("name", "publicKey"),
    properties={
        "name": _given("label", "label"),
        "publicKey": _fixed("key", "key", required=True),
        "projectId": _fixed("", read.reference("owner"), required=True, sparse=True),
        "fingerprint": output("fingerprint"),
        "ownerId": output(read.reference("owner")),
        **_DATES,
    },
)

RESERVED_IP_BLOCK = Type(
    path="/ips",
    orders="/projects/{projectId}/ips",
    collection="ip_addresses",
    alike=("type", "quantity", "metro", "facility", "description", "tags"),
    marks=("description", "tags"),
    title="a block",
    properties={
        "projectId": _PROJECT_ID,
        "quantity": _fixed("quantity", read.block_size, kind="integer", required=True),
        "type": _fixed("type", "type", default="public_ipv4", only=("public_ipv4",)),
        "metro": _METRO,
        "facility": _fixed("facility", "facility.code", sparse=True, optional=True),
        "description": _fixed("details", "details", sparse=True),
        "tags": _fixed("tags", read.sorted_tags, **_TEXTS, ordered=False),
        **{name: output(name) for name in ("address", "gateway", "netmask", "network")},
        **{name: output(name, "boolean") for name in ("manageable", "management", "public")},
        "addressFamily": output("address_family", "integer"),
        "cidr": output("cidr", "integer"),
        "cidrNotation": output(read.cidr_notation),
        "global": output("global_ip", "boolean"),
    },
)

BGP_SESSION = Type(
    path="/bgp/sessions",
    orders="/devices/{deviceId}/bgp/sessions",
    collection="bgp_sessions",
    include="device",
    alike=("addressFamily",),
    properties={
        "deviceId": _fixed("", read.reference("device"), required=True, sparse=True),
        "addressFamily": _fixed("address_family", "address_family", required=True, choices=("ipv4", "ipv6")),
        "defaultRoute": _fixed("default_route", "default_route", kind="boolean", default=False),
        "status": output("status"),
    },
)

VLAN = Type(
    path="/virtual-networks",
    orders="/projects/{projectId}/virtual-networks",
    collection="virtual_networks",
    include="assigned_to",
    alike=("description", "metro", "facility", "vxlan"),
    marks=("vxlan", "description"),
    title="a virtual network",
    properties={
        "projectId": _fixed("project_id", read.reference("assigned_to"), required=True, sparse=True),
        "description": _fixed("description", "description"),
        "metro": replace(_METRO, read="metro_code", sparse=False),
        "facility": _fixed("facility", "facility_code", optional=True),
        "vxlan": _fixed("vxlan", "vxlan", kind="integer", filled=True),
    },
)

GATEWAY = Type(
    path="/metal-gateways",
    orders="/projects/{projectId}/metal-gateways",
    collection="metal_gateways",
    include="project,ip_reservation,virtual_network",
    alike=("vlanId",),
    properties={
        "projectId": _PROJECT_ID,
        "vlanId": _fixed("virtual_network_id", read.reference("virtual_network"), required=True, sparse=True),
        "privateIpv4SubnetSize": _fixed("private_ipv4_subnet_size", read.subnet_size, kind="integer", required=True),
        "ipReservationId": Property(absent=True, filled=True, read=read.reference("ip_reservation")),
        "state": output("state"),
    },
)

PORT = Type(
    path="/ports",
    include="native_virtual_network,virtual_networks",
    timeouts=("create", "delete", "update"),
    properties={
        "portId": _fixed("", "id", required=True),
        "bonded": Property(kind="boolean", required=True, only=(True,), read="data.bonded"),
        "layer2": Property(kind="boolean", only=(False,), read=read.layer_2, sparse=True),
        "vlanIds": Property(**_TEXTS, ordered=False, read=read.port_networks("id", ""), filled=True),
        "resetOnDelete": Property(kind="boolean"),
        "vxlanIds": Property(kind="list", absent=True, ordered=False, read=read.port_networks("vxlan", 0), filled=True),
        "nativeVlanId": Property(absent=True, read=read.reference("native_virtual_network"), sparse=True),
        "bondId": output("bond.id", sparse=True),
        "bondName": output("bond.name", sparse=True),
        "disbondSupported": output("disbond_operation_supported", "boolean"),
        "mac": output("data.mac"),
        "name": output("name"),
        "networkType": output("network_type"),
        "type": output("type"),
    },
)

SPOT_MARKET_REQUEST = Type(
    path="/spot-market-requests",
    orders="/projects/{projectId}/spot-market-requests",
    collection="spot_market_requests",
    include="project,devices,facilities,metro",
    alike=("devicesMin", "devicesMax", "maxBidPrice"),
    timeouts=("create", "delete"),
    properties={
        "projectId": _PROJECT_ID,
        "devicesMin": _fixed("devices_min", "devices_min", kind="integer", required=True),
        "devicesMax": _fixed("devices_max", "devices_max", kind="integer", required=True),
        "maxBidPrice": _fixed(
            "max_bid_price",
            "max_bid_price",
            kind="number",
            required=True,
            encode=read.whole_cents,
            same=read.same_price,
        ),
        "metro": _METRO,
        "facilities": _fixed("facilities", read.spot_facilities, **_TEXTS, filled=True),
        "waitForDevices": Property(kind="boolean", replace=True, only=(False,)),
        "instanceParameters": _fixed(
            "instance_parameters",
            kind="object",
            required=True,
            fields={
                "hostname": _given("hostname", required=True),
                "plan": _given("plan", required=True),
                "operatingSystem": _given("operating_system", required=True),
                "billingCycle": _given("billing_cycle", required=True),
                "userdata": _given("userdata"),
                "customdata": _given("customdata"),
                "ipxeScriptUrl": _given("ipxe_script_url"),
                "alwaysPxe": _given("always_pxe", kind="boolean", default=False),
                "description": _given("description"),
                "features": _given("features", **_TEXTS),
                "locked": _given("locked", kind="boolean"),
                "projectSshKeys": _given("project_ssh_keys", **_TEXTS),
                "userSshKeys": _given("user_ssh_keys", **_TEXTS),
                "tags": _given("tags", **_TEXTS),
            },
        ),
    },
)

TYPES: Mapping[str, Type] = {
    "BgpSession": BGP_SESSION,
    "Device": DEVICE,
    "Gateway": GATEWAY,
    "Port": PORT,
    "Project": PROJECT,
    "ProjectSshKey": PROJECT_SSH_KEY,
    "ReservedIpBlock": RESERVED_IP_BLOCK,
    "SpotMarketRequest": SPOT_MARKET_REQUEST,
    "Vlan": VLAN,
}
"""By their names."""
