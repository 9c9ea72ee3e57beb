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
        ("/projects/{id}/ips", {"GET": ips.list_of_project, "POST": ips.reserve}),
        ("/devices/{id}/ips", {"POST": ips.assign}),
    ]
