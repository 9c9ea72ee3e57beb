"""Routes of BGP."""

from __future__ import annotations

from lab.metal_api.bgp.responses import Responses
from lab.metal_api.operations import Lab, Urls


def urls(lab: Lab) -> Urls:
    """Path → method → operation."""
    bgp = Responses(lab)
    return [
        ("/projects/{id}/bgp-config", {"GET": bgp.config}),
        ("/projects/{id}/bgp-configs", {"POST": bgp.request_config}),
        ("/projects/{id}/bgp/sessions", {"GET": bgp.list_of_project}),
        ("/devices/{id}/bgp/neighbors", {"GET": bgp.neighbors}),
        ("/devices/{id}/bgp/sessions", {"GET": bgp.list_of_device, "POST": bgp.create}),
        ("/bgp/sessions/{id}", {"GET": bgp.show, "DELETE": bgp.delete}),
    ]
