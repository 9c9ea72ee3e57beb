"""What the resource types take. Names, replacement and rules are those of the Terraform provider's schema."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from pulumi.provider.experimental.provider import CheckFailure

from lab.plugins.fields import Field
from lab.plugins.values import UNKNOWN, Json

STRING = Field(kind="string")
REPLACING = Field(kind="string", replace=True)
FLAG = Field(kind="boolean", default=False)

CONFIGURATION: Mapping[str, Field] = {
    "authToken": STRING,
    "maxRetries": Field(kind="any"),
    "maxRetryWaitSeconds": Field(kind="any"),
}
"""Numbers arrive as strings or numbers, depending on how the provider was configured."""

ADDRESS_TYPES = ("public_ipv4", "private_ipv4", "public_ipv6")

DEVICE: Mapping[str, Field] = {
    "projectId": Field(kind="string", required=True, replace=True),
    "plan": Field(kind="string", required=True, replace=True),
    "operatingSystem": Field(kind="string", required=True, replace=True),
    "hostname": STRING,
    "description": STRING,
    "metro": REPLACING,
    "facilities": Field(kind="list", element=STRING, replace=True),
    "billingCycle": REPLACING,
    "userData": STRING,
    "customData": STRING,
    "ipxeScriptUrl": STRING,
    "alwaysPxe": FLAG,
    "hardwareReservationId": REPLACING,
    "tags": Field(kind="list", element=STRING),
    "storage": REPLACING,
    "projectSshKeyIds": Field(kind="list", element=STRING, replace=True),
    "terminationTime": STRING,
    "forceDetachVolumes": FLAG,
    "waitForReservationDeprovision": FLAG,
    "reinstall": Field(kind="object", fields={"enabled": FLAG, "deprovisionFast": FLAG, "preserveData": FLAG}),
    "ipAddresses": Field(
        kind="list",
        element=Field(
            kind="object",
            fields={
                "type": Field(kind="string", required=True, choices=ADDRESS_TYPES),
                "cidr": Field(kind="integer"),
                "reservationIds": Field(kind="list", element=STRING),
            },
        ),
    ),
}

PROJECT: Mapping[str, Field] = {
    "name": STRING,
    "organizationId": REPLACING,
    "paymentMethodId": STRING,
    "backendTransfer": FLAG,
    "bgpConfig": Field(
        kind="object",
        fields={
            "deploymentType": Field(kind="string", required=True, choices=("local", "global")),
            "asn": Field(kind="integer", required=True),
            "md5": STRING,
            "status": STRING,
            "maxPrefix": Field(kind="integer"),
        },
    ),
}

PROJECT_SSH_KEY: Mapping[str, Field] = {
    "name": STRING,
    "publicKey": Field(kind="string", required=True, replace=True),
    "projectId": Field(kind="string", required=True, replace=True),
}

RESERVED_IP_BLOCK: Mapping[str, Field] = {
    "projectId": Field(kind="string", required=True, replace=True),
    "quantity": Field(kind="integer", required=True, replace=True),
    "type": Field(kind="string", replace=True, default="public_ipv4", choices=("public_ipv4", "global_ipv4")),
    "metro": REPLACING,
    "facility": REPLACING,
    "description": REPLACING,
    "tags": Field(kind="list", element=STRING, replace=True),
}


BGP_SESSION: Mapping[str, Field] = {
    "deviceId": Field(kind="string", required=True, replace=True),
    "addressFamily": Field(kind="string", required=True, replace=True, choices=("ipv4", "ipv6")),
    "defaultRoute": Field(kind="boolean", default=False, replace=True),
}


SPOT_MARKET_REQUEST: Mapping[str, Field] = {
    "projectId": Field(kind="string", required=True, replace=True),
    "devicesMin": Field(kind="integer", required=True, replace=True),
    "devicesMax": Field(kind="integer", required=True, replace=True),
    "maxBidPrice": Field(kind="number", required=True, replace=True),
    "metro": REPLACING,
    "facilities": Field(kind="list", element=STRING, replace=True),
    "waitForDevices": Field(kind="boolean", replace=True),
    "instanceParameters": Field(
        kind="object",
        required=True,
        replace=True,
        fields={
            "hostname": Field(kind="string", required=True),
            "plan": Field(kind="string", required=True),
            "operatingSystem": Field(kind="string", required=True),
            "billingCycle": Field(kind="string", required=True),
            "userdata": STRING,
            "customdata": STRING,
            "ipxeScriptUrl": STRING,
            "alwaysPxe": FLAG,
            "description": STRING,
            "features": Field(kind="list", element=STRING),
            "locked": Field(kind="boolean"),
            "projectSshKeys": Field(kind="list", element=STRING),
            "userSshKeys": Field(kind="list", element=STRING),
            "tags": Field(kind="list", element=STRING),
        },
    ),
}

IPXE_SCRIPT = re.compile(r"#!i?pxe", re.IGNORECASE)


def device_rules(inputs: Mapping[str, Json]) -> Iterator[CheckFailure]:
    """What holds between a device's inputs; what a preview does not know yet is given the benefit of the doubt.

    The official plug-in tells most of this only once it is to order the device.
    """
    metro, facilities = inputs.get("metro"), inputs.get("facilities")
    if metro and facilities is not None:
        yield CheckFailure("facilities", "facilities and metro exclude each other: give one of them")
    elif not metro and not facilities:
        yield CheckFailure("metro", "one of metro and facilities is required")
    yield from _boot_rules(inputs, "userData")
    if inputs.get("waitForReservationDeprovision") is True and not inputs.get("hardwareReservationId"):
        yield CheckFailure(
            "waitForReservationDeprovision", "waitForReservationDeprovision is only for a hardware reservation"
        )
    yield from _formats(inputs)


def spot_rules(inputs: Mapping[str, Json]) -> Iterator[CheckFailure]:
    """What holds between the inputs of a spot market request."""
    if inputs.get("metro") and inputs.get("facilities"):
        yield CheckFailure("facilities", "facilities and metro exclude each other: give one of them")
    fewest, most = inputs.get("devicesMin"), inputs.get("devicesMax")
    if isinstance(fewest, float) and isinstance(most, float) and fewest > most:
        yield CheckFailure("devicesMin", f"devicesMin must be at most devicesMax ({int(most)}), not {int(fewest)}")
    parameters = inputs.get("instanceParameters")
    if isinstance(parameters, Mapping):
        yield from _boot_rules(parameters, "userdata", "instanceParameters.")


def _boot_rules(inputs: Mapping[str, Json], data_name: str, within: str = "") -> Iterator[CheckFailure]:
    """What boots over iPXE needs a script, and only one."""
    script, data = inputs.get("ipxeScriptUrl"), inputs.get(data_name)
    url, system = f"{within}ipxeScriptUrl", inputs.get("operatingSystem")
    if system == "custom_ipxe" and not script and not data:
        yield CheckFailure(url, f"operatingSystem custom_ipxe needs {url} or {within}{data_name}")
    if system == "custom_ipxe" and script and isinstance(data, str) and IPXE_SCRIPT.match(data):
        place = f"{within}{data_name}"
        yield CheckFailure(place, f"{place} must not be an iPXE script when {url} is given too")
    if script and system not in ("custom_ipxe", UNKNOWN, None):
        yield CheckFailure(url, f"{url} is only for operatingSystem custom_ipxe, not {system}")


def block_rules(inputs: Mapping[str, Json]) -> Iterator[CheckFailure]:
    """What holds between a block's inputs; the official plug-in tells it only once it is to reserve the block."""
    metro, facility, quantity = inputs.get("metro"), inputs.get("facility"), inputs.get("quantity")
    if metro and facility:
        yield CheckFailure("facility", "facility and metro exclude each other: give one of them")
    elif inputs.get("type") == "global_ipv4" and (metro or facility):
        yield CheckFailure("metro" if metro else "facility", "a block of type global_ipv4 has no metro and no facility")
    elif inputs.get("type") == "public_ipv4" and not (metro or facility):
        yield CheckFailure("metro", "one of metro and facility is required")
    if isinstance(quantity, float) and (quantity < 1 or int(quantity) & (int(quantity) - 1)):
        yield CheckFailure("quantity", f"quantity must be a power of 2, not {int(quantity)}")


