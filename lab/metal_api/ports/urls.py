"""Routes of the ports."""

from __future__ import annotations

from lab.metal_api.operations import Lab, Urls
from lab.metal_api.ports.documents import document
from lab.metal_api.ports.models import find
from lab.metal_api.ports.responses import Responses


def urls(lab: Lab) -> Urls:
    """Path → method → operation."""
    ports = Responses(lab)
    lab.documents["ports"] = lambda identity: document(lab.account, find(lab.account, identity))
    return [
        ("/ports/{id}", {"GET": ports.show}),
        ("/ports/{id}/assign", {"POST": ports.assign}),
        ("/ports/{id}/unassign", {"POST": ports.unassign}),
        ("/ports/{id}/bond", {"POST": ports.bond}),
        ("/ports/{id}/disbond", {"POST": ports.disbond}),
        ("/ports/{id}/convert/layer-2", {"POST": ports.to_layer2}),
        ("/ports/{id}/convert/layer-3", {"POST": ports.to_layer3}),
        ("/ports/{id}/native-vlan", {"POST": ports.set_native, "DELETE": ports.remove_native}),
        ("/ports/{id}/vlan-assignments/batches", {"GET": ports.batches, "POST": ports.create_batch}),
        ("/ports/{id}/vlan-assignments/batches/{batch_id}", {"GET": ports.batch}),
    ]
