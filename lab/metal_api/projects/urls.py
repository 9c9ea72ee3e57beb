"""Routes of the projects."""

from __future__ import annotations

from lab.metal_api.operations import Lab, Urls
from lab.metal_api.projects.models import Project
from lab.metal_api.projects.responses import Responses, document


def urls(lab: Lab) -> Urls:
    """Path → method → operation."""
    projects = Responses(lab)
    lab.documents["projects"] = lambda identity: document(lab.account, lab.account.table(Project).find(identity))
    return [
        ("/projects", {"GET": projects.list_all, "POST": projects.create}),
        (
            "/projects/{id}",
            {"GET": projects.show, "PUT": projects.update, "PATCH": projects.update, "DELETE": projects.delete},
        ),
        (
            "/organizations/{id}/projects",
            {"GET": projects.list_of_organization, "POST": projects.create_in_organization},
        ),
    ]