def _formats(inputs: Mapping[str, Json]) -> Iterator[CheckFailure]:
    storage = inputs.get("storage")
    if isinstance(storage, str) and storage != UNKNOWN:
        try:
            json.loads(storage)
        except ValueError as error:
            yield CheckFailure("storage", f"storage must be JSON: {error}")
    ends = inputs.get("terminationTime")
    if isinstance(ends, str) and ends not in ("", UNKNOWN):
        try:
            datetime.fromisoformat(ends.replace("Z", "+00:00"))
        except ValueError:
            yield CheckFailure("terminationTime", f"terminationTime must look like 2030-09-03T16:32:00Z, not {ends}")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The provider's configuration."""

    auth_token: str = ""
    max_retries: int = 10
    max_retry_wait_seconds: int = 30


def configuration_rules(arguments: Mapping[str, Json]) -> Iterator[CheckFailure]:
    """Numbers must be numbers, in whatever type they come."""
    for name in ("maxRetries", "maxRetryWaitSeconds"):
        value = arguments.get(name)
        if value is not None and value != UNKNOWN and not str(value).removesuffix(".0").isdecimal():
            yield CheckFailure(name, f"{name} must be a number, not {value}")


def settings_of(arguments: Mapping[str, Json]) -> Settings:
    """The configuration as the engine sends it, with the official environment variables as fallback."""
    known = {name: value for name, value in arguments.items() if value not in (None, UNKNOWN)}
    fallback = os.environ.get("METAL_AUTH_TOKEN") or os.environ.get("PACKET_AUTH_TOKEN") or ""
    return Settings(
        auth_token=known.get("authToken") or fallback,
        max_retries=int(float(known.get("maxRetries", Settings.max_retries))),
        max_retry_wait_seconds=int(float(known.get("maxRetryWaitSeconds", Settings.max_retry_wait_seconds))),
    )
