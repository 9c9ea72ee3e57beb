"""One simulated machine: from power on to a login, and off again."""

from __future__ import annotations

import asyncio
import json
import logging
import shutil
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import httpx

from lab.machines.base import Address, BackendError, MachineSpec
from lab.machines.simulated import afterburn, fetch, ipxe, root, ssh, unitfile
from lab.machines.simulated.console import Console
from lab.machines.simulated.ignition import IgnitionError
from lab.machines.simulated.ignition.apply import Applier
from lab.machines.simulated.ignition.render import render
from lab.machines.simulated.ignition.resource import Fetcher
from lab.machines.simulated.ignition.schema import parse
from lab.machines.simulated.units import Units

_log = logging.getLogger(__name__)
_METADATA = "https://metadata.packet.net"
"""Built into Ignition's and Afterburn's packet providers."""


class BootError(Exception):
    """The boot stops here; the text is the console's last line."""


class NoNetworkBoot(BootError):
    """Nothing to boot was found; firmware begins again after a while."""


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What a machine finds around itself."""

    ca: Path
    """The lab CA, which the image trusts."""
    boot_server: str
    """Where the firmware asks for /ipxe/<id>."""
    tools: Mapping[str, Path] = field(default_factory=dict[str, Path])
    """Programs of the image under /usr/local/bin: name → where the program is here."""
    ssh_port: int = 22
    metadata: str = _METADATA
    boot_delay: float = 0.3
    """Seconds of firmware self test."""
    boot_retry: float = 5.0
    """Seconds until firmware that found nothing to boot begins again."""
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


class Machine:
    """Its directory holds `root/`, `console.log` and `machine.json`, which says what to resume."""

    def __init__(self, spec: MachineSpec, directory: Path, around: Surroundings, downloads: fetch.Downloads) -> None:
        self.spec = spec
        self._directory = directory
        self._root = directory / "root"
        self._around = around
        self._downloads = downloads
        self._console = Console(directory / "console.log")
        self._booting: asyncio.Task[None] | None = None
        self._units: Units | None = None
        self._ssh: Any = None

    @property
    def address(self) -> str:
        """The public IPv4, where every connection of the machine comes from."""
        return self.spec.addresses[0].address

    def printed(self) -> bytes:
        """The console."""
        return self._console.printed()

    async def power_on(self) -> None:
        """Boot from the network, in the background; whatever ran is cut off."""
        await self.power_off()
        self._remember("booting")
        self._booting = asyncio.create_task(self._boot(), name=f"boot {self.spec.hostname}")

    async def power_off(self) -> None:
        """End the boot, the processes and the SSH server."""
        if self._booting is not None:
            self._booting.cancel()
            await asyncio.gather(self._booting, return_exceptions=True)
            self._booting = None
        await self._halt()
        self._remember("off")

    async def detach(self) -> None:
        """Stop what this process runs without switching the machine off: `resume` goes on."""
        if self._booting is not None:
            self._booting.cancel()
            await asyncio.gather(self._booting, return_exceptions=True)
        await self._halt()

    async def resume(self) -> None:
        """After a restart of the lab's API: what was up is served again from its directory."""
        self._console.line("systemd[1]: resumed")
        await self._serve()

    def remove(self) -> None:
        """Delete the machine's directory."""
        shutil.rmtree(self._directory, ignore_errors=False)

    async def _halt(self) -> None:
        if self._ssh is not None:
            self._ssh.close()
            self._ssh = None
        if self._units is not None:
            await self._units.stop()
            self._units = None

    def _remember(self, state: str) -> None:
        path = self._directory / "machine.json"
        fresh = path.with_suffix(".new")
        fresh.write_text(json.dumps({"state": state, "spec": asdict(self.spec)}))
        fresh.replace(path)

    # The boot, step by step

    async def _boot(self) -> None:
        try:
            await self._around.sleep(self._around.boot_delay)
            transport = fetch.client(self.address, fetch.trust_of(self._around.ca))
            async with transport as http:
                boot = await self._until_found(http)
                os_release = await self._initramfs(http, boot)
            await self._kernel(boot, os_release)
            await self._serve()
            self._remember("up")
            self._console.line(f"{self._hostname()} login: ")
        except BootError as error:
            self._console.line(str(error))
        except IgnitionError as error:
            self._console.line(f"ignition[612]: Ignition failed: {error}")
            self._console.line("systemd[1]: Started Emergency Shell.")
        except Exception:
            # A fault of the simulation itself: never silent, never the end of the lab.
            _log.exception("%s: the simulated boot broke", self.spec.hostname)
            self._console.line("Kernel panic - not syncing: the simulation broke, see the log of the lab's Metal API")

    async def _until_found(self, http: httpx.AsyncClient) -> ipxe.Boot:
        while True:
            try:
                return await self._firmware(http)
            except NoNetworkBoot as error:
                self._console.line(str(error))
                await self._around.sleep(self._around.boot_retry)

    async def _firmware(self, http: httpx.AsyncClient) -> ipxe.Boot:
        """DHCP and iPXE, until there is a kernel with its arguments."""
        first = self.spec.addresses[0]
        line = self._console.line
        line("iPXE initialising devices...")
        line(f"net0: {self.spec.mac} using simulated on {self.spec.hostname} (Ethernet)")
        line(f"Configuring (net0 {self.spec.mac})...... ok")
        line(f"net0: {first.address}/{first.prefix} gw {first.gateway}")

        async def script(url: str) -> str:
            return await self._script(http, url)

        start = f"{self._around.boot_server}/ipxe/{self.spec.id}"
        variables = {"net0/mac": self.spec.mac, "mac": self.spec.mac, "ip": first.address, "net0/ip": first.address}
        variables |= {"platform": "efi", "buildarch": "x86_64", "hostname": self.spec.hostname}
        try:
            return await ipxe.run(f"#!ipxe\nchain {start}\n", variables, script, line)
        except ipxe.IpxeError as error:
            raise NoNetworkBoot(f"iPXE: {error}\r\nNo more network devices") from error

    async def _script(self, http: httpx.AsyncClient, url: str) -> str:
        try:
            answer = await http.get(url)
        except httpx.HTTPError as error:
            raise OSError(f"{type(error).__name__}: {error}") from error
        if answer.status_code != 200:
            raise OSError(f"{answer.reason_phrase} (HTTP {answer.status_code})")
        self._console.line(f"{url}... ok")
        return answer.text

    async def _download(self, http: httpx.AsyncClient, url: str) -> fetch.Download:
        try:
            found = await self._downloads.get(http, url)
        except (fetch.FetchError, httpx.HTTPError) as error:
            raise BootError(f"{url}... {type(error).__name__}: {error}") from error
        self._console.line(f"{url}... ok ({found.size} bytes)")
        return found

    async def _initramfs(self, http: httpx.AsyncClient, boot: ipxe.Boot) -> str:
        """Load kernel, initramfs and root file system; the result is what that has for /etc/os-release.

        A simulated initramfs is a JSON object {"kind": "simulated-initramfs", "rootfs_sha256": ...}; a simulated root
        file system is an os-release file. Both are published by the lab's boot server beside the real ones.
        """
        await self._download(http, boot.kernel)
        wanted: str | None = None
        for _, url in boot.initrds:
            image = await self._download(http, url)
            wanted = _embedded_hash(image.head) or wanted
        if wanted is None:
            raise BootError("Kernel panic - not syncing: no initramfs made for simulated machines among the initrds")
        self._console.line("Linux version 0.0.0-simulated")
        self._console.line(f"Command line: {' '.join(boot.arguments)}")
        url = _argument(boot, "coreos.live.rootfs_url")
        if url is None:
            raise BootError("coreos-livepxe-rootfs: no rootfs image found: coreos.live.rootfs_url= is missing")
        found = await self._download(http, url)
        if found.sha256 != wanted:
            raise BootError(f"rootfs hash mismatch: expected {wanted} got {found.sha256}")
        return found.head.decode(errors="replace")

    async def _kernel(self, boot: ipxe.Boot, os_release: str) -> None:
        """A fresh root, and Ignition when the kernel arguments ask for it."""
        root.make(self._root, self._around.tools, os_release)
        proc = self._root / "proc"
        (proc / "cmdline").write_text(" ".join(boot.arguments) + "\n")
        boot_id = str(uuid4())
        (proc / "sys/kernel/random").mkdir(exist_ok=True)
        (proc / "sys/kernel/random/boot_id").write_text(boot_id + "\n")
        platform = _argument(boot, "ignition.platform.id")
        if "ignition.firstboot" in boot.arguments:
            if platform != "packet":
                raise BootError(f"ignition[612]: simulated machines know ignition.platform.id=packet, not {platform}")
            await self._ignite(boot_id)
        (proc / "sys/kernel/hostname").write_text(self._hostname() + "\n")

    async def _ignite(self, boot_id: str) -> None:
        def log(text: str) -> None:
            self._console.line(f"ignition[612]: {text}")

        log("Ignition 2.14.0 (simulated)")
        fetcher = Fetcher(self.address, self._around.ca, log, self._around.sleep)
        stage = "fetch"
        try:
            provided = await fetcher.get(f"{self._around.metadata}/userdata")
            config = await render(parse(provided), fetcher, log) if provided.strip() else None
            await self._report(fetcher, stage, None)
            stage = "files"
            if config is not None:
                await Applier(self._root, fetcher, log).apply(config)
            self._result(boot_id, provided=config is not None)
            metadata = json.loads(await fetcher.get(f"{self._around.metadata}/metadata"))
            await self._report(fetcher, stage, None)
            log("Ignition finished successfully")
            if afterburn.required(self._root):
                afterburn.write(self._root, metadata)
                self._console.line("systemd[1]: Finished Afterburn (Metadata).")
            await fetcher.post(metadata["phone_home_url"], None)
        except IgnitionError as error:
            await self._report(fetcher, stage, error)
            raise
        finally:
            await fetcher.close()

    async def _report(self, fetcher: Fetcher, stage: str, error: IgnitionError | None) -> None:
        """What Ignition's packet provider posts after each stage: next to the phone-home URL."""
        metadata = json.loads(await fetcher.get(f"{self._around.metadata}/metadata"))
        url = str(metadata["phone_home_url"]).removesuffix("/phone-home") + "/events"
        if error is None:
            message = f"[{stage}] Ignition status: finished successfully"
        else:
            message = f"[{stage}] Ignition error: {error}"
        await fetcher.post(url, {"state": "failed" if error else "running", "message": message})

    def _result(self, boot_id: str, *, provided: bool) -> None:
        """The result file, in the shape Ignition 2.14 writes (internal/exec/stages/files)."""
        result = {
            "provisioningBootID": boot_id,
            "provisioningDate": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "userConfigProvided": provided,
        }
        path = self._root / "etc/.ignition-result.json"
        path.write_text(json.dumps(result, indent=2) + "\n")
        path.chmod(0o600)

    def _hostname(self) -> str:
        """What Ignition wrote, else what DHCP gave."""
        path = self._root / "etc/hostname"
        return (path.read_text().strip() if path.exists() else "") or self.spec.hostname

    async def _serve(self) -> None:
        """Start units and SSH, unless the configuration masks it."""
        extra = {"LAB_ADDRESS": self.address}
        self._units = Units(self._root, self._hostname(), extra, self._console.line)
        self._units.start()
        if any(unitfile.is_masked(self._root, name) for name in unitfile.SSH_UNITS):
            self._console.line("systemd[1]: sshd.service is masked.")
            return
        try:
            self._ssh = await ssh.serve(self._root, self._hostname(), self.address, self._around.ssh_port, extra)
        except OSError as error:
            raise BackendError(f"{self.address}:{self._around.ssh_port}: {error}") from error
        self._console.line("systemd[1]: Started OpenSSH server daemon (simulated).")


def _embedded_hash(initramfs: bytes) -> str | None:
    """The hash of the root file system a simulated initramfs insists on; None for any other image."""
    try:
        document = json.loads(initramfs)
    except ValueError:
        return None
    if not isinstance(document, dict):
        return None
    fields = cast("dict[str, Any]", document)
    return str(fields.get("rootfs_sha256")) if fields.get("kind") == "simulated-initramfs" else None


def _argument(boot: ipxe.Boot, name: str) -> str | None:
    """The last value of a kernel argument."""
    values = [entry.partition("=")[2] for entry in boot.arguments if entry.startswith(f"{name}=")]
    return values[-1] if values else None


def saved(directory: Path) -> tuple[str, MachineSpec] | None:
    """State and spec of a machine that a former process ran; None for a directory without them."""
    path = directory / "machine.json"
    if not path.exists():
        return None
    document = json.loads(path.read_text())
    spec = document["spec"]
    spec["addresses"] = tuple(Address(**entry) for entry in spec["addresses"])
    return document["state"], MachineSpec(**spec)
