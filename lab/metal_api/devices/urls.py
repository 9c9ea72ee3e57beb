"""Routes of the devices."""

from __future__ import annotations

from lab.metal_api.devices.documents import document
from lab.metal_api.devices.models import Device
from lab.metal_api.devices.responses import Responses
from lab.metal_api.operations import Lab, Urls


def urls(lab: Lab) -> Urls:
    """Path → method → operation."""
    devices, account = Responses(lab), lab.account
    lab.documents["devices"] = lambda identity: document(account, account.table(Device).find(identity))
    return [
        ("/projects/{id}/devices", {"GET": devices.list_of_project, "POST": devices.create}),
        (
            "/devices/{id}",
            {"GET": devices.show, "PUT": devices.update, "PATCH": devices.update, "DELETE": devices.delete},
        ),
        ("/devices/{id}/actions", {"POST": devices.act}),
    ]
