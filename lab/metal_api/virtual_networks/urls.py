"""Routes of the VLANs."""

from __future__ import annotations

from lab.metal_api.operations import Lab, Urls
from lab.metal_api.virtual_networks.models import VirtualNetwork
from lab.metal_api.virtual_networks.responses import Responses, document


def urls(lab: Lab) -> Urls:
    """Path → method → operation."""
    networks = Responses(lab)
    table = lab.account.table(VirtualNetwork)
    lab.documents["virtual-networks"] = lambda identity: document(lab.account, table.find(identity))
    return [
        ("/projects/{id}/virtual-networks", {"GET": networks.list_of_project, "POST": networks.create}),
        ("/virtual-networks/{id}", {"GET": networks.show, "DELETE": networks.delete}),
    ]
