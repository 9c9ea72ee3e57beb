"""Routes of the interconnections."""

from __future__ import annotations

from lab.metal_api.connections.models import Connection
from lab.metal_api.connections.responses import Responses, document
from lab.metal_api.operations import Lab, Urls


def urls(lab: Lab) -> Urls:
    """Path → method → operation."""
    connections = Responses(lab)
    table = lab.account.table(Connection)
    lab.documents["connections"] = lambda identity: document(lab.account, table.find(identity))
    port = "/connections/{connection_id}/ports/{port_id}"
    return [
        (
            "/projects/{project_id}/connections",
            {"GET": connections.list_of_project, "POST": connections.create_in_project},
        ),
        (
            "/organizations/{organization_id}/connections",
            {"GET": connections.list_of_organization, "POST": connections.create_in_organization},
        ),
        ("/connections/metros", {}),  # beside these, it would be an interconnection's id
        ("/connections/prices", {}),
        (
            "/connections/{connection_id}",
            {
                "GET": connections.show,
                "PUT": connections.update,
                "PATCH": connections.update,
                "DELETE": connections.delete,
            },
        ),
        ("/connections/{connection_id}/events", {"GET": connections.events}),
        ("/connections/{connection_id}/ports", {"GET": connections.ports}),
        ("/connections/{connection_id}/ports/{id}", {"GET": connections.port}),
        ("/connections/{connection_id}/virtual-circuits", {"GET": connections.circuits}),
        (f"{port}/virtual-circuits", {"GET": connections.port_circuits, "POST": connections.create_circuit}),
        (f"/projects/{{project_id}}{port}/virtual-circuits", {"POST": connections.create_circuit}),
        (
            "/virtual-circuits/{id}",
            {
                "GET": connections.circuit,
                "PUT": connections.update_circuit,
                "PATCH": connections.update_circuit,
                "DELETE": connections.delete_circuit,
            },
        ),
        ("/virtual-circuits/{id}/events", {"GET": connections.circuit_events}),
    ]


def control(lab: Lab) -> Urls:
    """The lab's own routes, below /lab."""
    return [("/connections/{id}/redeem", {"POST": Responses(lab).redeem})]
