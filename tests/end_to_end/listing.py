"""Runs inside the lab (`python -m lab run`): lists what costs, in every project, through the official client.

python -m tests.end_to_end.listing STATE    what there is, by kind, as JSON; kinds without anything are left out
"""

from __future__ import annotations

import importlib
import json
import sys
import warnings
from collections.abc import Callable
from typing import Any

from lab import facts
from lab.layout import Layout


def _listed(metal: Any, client: Any, projects: list[str]) -> dict[str, list[str]]:
    """Kind → what there is of it."""
    ways: dict[str, tuple[Callable[..., Any], str, str]] = {
        "devices": (metal.DevicesApi(client).find_project_devices, "devices", "hostname"),
        "SSH keys": (metal.SSHKeysApi(client).find_project_ssh_keys, "ssh_keys", "label"),
        "addresses": (metal.IPAddressesApi(client).find_ip_reservations, "ip_addresses", "actual_instance"),
        "VLANs": (metal.VLANsApi(client).find_virtual_networks, "virtual_networks", "description"),
        "gateways": (
            metal.MetalGatewaysApi(client).find_metal_gateways_by_project,
            "metal_gateways",
            "actual_instance",
        ),
        "spot market requests": (
            metal.SpotMarketApi(client).list_spot_market_requests,
            "spot_market_requests",
            "id",
        ),
    }
    found = {
        kind: [str(getattr(item, shown)) for project in projects for item in getattr(ask(project), member) or ()]
        for kind, (ask, member, shown) in ways.items()
    }
    return {kind: items for kind, items in found.items() if items}


def main() -> None:
    """Lists what there is; projects other than the lab's own count as well."""
    known = facts.require(Layout.of(sys.argv[1]))
    assert known.api is not None, "a lab with the Metal API"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the generated client is not free of deprecated calls
        metal: Any = importlib.import_module("equinix_metal")
        settings = metal.Configuration(
            host=known.api.url, api_key={"x_auth_token": known.api.token}, ssl_ca_cert=known.ca_path
        )
        client = metal.ApiClient(settings)
        projects = {str(each.id): str(each.name) for each in metal.ProjectsApi(client).find_projects().projects}
        found = _listed(metal, client, list(projects))
    others = [name for each, name in projects.items() if each != known.api.project_id]
    print(json.dumps({**found, **({"projects": others} if others else {})}))


if __name__ == "__main__":
    main()
