"""A program in the place of `stacks/program.py`, each resource of which breaks a rule that no setting can break."""

from __future__ import annotations

import json

import pulumi
import pulumi_equinix_metal as metal

from metal_ipi.provider.types import (
    DnsRecordArgs,
    DnsRecords,
    DnsRecordsArgs,
    Provider,
    ProviderArgs,
)

_MARKS = ["metal-ipi", "metal-ipi:stack=lab", "metal-ipi:cluster=lab.facility.test", "metal-ipi:run=1"]
_DNS = {"service": "rfc2136", "server": "192.0.2.53", "port": 53, "zone": "facility.test", "propagation": "service",
        "tsig": {"name": "k", "algorithm": "hmac-sha256", "secret": "c2VjcmV0"}}  # fmt: skip


def main() -> None:
    """Declare it."""
    provider = Provider("metal-ipi", ProviderArgs(metal={"authToken": "token"}, dns=_DNS))
    ours = pulumi.ResourceOptions(provider=provider)
    theirs = pulumi.ResourceOptions(provider=metal.Provider("metal", auth_token="in clear"))
    metal.SpotMarketRequest(
        "taken-away",
        devices_min=1, devices_max=1, max_bid_price=1.0, metro="lb", project_id="p", facilities=None,
        wait_for_devices=False,
        instance_parameters=metal.SpotMarketRequestInstanceParametersArgs(
            hostname="c", plan="c3.medium.x86", operating_system="custom_ipxe", billing_cycle="hourly",
            ipxe_script_url="https://b.test/s", tags=[*_MARKS, "metal-ipi:role=control-plane"],
        ),
        opts=theirs,
    )  # fmt: skip
    ignition = {"ignition": {"version": "3.4.0"}, "passwd": {"users": [{"name": "core", "passwordHash": "$6$x"}]}}
    metal.Device(
        "readable",
        hostname="lab-worker-0", plan="c3.medium.x86", metro="lb", operating_system="custom_ipxe",
        billing_cycle="hourly", project_id="p", user_data=json.dumps(ignition), ipxe_script_url="https://b.test/s",
        tags=["metal-ipi:role=worker"], opts=theirs,
    )  # fmt: skip
    record = DnsRecordArgs(name="www.facility.test", type="A", values=["192.0.2.9"])
    DnsRecords("elsewhere", DnsRecordsArgs(zone="facility.test", ttl=30, records=[record]), ours)
