"""Routes of the SSH keys."""

from __future__ import annotations

from lab.metal_api.operations import Lab, Urls
from lab.metal_api.ssh_keys.models import SshKey
from lab.metal_api.ssh_keys.responses import Responses, document


def urls(lab: Lab) -> Urls:
    """Path → method → operation."""
    keys = Responses(lab)
    lab.documents["ssh-keys"] = lambda identity: document(lab.account, lab.account.table(SshKey).find(identity))
    return [
        ("/ssh-keys/{id}", {"GET": keys.show, "PUT": keys.update, "PATCH": keys.update, "DELETE": keys.delete}),
        ("/projects/{id}/ssh-keys", {"GET": keys.list_of_project, "POST": keys.create_in_project}),
    ]
