"""Routes of the devices."""

from __future__ import annotations

from lab.metal_api.devices.documents import batch_document, document
from lab.metal_api.devices.models import Batch, Device
from lab.metal_api.devices.responses import Responses
from lab.metal_api.operations import Lab, Urls


def urls(lab: Lab) -> Urls:
    """Path → method → operation."""
    devices, account = Responses(lab), lab.account
    lab.documents["devices"] = lambda identity: document(account, account.table(Device).find(identity))
    lab.documents["batches"] = lambda identity: batch_document(account, account.table(Batch).find(identity))
    return [
        ("/projects/{id}/devices", {"GET": devices.list_of_project, "POST": devices.create}),
        ("/projects/{id}/devices/batch", {"POST": devices.create_batches}),
        ("/projects/{id}/batches", {"GET": devices.batches}),
        ("/batches/{id}", {"GET": devices.batch, "DELETE": devices.delete_batch}),
        ("/organizations/{id}/devices", {"GET": devices.list_of_organization}),
        (
            "/devices/{id}",
            {"GET": devices.show, "PUT": devices.update, "PATCH": devices.update, "DELETE": devices.delete},
        ),
        ("/devices/{id}/actions", {"POST": devices.act}),
        ("/devices/{id}/bandwidth", {"GET": devices.bandwidth}),
        ("/devices/{id}/customdata", {"GET": devices.customdata}),
        ("/devices/{id}/metadata", {"GET": devices.metadata}),
        ("/devices/{id}/ssh-keys", {"GET": devices.ssh_keys}),
        ("/devices/{id}/usages", {"GET": devices.usages}),
        ("/devices/{id}/userdata", {"GET": devices.userdata}),
    ]
