"""Routes of the addresses."""

from __future__ import annotations

from lab.metal_api.ips.responses import Responses, document
from lab.metal_api.operations import Lab, Urls


def urls(lab: Lab) -> Urls:
    """Path → method → operation."""
    ips = Responses(lab)
    lab.documents["ips"] = lambda identity: document(lab.account, identity)
    return [
        ("/ips/{id}", {"GET": ips.show, "PUT": ips.update, "PATCH": ips.update, "DELETE": ips.delete}),
        ("/ips/{id}/available", {"GET": ips.available}),
        ("/ips/{id}/customdata", {"GET": ips.customdata}),
        ("/projects/{id}/ips", {"GET": ips.list_of_project, "POST": ips.reserve}),
        ("/projects/{project_id}/ips/{id}/customdata", {"GET": ips.reservation_customdata}),
        ("/devices/{id}/ips", {"GET": ips.list_of_device, "POST": ips.assign}),
        ("/devices/{instance_id}/ips/{id}/customdata", {"GET": ips.assignment_customdata}),
    ]
