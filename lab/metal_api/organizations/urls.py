"""Routes of organizations and of API keys."""

from __future__ import annotations

from lab.metal_api.operations import Lab, Urls
from lab.metal_api.organizations.models import Organization
from lab.metal_api.organizations.responses import Responses, document


def urls(lab: Lab) -> Urls:
    """Path → method → operation."""
    organizations, account = Responses(lab), lab.account
    lab.documents["organizations"] = lambda identity: document(account, account.table(Organization).find(identity))
    return [
        ("/api-keys/{id}", {"DELETE": organizations.delete_key}),
        ("/projects/{id}/api-keys", {"GET": organizations.project_keys, "POST": organizations.create_project_key}),
        ("/organizations/{id}", {"GET": organizations.show}),
    ]
