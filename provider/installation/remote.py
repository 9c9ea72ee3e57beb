"""How a platform controls a machine from outside during an installation: by its BMC, or by its API."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

from metal_ipi.provider.artifact_stores import open_store, persistently
from metal_ipi.provider.bmc_settings import LIVE_ISO, BmcSettings
from metal_ipi.provider.configuration import Settings
from metal_ipi.provider.errors import ProviderError
from metal_ipi.provider.installation.inputs import Job
from metal_ipi.provider.live_iso import disc
from metal_ipi.provider.platforms.ironic import published as ironic_published
from metal_ipi.provider.platforms.redfish import published
from metal_ipi.provider.platforms.registry import open_driver
from metal_ipi.provider.resource import Context
from metal_ipi.provider.status import Status

Opener = Callable[[str, Settings, Status], AbstractAsyncContextManager[Any]]


class Remote(ABC):
    """One machine, controlled from outside. Methods raise RemoteError with the machine, the place and the remedy."""

    def __init__(self, context: Context, job: Job, opener: Opener) -> None:
        self._settings, self._status, self._job, self._opener = context.settings, context.status, job, opener

    def _driver(self) -> AbstractAsyncContextManager[Any]:
        return self._opener(self._job.platform, self._settings, self._status)

    @property
    @abstractmethod
    def via(self) -> str:
        """The name of `enter` in outputs."""

    @property
    @abstractmethod
    def where(self) -> str:
        """What controls the machine's power, for messages."""

    @property
    @abstractmethod
    def remedy(self) -> str:
        """What to check if the machine does not boot into its installer, in sentences."""

    @abstractmethod
    async def prepare(self) -> None:
        """Make the installer available to the machine, and the files that the installed system reads."""

    @abstractmethod
    async def enter(self) -> None:
        """Boot the machine into its installer."""

    @abstractmethod
    async def withdraw(self) -> None:
        """Make the installer unavailable to the machine."""

    @abstractmethod
    async def boot_disk(self) -> None:
        """Configure the machine to boot from its disk."""

    async def restart(self) -> None:
        """Restart the machine, whatever it runs."""
        async with self._driver() as driver:
            await driver.restart(self._job.machine_id)

    @abstractmethod
    async def is_off(self) -> bool:
        """Whether it is off."""

    def environment(self) -> dict[str, str]:
        """Environment variables for the user's commands: how to reach its BMC."""
        return {}


class _Server(Remote):
    """A claimed server, which has a name in the provider's configuration."""

    def __init__(self, context: Context, job: Job, opener: Opener) -> None:
        super().__init__(context, job, opener)
        self._server, self._mac = job.machine_id.partition("/")[0], job.mac or ""

    async def _say(self, text: str) -> None:
        await self._status.live(f"{self._job.hostname}: {text}")

    async def enter(self) -> None:
        async with self._driver() as driver:
            await driver.boot_installer(self._job.machine_id, self._mac)

    async def withdraw(self) -> None:
        await disc.withdraw(self._settings, self._mac)

    async def boot_disk(self) -> None:
        async with self._driver() as driver:
            await driver.boot_disk(self._job.machine_id)

    async def is_off(self) -> bool:
        async with self._driver() as driver:
            return await driver.power_state(self._job.machine_id) == "Off"


class _Redfish(_Server):
    @property
    def via(self) -> str:
        return "live ISO" if self._bmc.boot_method == LIVE_ISO else "network boot"

    @property
    def where(self) -> str:
        return f"BMC {self._bmc.address}"

    @property
    def remedy(self) -> str:
        if self._bmc.boot_method == LIVE_ISO:
            return (
                "Check that its BMC reaches artifacts.bootBaseUrl, and that it boots the attached disc. Its console "
                "shows where it stopped"
            )
        return (
            "If its one-time boot is ignored, try another `bootMethod`. Check that it gets the URL of boot/boot.ipxe, "
            "by DHCP or as `bootUrl`. Its console shows where it stopped"
        )

    async def prepare(self) -> None:
        # A disc is large, and no machine boots it on its own: it is made only when the BMC is about to attach it.
        if self._bmc.boot_method != LIVE_ISO:
            await self._publish()

    async def _publish(self) -> None:
        job = self._job
        await published.publish(
            self._settings,
            self._server,
            self._mac,
            script=job.script_now(),
            chain=job.chain or "",
            say=self._say,
        )

    async def enter(self) -> None:
        if self._bmc.boot_method == LIVE_ISO:
            await self._publish()
        await super().enter()

    def environment(self) -> dict[str, str]:
        bmc = self._bmc
        return {"BMC_ADDRESS": bmc.address, "BMC_USERNAME": bmc.username, "BMC_PASSWORD": bmc.password}

    @property
    def _bmc(self) -> BmcSettings:
        return self._settings.need_bmc(self._server)


