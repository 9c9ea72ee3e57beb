"""A BMC's operations in the background (Redfish tasks): changes of volumes and firmware.

A job waits for a restart of the server, where the firmware has to do it, or is done after some seconds. It survives a
restart of the BMC.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Literal

from lab.machines.base import Disk

BIOS, BMC = "BIOS", "BMC"
VERSIONS = {BIOS: "lab-1.0", BMC: "1.0"}
"""The firmware versions of a new server."""
SECONDS = 1.0
"""Seconds that a job without a restart takes."""

State = Literal["Starting", "Pending", "Completed", "Exception"]
"""Of DSP2046's TaskState: at work, waits for a restart of the server, done, failed."""


@dataclass(kw_only=True)
class Volume:
    """A disk that the controller makes of drives."""

    id: str
    """Its serial number, too."""
    name: str
    raid: str
    """RAIDType."""
    capacity: int
    """Bytes."""
    drives: list[str]
    """Their serial numbers."""


@dataclass(kw_only=True)
class Job:
    """One task."""

    id: str
    what: Literal["create", "delete", "update"]
    state: State
    since: float
    """When it came into this state, seconds since the epoch."""
    volume: Volume | None = None
    component: str = ""
    """The firmware that is updated: a key of VERSIONS."""
    version: str = ""
    message: str = ""
    """Why it failed."""


@dataclass(kw_only=True)
class Work:
    """The jobs and volumes of a BMC, stored on disk."""

    volumes: list[Volume] = field(default_factory=list[Volume])
    versions: dict[str, str] = field(default_factory=lambda: dict(VERSIONS))
    jobs: list[Job] = field(default_factory=list[Job])
    blank: list[str] = field(default_factory=list[str])
    """Serial numbers of drives and volumes that are blank at the next start: a volume was made of them, or deleted."""
    made: int = 0
    """How many jobs and volumes there were."""
    on_reset: bool = False
    """Whether volumes change at a restart of the server only; else at once."""

    def number(self) -> int:
        """One that no job and no volume has had."""
        self.made += 1
        return self.made

    def change(self, what: Literal["create", "delete"], volume: Volume) -> Job | None:
        """Has a volume made or deleted, at once; else the job that will."""
        if not self.on_reset:
            self._changed(what, volume)
            return None
        return self._begin(Job(id=str(self.number()), what=what, state="Pending", since=time.time(), volume=volume))

    def update(self, component: str, version: str, message: str) -> Job:
        """The job that updates firmware: the server's at its next start, the BMC's after a while. With a `message`, it
        has failed already."""
        state: State = "Exception" if message else "Pending" if component == BIOS else "Starting"
        job = Job(id=str(self.number()), what="update", state=state, since=time.time(), message=message)
        job.component, job.version = component, version
        return self._begin(job)

    def at_start(self) -> list[str]:
        """Does what waits for a start of the server; which drives are blank since the last one."""
        for job in self.jobs:
            if job.state == "Pending":
                self._do(job)
        blank, self.blank = self.blank, []
        return blank

    def lapse(self) -> bool:
        """Does what takes a while, if that is over; whether anything was done."""
        over = [job for job in self.jobs if job.state == "Starting" and time.time() > job.since + SECONDS]
        for job in over:
            self._do(job)
        return bool(over)

    def disks(self, drives: tuple[Disk, ...]) -> tuple[Disk, ...]:
        """What the server's operating system sees: volumes, and drives that are in none."""
        used = {drive: volume for volume in self.volumes for drive in volume.drives}
        made = (
            Disk(
                serial=volume.id,
                size_mib=volume.capacity >> 20,
                rotational=any(drive.rotational for drive in drives if drive.serial in volume.drives),
            )
            for volume in self.volumes
        )
        return (*made, *(drive for drive in drives if drive.serial not in used))

    def _begin(self, job: Job) -> Job:
        self.jobs = [*self.jobs[-9:], job]
        return job

    def _do(self, job: Job) -> None:
        if job.what == "update":
            self.versions[job.component] = job.version
        elif job.volume is not None:
            self._changed(job.what, job.volume)
        job.state, job.since = "Completed", time.time()

    def _changed(self, what: Literal["create", "delete"], volume: Volume) -> None:
        if what == "create":
            self.volumes.append(volume)
            self.blank += volume.drives
        else:
            self.volumes = [each for each in self.volumes if each.id != volume.id]
            self.blank.append(volume.id)
