"""Routes of the user, of organizations and of API keys."""

from __future__ import annotations

from lab.metal_api.operations import Lab, Urls
from lab.metal_api.organizations.models import Organization, User
from lab.metal_api.organizations.responses import Responses, document, user_document


def urls(lab: Lab) -> Urls:
    """Path → method → operation."""
    organizations, account = Responses(lab), lab.account
    lab.documents["organizations"] = lambda identity: document(account, account.table(Organization).find(identity))
    lab.documents["users"] = lambda identity: user_document(account, account.table(User).find(identity))
    update = organizations.update
    return [
        ("/user", {"GET": organizations.current_user, "PUT": organizations.update_current_user}),
        ("/users", {"GET": organizations.users}),
        ("/users/{id}", {"GET": organizations.user}),
        ("/users/{id}/customdata", {"GET": organizations.user_customdata}),
        ("/user/api-keys", {"GET": organizations.keys, "POST": organizations.create_key}),
        ("/user/api-keys/{id}", {"DELETE": organizations.delete_user_key}),
        ("/api-keys/{id}", {"DELETE": organizations.delete_key}),
        ("/projects/{id}/api-keys", {"GET": organizations.project_keys, "POST": organizations.create_project_key}),
        ("/organizations", {"GET": organizations.list_all, "POST": organizations.create}),
        (
            "/organizations/{id}",
            {"GET": organizations.show, "PUT": update, "PATCH": update, "DELETE": organizations.delete},
        ),
        ("/organizations/{id}/customdata", {"GET": organizations.customdata}),
    ]
