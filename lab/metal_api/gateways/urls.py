"""Routes of the gateways."""

from __future__ import annotations

from lab.metal_api.gateways.models import Gateway
from lab.metal_api.gateways.responses import Responses, document
from lab.metal_api.operations import Lab, Urls


def urls(lab: Lab) -> Urls:
    """Path → method → operation."""
    gateways = Responses(lab)
    table = lab.account.table(Gateway)
    lab.documents["metal-gateways"] = lambda identity: document(lab.account, table.find(identity))
    return [
        ("/projects/{project_id}/metal-gateways", {"GET": gateways.list_of_project, "POST": gateways.create}),
        ("/metal-gateways/{id}", {"GET": gateways.show, "DELETE": gateways.delete}),
    ]
