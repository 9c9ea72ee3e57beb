"""Looking at devices on behalf of everybody who waits for one: at many of a project with one request, not one each."""

from __future__ import annotations

import asyncio
from collections import defaultdict

from lab.plugins.equinix_metal.client import Client
from lab.plugins.values import Json

FEW_EVERY_SECONDS, MANY_EVERY_SECONDS = 1.0, 2.0
FEW = 3
"""So many are looked at one by one: the list of a project also has the devices that nobody waits for."""

Future = asyncio.Future[dict[str, Json]]
Waiting = dict[str, Future]


class Watch:
    """Answers of one look go to all who asked before it."""

    def __init__(self, client: Client, include: str) -> None:
        self._client = client
        self._include = include
        self._waiting: defaultdict[str, Waiting] = defaultdict(Waiting)
        self._looking: dict[str, asyncio.Task[None]] = {}

    async def look(self, project: str, identifier: str) -> dict[str, Json]:
        """The device as it is at the next look, in a second or two; Gone if it is not there any more."""
        waiting = self._waiting[project]
        if identifier not in waiting:
            waiting[identifier] = asyncio.get_running_loop().create_future()
        if project not in self._looking:
            self._looking[project] = asyncio.create_task(self._look_again_and_again(project))
        return await asyncio.shield(waiting[identifier])

    async def _look_again_and_again(self, project: str) -> None:
        """As long as somebody waits."""
        try:
            while waiting := self._waiting[project]:
                few = len(waiting) <= FEW
                await asyncio.sleep(FEW_EVERY_SECONDS if few else MANY_EVERY_SECONDS)
                self._waiting[project] = {}
                await self._look(project, waiting)
        finally:
            del self._looking[project]

    async def _look(self, project: str, waiting: Waiting) -> None:
        listed: dict[str, dict[str, Json]] = {}
        if len(waiting) > FEW:
            entries = self._client.entries(f"/projects/{project}/devices", "devices", include=self._include)
            try:
                listed = {answer.document["id"]: answer.document async for answer in entries}
            except Exception as error:
                for future in waiting.values():
                    _fail(future, error)
                return
        await asyncio.gather(*(self._tell(name, future, listed.get(name)) for name, future in waiting.items()))

    async def _tell(self, identifier: str, future: Future, document: dict[str, Json] | None) -> None:
        """What is not in the list is asked for by itself: only so the API says that it is gone."""
        try:
            path = f"/devices/{identifier}"
            future.set_result(document or (await self._client.get(path, include=self._include)).document)
        except Exception as error:
            _fail(future, error)


def _fail(future: Future, error: Exception) -> None:
    future.set_exception(error)
    future.exception()  # who asked may have been cancelled meanwhile