class _Ironic(_Server):
    @property
    def _by_network(self) -> bool:
        return ironic_published.by_network(self._settings, self._server)

    @property
    def via(self) -> str:
        return "network boot" if self._by_network else "live ISO"

    @property
    def where(self) -> str:
        return f"{self._server} of Ironic at {self._settings.need_ironic().endpoint}"

    @property
    def remedy(self) -> str:
        if self._by_network:
            return (
                "Check that DHCP in its network names Ironic's boot.ipxe, or boot/boot.ipxe of artifacts.bootBaseUrl, "
                "and that it reaches both. Its console shows where it stopped"
            )
        return (
            "Check that its BMC, or Ironic's conductor, reaches artifacts.bootBaseUrl, and that it boots the attached "
            "disc. Its console shows where it stopped"
        )

    async def prepare(self) -> None:
        # A disc is large, and no machine boots it on its own: it is made only when it is about to be attached.
        if self._by_network:
            await self._publish()

    async def _publish(self) -> None:
        job = self._job
        await ironic_published.publish(
            self._settings, self._server, self._mac, script=job.script_now(), chain=job.chain, say=self._say
        )

    async def enter(self) -> None:
        if not self._by_network:
            await self._publish()
        await super().enter()


class _EquinixMetal(Remote):
    @property
    def via(self) -> str:
        return "reinstall"

    @property
    def where(self) -> str:
        return f"device {self._job.machine_id}"

    @property
    def remedy(self) -> str:
        return "Check that its iPXE reaches the artifact host. Its console (SOS, Serial over SSH) shows where it stops"

    async def prepare(self) -> None:
        job, url = self._job, self._job.ipxe_script_url
        if job.script and job.artifacts:  # the script that it was ordered with lacks the current arguments
            section, name = self._settings.need_artifacts(), self._script_name
            store, directory = open_store(section), job.artifacts[0].directory
            files = {name: job.script_now().encode()}
            await persistently(lambda: store.put(directory, files), self._status.live)
            url = f"{section.boot_base_url}/{directory}/{name}"
        async with self._driver() as driver:
            await driver.describe(job.machine_id, user_data=job.user_data, ipxe_script_url=url)

    async def enter(self) -> None:
        async with self._driver() as driver:
            await driver.reinstall(self._job.machine_id)

    async def withdraw(self) -> None:
        """A machine that does not always boot from the network boots its disk anyway."""
        if self._job.artifacts:
            store, directory = open_store(self._settings.need_artifacts()), self._job.artifacts[0].directory
            await persistently(lambda: store.delete(directory, [self._script_name]), self._status.live)

    async def boot_disk(self) -> None:
        """It boots its disk anyway. Its original script is set again, so that a preview shows no drift."""
        job = self._job
        async with self._driver() as driver:
            await driver.describe(job.machine_id, user_data=job.user_data, ipxe_script_url=job.ipxe_script_url)

    async def is_off(self) -> bool:
        async with self._driver() as driver:
            machine = await driver.get(self._job.machine_id)
        if machine is None:
            raise ProviderError(
                f"machine {self._job.hostname} ({self._job.machine_id}) does not exist any more: run `pulumi refresh`"
            )
        return machine.state == "inactive"

    @property
    def _script_name(self) -> str:
        return f"{self._job.hostname}.ipxe"


_REMOTES: Mapping[str, type[Remote]] = {"redfish": _Redfish, "ironic": _Ironic, "equinix-metal": _EquinixMetal}


def open_remote(context: Context, job: Job, opener: Opener = open_driver) -> Remote:
    """The object for the machine's platform; does not connect yet."""
    return _REMOTES[job.platform](context, job, opener)


async def missing_files(context: Context, job: Job) -> list[str]:
    """The installer's files that are not on the artifact host."""
    store = open_store(context.settings.need_artifacts())
    missing: list[str] = []
    for each in job.artifacts:
        there = await persistently(lambda each=each: store.hashes(each.directory, each.files), context.status.live)
        missing += [name for name in each.files if name not in there]
    return missing


async def withdraw_files(context: Context, job: Job) -> None:
    """Delete the installer's files: they contain secrets, and are not needed after the installation."""
    store = open_store(context.settings.need_artifacts())
    for each in job.artifacts:
        await persistently(lambda each=each: store.delete(each.directory, each.files), context.status.live)
