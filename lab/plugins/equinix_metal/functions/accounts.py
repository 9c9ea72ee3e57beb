"""Organizations, projects and their SSH keys."""

from __future__ import annotations

from lab.plugins.base import PluginError
from lab.plugins.equinix_metal.client import Client
from lab.plugins.equinix_metal.documents import key_state, last_part, organization_state, project_state
from lab.plugins.equinix_metal.functions.base import REQUIRED, STRING, Function, everything, one_of, the_only
from lab.plugins.equinix_metal.project import bgp_config
from lab.plugins.values import Json


async def _organization(client: Client, arguments: dict[str, Json]) -> dict[str, Json]:
    document = await _one(client, "organization", arguments)
    state = {name: value for name, value in organization_state(document).items() if name not in ("created", "updated")}
    projects = [last_part(project.get("href")) for project in document.get("projects") or []]
    return {**state, "organizationId": document["id"], "projectIds": projects}


async def _project(client: Client, arguments: dict[str, Json]) -> dict[str, Json]:
    document = await _one(client, "project", arguments)
    bgp = await bgp_config(client, document["id"])
    return {
        **project_state(document, {}),
        "projectId": document["id"],
        "userIds": [last_part(user.get("href")) for user in document.get("members") or []],
        "bgpConfigs": [bgp] if bgp else [],
    }


async def _one(client: Client, kind: str, arguments: dict[str, Json]) -> dict[str, Json]:
    """By its id, or the only one of its name."""
    identifier, name = arguments.get(f"{kind}Id"), arguments.get("name")
    if identifier:
        return (await client.get(f"/{kind}s/{identifier}")).document
    found = await everything(client, f"/{kind}s", f"{kind}s")
    return the_only([each for each in found if each.get("name") == name], f"{kind} {name}")


async def _key(client: Client, arguments: dict[str, Json]) -> dict[str, Json]:
    project, search, identifier = arguments["projectId"], arguments.get("search"), arguments.get("id")
    keys = await everything(
        client, f"/projects/{project}/ssh-keys", "ssh_keys", **({"search": search} if search else {})
    )
    found = [key for key in keys if search or key["id"] == identifier]
    if not found:
        raise PluginError(f"project {project} has no SSH key {search or identifier}")
    return key_state(found[0], arguments)


ORGANIZATION = Function(
    arguments={"name": STRING, "organizationId": STRING}, look=_organization, rules=one_of("organizationId", "name")
)
PROJECT = Function(
    arguments={"name": STRING, "projectId": STRING},
    look=_project,
    rules=one_of("projectId", "name"),
)
PROJECT_SSH_KEY = Function(
    arguments={"projectId": REQUIRED, "search": STRING, "id": STRING}, look=_key, rules=one_of("id", "search")
)
