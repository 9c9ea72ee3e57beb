"""What happens between a kernel's start and its units: Ignition on a first boot, and Afterburn."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from lab.machines.simulated import afterburn
from lab.machines.simulated.ignition import IgnitionError
from lab.machines.simulated.ignition.apply import Applier
from lab.machines.simulated.ignition.merge import merge
from lab.machines.simulated.ignition.render import render
from lab.machines.simulated.ignition.resource import Fetcher
from lab.machines.simulated.ignition.schema import parse
from lab.machines.simulated.kernel import BootError, Installed, Kernel
from lab.machines.simulated.surroundings import Surroundings

_PLATFORMS = ("metal", "packet")


class Provision:
    """One boot of one machine."""

    def __init__(
        self, kernel: Kernel, root: Path, address: str, around: Surroundings, line: Callable[[str], None]
    ) -> None:
        self._kernel = kernel
        self._root = root
        self._around = around
        self._line = line
        self._platform = kernel.value("ignition.platform.id")
        self._fetcher = Fetcher(address, around.ca, self._log, around.sleep)

    async def run(self, boot_id: str) -> None:
        """Ignition when the kernel arguments ask for it, Afterburn where it has a provider. Raises IgnitionError."""
        first = "ignition.firstboot" in self._kernel.arguments
        if first and self._platform not in _PLATFORMS:
            raise BootError(
                f"ignition[612]: simulated machines know ignition.platform.id={' and '.join(_PLATFORMS)}, "
                f"not {self._platform}"
            )
        try:
            if first:
                await self._ignite(boot_id)
            if self._platform == "packet":
                await self._afterburn(first=first)
        finally:
            await self._fetcher.close()

    async def _ignite(self, boot_id: str) -> None:
        self._log("Ignition 2.14.0 (simulated)")
        stage = "fetch"
        try:
            provided = await self._provided()
            config = await render(parse(provided), self._fetcher, self._log) if provided.strip() else None
            await self._report(stage, None)
            stage = "files"
            if config is not None:
                base = parse(self._around.base_config.encode()) if self._around.base_config else {}
                config = merge(base, config)
                await Applier(self._root, self._fetcher, self._log).apply(config)
            self._result(boot_id, provided=config is not None)
            await self._report(stage, None)
        except IgnitionError as error:
            await self._report(stage, error)
            raise
        self._log("Ignition finished successfully")
        if self._kernel.installed is not None:
            _propagate(self._kernel.installed)
            self._enter_fips_mode(self._kernel.installed)
            _complete(self._kernel.installed.boot)

    async def _provided(self) -> bytes:
        """The configuration, from the first of its sources that has one: kernel argument, file, platform.

        The file of a live system is in an archive beside its initramfs, that of an installed one on its boot partition.
        """
        url = self._kernel.value("ignition.config.url")
        if url is not None:
            return await self._fetcher.get(url)
        embedded = self._kernel.config()
        if embedded is not None:
            self._log("reading system config file /usr/lib/ignition/user.ign")
            return embedded
        if self._kernel.installed is not None:
            path = self._kernel.installed.boot / "ignition/config.ign"
            if path.exists():
                self._log("reading system config file /usr/lib/ignition/user.ign")
                return path.read_bytes()
        if self._platform == "packet":
            return await self._fetcher.get(f"{self._around.metadata}/userdata")
        self._log("no config provided by user")
        return b""

    async def _afterburn(self, *, first: bool) -> None:
        """The attributes file; the platform is told of the first boot."""
        metadata = json.loads(await self._fetcher.get(f"{self._around.metadata}/metadata"))
        if afterburn.required(self._root):
            afterburn.write(self._root, metadata)
            self._line("systemd[1]: Finished Afterburn (Metadata).")
        if first:
            await self._fetcher.post(metadata["phone_home_url"], None)

    async def _report(self, stage: str, error: IgnitionError | None) -> None:
        """What Ignition's packet provider posts after each stage: next to the phone-home URL."""
        if self._platform != "packet":
            return
        metadata = json.loads(await self._fetcher.get(f"{self._around.metadata}/metadata"))
        url = str(metadata["phone_home_url"]).removesuffix("/phone-home") + "/events"
        if error is None:
            message = f"[{stage}] Ignition status: finished successfully"
        else:
            message = f"[{stage}] Ignition error: {error}"
        await self._fetcher.post(url, {"state": "failed" if error else "running", "message": message})

    def _result(self, boot_id: str, *, provided: bool) -> None:
        """The result file, in the shape Ignition 2.14 writes (internal/exec/stages/files)."""
        result = {
            "provisioningBootID": boot_id,
            "provisioningDate": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "userConfigProvided": provided,
        }
        path = self._root / "etc/.ignition-result.json"
        path.write_text(json.dumps(result, indent=2) + "\n")
        path.chmod(0o600)

    def _enter_fips_mode(self, installed: Installed) -> None:
        """What the machine's configuration wants of it, from its next boot on. RHCOS restarts at once (openshift/os,
        40rhcos-fips/rhcos-fips.sh); here that is left to the end of the first boot."""
        told = self._root / "etc/ignition-machine-config-encapsulated.json"
        wanted = told.exists() and json.loads(told.read_text())["spec"].get("fips")
        if wanted and "fips=1" not in self._kernel.arguments:
            for entry in (installed.boot / "loader/entries").glob("*.conf"):
                entry.write_text(re.sub(r"(?m)^options .*$", r"\g<0> fips=1", entry.read_text()))
            self._line("rhcos-fips[633]: FIPS mode is on from the next boot")

    def _log(self, text: str) -> None:
        self._line(f"ignition[612]: {text}")


def _propagate(installed: Installed) -> None:
    """The first boot's network stays, unless Ignition brought profiles (coreos-teardown-initramfs.sh)."""
    profiles = installed.root / "etc/NetworkManager/system-connections"
    given = sorted((installed.boot / "coreos-firstboot-network").glob("*"))
    if given and not (profiles.is_dir() and any(profiles.iterdir())):
        profiles.mkdir(parents=True, exist_ok=True)
        for path in given:
            shutil.copy(path, profiles)


def _complete(boot: Path) -> None:
    """The next boot is not the first one, and does not need what the first one was given (coreos-boot-edit.sh)."""
    (boot / "ignition/config.ign").unlink(missing_ok=True)
    shutil.rmtree(boot / "coreos-firstboot-network", ignore_errors=True)
    (boot / "ignition.firstboot").unlink()
