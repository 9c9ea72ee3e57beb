"""Keys for the API, of a project and of the user. The API shows single ones in lists only."""

from __future__ import annotations

from collections.abc import Mapping

from pulumi.provider.experimental import provider as api

from lab.plugins.equinix_metal.bridged import Bridged
from lab.plugins.equinix_metal.client import Gone
from lab.plugins.equinix_metal.network_documents import reference
from lab.plugins.values import Json

USER_KEYS = "/user/api-keys"


class ApiKey(Bridged):
    """`…/userApiKey:UserApiKey` and, with a `projectId`, `…/projectApiKey:ProjectApiKey`."""

    sensitive = ("token",)
    path = USER_KEYS

    async def make(self, inputs: Mapping[str, Json], request: api.CreateRequest) -> dict[str, Json]:
        """Have one made."""
        wanted = {"description": inputs["description"], "read_only": bool(inputs["readOnly"])}

        def alike(found: dict[str, Json]) -> bool:
            return all(found.get(name) == value for name, value in wanted.items())

        nameless = "" if inputs["description"] else "a key without a description"
        find = self._client.finder(_list(inputs), "api_keys", alike, nameless=nameless, include=_owner(inputs))
        return self.describe(await self._client.order(_list(inputs), wanted, find, include=_owner(inputs)), inputs)

    async def fetch(self, identifier: str, known: Mapping[str, Json]) -> dict[str, Json] | None:
        """See `Bridged`; gone as well with its project."""
        try:
            async for answer in self._client.entries(_list(known), "api_keys", include=_owner(known)):
                if answer.document.get("id") == identifier:
                    return self.describe(answer.document, known)
        except Gone:
            return None
        return None

    def describe(self, document: Mapping[str, Json], known: Mapping[str, Json]) -> dict[str, Json]:
        """See `Bridged`."""
        state: dict[str, Json] = {
            "id": document["id"],
            "description": document.get("description") or "",
            "readOnly": bool(document.get("read_only")),
            "token": document.get("token") or "",
        }
        project = reference(document, "project") or known.get("projectId")
        return {**state, **({"projectId": project} if project else {"userId": reference(document, "user")})}


class ProjectApiKey(ApiKey):
    """Only knows what is computed."""

    computed = ("token",)


class UserApiKey(ApiKey):
    """Belongs to whoever the token of the provider belongs to."""

    computed = ("token", "userId")


def _list(properties: Mapping[str, Json]) -> str:
    return f"/projects/{properties['projectId']}/api-keys" if properties.get("projectId") else USER_KEYS


def _owner(properties: Mapping[str, Json]) -> str:
    return "project" if properties.get("projectId") else "user"
