"""A machine that was installed is watched until it serves again: one that loses its power meanwhile is switched on."""

from __future__ import annotations

import time

from provider.installation import machine
from provider.installation.inputs import Job
from provider.installation.install import Installer, Pace
from provider.installation.machine import Seen, Silent
from provider.installation.remote import Remote
from provider.status import Status


class Watch:
    """Looks at one machine."""

    def __init__(self, job: Job, installer: Installer, remote: Remote, status: Status, pace: Pace) -> None:
        self._job, self._installer, self._remote, self._status, self._pace = job, installer, remote, status, pace
        self._sign = time.monotonic()
        """When it last gave one."""

    @property
    def where(self) -> str:
        """What switches the machine, for messages."""
        return self._remote.where

    async def look(self) -> Seen:
        """Which system answers. Switches a machine on that is silent because it has no power: nobody else would."""
        seen = await machine.look(self._job)
        if not isinstance(seen, Silent):
            self._sign = time.monotonic()
        elif time.monotonic() - self._sign >= self._pace.power and await self._installer.is_off():
            await self._status.remark(f"{self._job.hostname} ({self.where}) lost its power: it is switched on")
            await self._remote.restart()
            self._sign = time.monotonic()
        return seen
