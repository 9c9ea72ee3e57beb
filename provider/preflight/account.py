"""Data from the Metal API about a project and its location: each part is requested once, when a check needs it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar

from metal_ipi.provider.metal_client import MetalClient

Document = Mapping[str, Any]
_T = TypeVar("_T")


class Account:
    """The account of a token; `project` is None if the project will be created."""

    def __init__(self, client: MetalClient, project: str | None) -> None:
        self.client = client
        self.project = project
        self._asked: dict[str, asyncio.Future[Any]] = {}

    async def devices(self) -> list[Document]:
        """The project's machines, of any owner; empty if the project does not exist yet."""
        return await self._of_project("devices")

    async def blocks(self) -> list[Document]:
        """The project's address blocks, with their assignments."""
        return await self._of_project("ips", member="ip_addresses", include="assignments")

    async def networks(self) -> list[Document]:
        """The project's VLANs."""
        return await self._of_project("virtual-networks")

    async def ssh_keys(self) -> list[Document]:
        """The project's SSH keys."""
        return await self._of_project("ssh-keys")

    async def spot_requests(self) -> list[Document]:
        """The project's spot market requests."""
        return await self._of_project("spot-market-requests")

    async def projects(self, organization: str | None) -> list[Document]:
        """An organization's projects."""
        return await self._listed(f"/organizations/{organization}/projects", "projects")

    async def projects_called(self, name: str, organization: str | None) -> list[Account]:
        """An organization's projects with a name: Metal allows several with the same one."""

        async def ask() -> list[Account]:
            found = await self.projects(organization)
            return [Account(self.client, str(each["id"])) for each in found if each.get("name") == name]

        return await self._once(f"{organization}: {name}", ask)

    async def reservations(self) -> list[Document]:
        """The project's reserved servers."""
        return await self._of_project("hardware-reservations", include="plan,facility,device")

    async def plans(self) -> dict[str, Document]:
        """All plans, by slug."""
        return {str(plan["slug"]): plan for plan in await self._listed("/plans", "plans")}

    async def operating_systems(self) -> dict[str, Document]:
        """All operating systems, by slug."""
        return {str(system["slug"]): system for system in await self._listed("/operating-systems", "operating_systems")}

    async def metros(self) -> dict[str, Document]:
        """All metros, by code."""
        return {str(metro["code"]): metro for metro in await self._listed("/locations/metros", "metros")}

    async def facilities(self) -> dict[str, Document]:
        """All facilities, by code; each with its metro."""
        found = await self._listed("/facilities", "facilities", include="metro")
        return {str(facility["code"]): facility for facility in found}

    async def details(self) -> Document:
        """The project itself."""
        path = f"/projects/{self.project}"
        return await self._once(path, lambda: self.client.repeat("GET", path))

    async def metro_of(self, metro: str | None, facilities: tuple[str, ...]) -> str | None:
        """The metro's code of a location; None if it is unknown."""
        if metro is not None:
            return metro
        known = [known for code, known in (await self.facilities()).items() if code in facilities]
        return next((str((each.get("metro") or {}).get("code")) for each in known), None)

    async def _of_project(self, path: str, *, member: str = "", **params: str) -> list[Document]:
        if self.project is None:
            return []
        return await self._listed(f"/projects/{self.project}/{path}", member or path.replace("-", "_"), **params)

    async def _listed(self, path: str, member: str, **params: str) -> list[Document]:
        return await self._once(path, lambda: self.client.listed(path, member, **params))

    async def _once(self, key: str, ask: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
        """Request a part once, even if several checks need it at the same time."""

        if key not in self._asked:
            self._asked[key] = asyncio.ensure_future(ask())
        return await self._asked[key]
