"""Routes of the hardware reservations."""

from __future__ import annotations

from lab.metal_api.hardware_reservations.models import HardwareReservation
from lab.metal_api.hardware_reservations.responses import Responses, document
from lab.metal_api.operations import Lab, Urls


def urls(lab: Lab) -> Urls:
    """Path → method → operation."""
    reservations = Responses(lab)
    table = lab.account.table(HardwareReservation)
    lab.documents["hardware-reservations"] = lambda identity: document(lab.account, table.find(identity))
    return [
        ("/projects/{id}/hardware-reservations", {"GET": reservations.list_of_project}),
        ("/hardware-reservations/{id}", {"GET": reservations.show}),
    ]


def control(lab: Lab) -> Urls:
    """The lab's own routes, below /lab."""
    reservations = Responses(lab)
    return [
        ("/hardware-reservations", {"POST": reservations.sell}),
        ("/hardware-reservations/{id}", {"DELETE": reservations.end}),
    ]
