"""Interconnections, their ports and virtual circuits as the API shows them, and its operations on them."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from lab.metal_api.body import Body, body_of
from lab.metal_api.catalog.models import FACILITIES, METROS, facilities_of, stable_id
from lab.metal_api.catalog.responses import facility_document, metro_document
from lab.metal_api.connections import circuits, models
from lab.metal_api.connections.circuits import VirtualCircuit
from lab.metal_api.connections.models import Connection, ConnectionPort
from lab.metal_api.events import models as events
from lab.metal_api.events.documents import document as event_document
from lab.metal_api.listing import BASE, link
from lab.metal_api.operations import Operations
from lab.metal_api.organizations.models import Organization, user_id
from lab.metal_api.projects.models import Project
from lab.metal_api.records import Json
from lab.metal_api.state import Account


def document(account: Account, connection: Connection) -> Json:
    """An interconnection. The provider follows `facility` without looking, so it is there for every metro."""
    facility = connection.facility or facilities_of(connection.metro)[0].code
    shown: Json = {
        "id": connection.id,
        "href": f"{BASE}/connections/{connection.id}",
        "name": connection.name,
        "type": connection.type,
        "redundancy": connection.redundancy,
        "status": connection.status,
        "speed": connection.speed,
        "description": connection.description,
        "contact_email": connection.contact_email,
        "tags": connection.tags,
        "metro": metro_document(METROS[connection.metro]),
        "facility": facility_document(FACILITIES[facility]),
        "organization": link("organizations", account.identity.organization_id),
        "requested_by": link("users", user_id(account)),
        "ports": [port_document(account, connection, port) for port in connection.ports],
        "service_tokens": [
            {
                "id": token.id,
                "role": token.role,
                "service_token_type": token.side,
                "max_allowed_speed": token.speed,
                "expires_at": token.expires_at,
                "state": "inactive" if connection.status == "pending" else "active",
            }
            for token in connection.tokens
        ],
        "created_at": connection.created_at,
        "updated_at": connection.updated_at,
    }
    optional = {
        "project": link("projects", connection.project_id) if connection.project_id else None,
        "mode": connection.mode,
        "token": connection.token,
    }
    return shown | {name: value for name, value in optional.items() if value is not None}


def port_document(account: Account, connection: Connection, port: ConnectionPort) -> Json:
    """A port, with its virtual circuits whole."""
    return {
        **_port_reference(connection, port),
        "status": models.port_status(connection),
        "speed": connection.speed,
        "link_status": "up" if connection.status == "active" else "down",
        "switch_id": stable_id("switch", f"{connection.id}/{port.role}")[:8],
        "organization": link("organizations", account.identity.organization_id),
        "virtual_circuits": [
            circuit_document(account, connection, each) for each in circuits.circuits_of(account, connection, port)
        ],
    }


def _port_reference(connection: Connection, port: ConnectionPort) -> Json:
    href = f"{BASE}/connections/{connection.id}/ports/{port.id}"
    return {"id": port.id, "href": href, "name": port.name, "role": port.role}


def circuit_document(account: Account, connection: Connection, circuit: VirtualCircuit) -> Json:
    """A virtual circuit. Project and port have their ids, which the provider reads whether or not it includes them."""
    shown: Json = {
        "id": circuit.id,
        "href": f"{BASE}/virtual-circuits/{circuit.id}",
        "type": "vlan",
        "name": circuit.name,
        "description": circuit.description,
        "status": circuit.status,
        "tags": circuit.tags,
        "bill": False,
        "port": _port_reference(connection, models.find_port(connection, circuit.port_id)),
        "project": {"id": circuit.project_id, **link("projects", circuit.project_id)},
        "created_at": circuit.created_at,
        "updated_at": circuit.updated_at,
    }
    optional = {
        "nni_vlan": circuit.nni_vlan,
        "nni_vnid": circuit.nni_vlan,
        "vnid": circuits.vnid_of(account, circuit),
        "virtual_network": link("virtual-networks", circuit.network_id) if circuit.network_id else None,
        "speed": circuit.speed,
    }
    return shown | {name: value for name, value in optional.items() if value is not None}


class Responses(Operations):
    """One method per operation."""

    async def list_of_project(self, request: Request) -> Response:
        project = self.find(request, Project, "project_id")
        return self.paged(request, "interconnections", self._connections(project.id), self.document)

    async def list_of_organization(self, request: Request) -> Response:
        self.find(request, Organization, "organization_id")
        return self.listed(request, "interconnections", self._connections(None), self.document)

    async def create_in_project(self, request: Request) -> Response:
        return await self._create(request, self.find(request, Project, "project_id").id)

    async def create_in_organization(self, request: Request) -> Response:
        self.find(request, Organization, "organization_id")
        return await self._create(request, None)

    async def _create(self, request: Request, project_id: str | None) -> Response:
        body = await body_of(request)
        if body.get("project"):
            project_id = self._named(request, body, "project").id
        connection = models.create(self.account, project_id, body)
        networks = circuits.networks_for(self.account, connection, body.get("vlans"))
        self.account.table(Connection).add(connection)
        circuits.provide(self.account, connection, networks)
        return self.saved(request, self.document(connection), 201)

    async def show(self, request: Request) -> Response:
        return self.shown(request, self.document(self._connection(request)))

    async def update(self, request: Request) -> Response:
        connection = self._connection(request)
        used = bool(circuits.circuits_of(self.account, connection))
        models.update(self.account, connection, await body_of(request), has_circuits=used)
        return self.saved(request, self.document(connection), 200)

    async def delete(self, request: Request) -> Response:
        connection = self._connection(request)
        models.begin_deletion(self.account, connection)
        circuits.settle(self.account)
        return self.saved(request, self.document(connection), 202)

    async def redeem(self, request: Request) -> Response:
        """The lab's own: what the user does in Fabric with a token."""
        connection = self.find(request, Connection)
        models.redeem(self.account, connection)
        return self.saved(request, self.document(connection), 200)

    async def events(self, request: Request) -> Response:
        connection = self._connection(request)
        return self._events(request, f"connections/{connection.id}")

    # Ports

    async def ports(self, request: Request) -> Response:
        connection = self._connection(request)
        return self.listed(
            request, "ports", connection.ports, lambda port: port_document(self.account, connection, port)
        )

    async def port(self, request: Request) -> Response:
        connection = self._connection(request)
        port = models.find_port(connection, request.path_params["id"])
        return self.shown(request, port_document(self.account, connection, port))

    # Virtual circuits

    async def circuits(self, request: Request) -> Response:
        connection = self._connection(request)
        return self._circuits(request, connection, circuits.circuits_of(self.account, connection))

    async def port_circuits(self, request: Request) -> Response:
        connection = self._connection(request)
        port = models.find_port(connection, request.path_params["port_id"])
        return self._circuits(request, connection, circuits.circuits_of(self.account, connection, port))

    def _circuits(self, request: Request, connection: Connection, found: list[VirtualCircuit]) -> Response:
        return self.listed(
            request, "virtual_circuits", found, lambda circuit: circuit_document(self.account, connection, circuit)
        )

    async def create_circuit(self, request: Request) -> Response:
        """packngo has the project in the path."""
        connection, body = self._connection(request), await body_of(request)
        port = models.find_port(connection, request.path_params["port_id"])
        in_path = "project_id" in request.path_params
        project = self.find(request, Project, "project_id") if in_path else self._named(request, body, "project_id")
        circuit = circuits.create(self.account, connection, port, project.id, body)
        return self.saved(request, circuit_document(self.account, connection, circuit), 201)

    async def circuit(self, request: Request) -> Response:
        circuit, connection = self._circuit(request)
        return self.shown(request, circuit_document(self.account, connection, circuit))

    async def update_circuit(self, request: Request) -> Response:
        circuit, connection = self._circuit(request)
        circuits.update(self.account, circuit, connection.metro, await body_of(request))
        return self.saved(request, circuit_document(self.account, connection, circuit), 200)

    async def delete_circuit(self, request: Request) -> Response:
        circuit, connection = self._circuit(request)
        circuits.delete(self.account, circuit)
        return self.saved(request, circuit_document(self.account, connection, circuit), 202)

    async def circuit_events(self, request: Request) -> Response:
        circuit, _ = self._circuit(request)
        return self._events(request, f"virtual-circuits/{circuit.id}")

    def document(self, connection: Connection) -> Json:
        return document(self.account, connection)

    def _connections(self, project_id: str | None) -> list[Connection]:
        every = self.account.table(Connection).values()
        return [entry for entry in every if project_id in (None, entry.project_id)]

    def _connection(self, request: Request) -> Connection:
        return self.find(request, Connection, "connection_id")

    def _circuit(self, request: Request) -> tuple[VirtualCircuit, Connection]:
        circuit = self.find(request, VirtualCircuit)
        return circuit, self.account.table(Connection).find(circuit.connection_id)

    def _named(self, request: Request, document: Json, name: str) -> Project:
        """The project that a body names."""
        body = Body(document)
        identity = body.text(name, required=True) or ""
        body.check()
        return self.visible(request, self.account.table(Project).find(identity))

    def _events(self, request: Request, about: str) -> Response:
        return self.paged(request, "events", events.of(self.account, about)[::-1], event_document)
