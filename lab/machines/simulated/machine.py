"""One simulated machine: its life from power on to a login, through reboots, to power off."""

from __future__ import annotations

import asyncio
import json
import logging
import shutil
from collections.abc import Callable, Collection, Coroutine
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

import httpx

from lab.machines.base import BackendError, BootOrder, Disk, MachineSpec, Power, cards, network_only
from lab.machines.simulated import fetch, host_network, quirks, record, root, ssh, unitfile
from lab.machines.simulated.console import Console
from lab.machines.simulated.disk import Disks
from lab.machines.simulated.firmware import Firmware, download
from lab.machines.simulated.hardware import Hardware
from lab.machines.simulated.ignition import IgnitionError
from lab.machines.simulated.kernel import BootError, Kernel
from lab.machines.simulated.programs import Host
from lab.machines.simulated.provision import Provision
from lab.machines.simulated.root import System
from lab.machines.simulated.surroundings import Surroundings
from lab.machines.simulated.units import Units
from lab.network import plan

_log = logging.getLogger(__name__)
_State = Literal["off", "booting", "up"]
_FAREWELL = 0.1
"""Seconds between the wish to reboot and the end of sessions: who wishes it by SSH is told that it was heard."""
_MARK = "LAB_ADDRESS"
"""The environment variable that marks a machine's processes."""


class Machine:
    """Its directory holds `root/` of live systems, `disks/`, `console.log` and a record of what to resume."""

    def __init__(
        self,
        spec: MachineSpec,
        directory: Path,
        around: Surroundings,
        downloads: fetch.Downloads,
        order: BootOrder = network_only,
    ) -> None:
        self.spec = spec
        self.order = order
        """Asked at every boot."""
        self._directory = directory
        self._around = around
        self._downloads = downloads
        self._console = Console(directory / "console.log")
        self._disks = Disks(spec.disks, directory / "disks")
        self._state: _State = "off"
        self._boots = 0
        """Counts boots and power cuts: what a former boot wanted is out of date."""
        self._changing = asyncio.Lock()
        self._booting: asyncio.Task[None] | None = None
        self._wishes: set[asyncio.Task[None]] = set()
        self._system: System | None = None
        self._hardware: Hardware | None = None
        self._units: Units | None = None
        self._ssh: ssh.Listener | None = None
        self.address = spec.addresses[0].address
        """The public IPv4, where every connection of the machine comes from."""
        self._ipv6 = ""
        """Its IPv6 address since its last boot; empty: none."""

    @property
    def power(self) -> Power:
        """Whether it has power."""
        return "off" if self._state == "off" else "on"

    def printed(self) -> bytes:
        """The console."""
        return self._console.printed()

    def put_in(self, disks: tuple[Disk, ...]) -> None:
        """Use these disks from the next boot on: a controller may have made volumes of them."""
        if disks != self.spec.disks:
            self.spec = replace(self.spec, disks=disks)
            self._disks = Disks(disks, self._directory / "disks")

    async def power_on(self) -> None:
        """Boot, in the background; whatever ran is cut off."""
        async with self._changing:
            await self._stop(patient=False)
            self._start(None)

    async def power_off(self) -> None:
        """End the boot, the processes and the SSH server at once."""
        async with self._changing:
            await self._stop(patient=False)
            self._remember("off")

    async def detach(self) -> None:
        """Stop what this process runs without switching the machine off: `resume` goes on."""
        for wish in list(self._wishes):
            wish.cancel()
        await asyncio.gather(*self._wishes, return_exceptions=True)
        async with self._changing:
            await self._stop(patient=True)

    async def resume(self) -> None:
        """After a restart of the lab's process: what was up is served again from its directory."""
        told = json.loads((self._directory / record.NAME).read_text())
        state, known = told["state"], told.get("system")
        if state == "up" and known is not None:
            self._console.line("systemd[1]: resumed")
            boot = known["boot"] and self._directory / known["boot"]
            self._ipv6 = known.get("ipv6", "")
            await self._serve(self._described(self._directory / known["root"], boot))
            self._remember("up")
        elif state != "off":
            await self.power_on()

    def shutdown(self) -> None:
        """The power button: an operating system that is up ends its services and powers off, in the background."""
        if self._state == "up":
            self._wish(self._leave("Powering off", None))

    def reboot(self) -> None:
        """The operating system resets the machine, in the background: the firmware boots again."""
        self._wish(self._leave("Rebooting", lambda: self._start(None)))

    def kexec(self, kernel: Kernel) -> None:
        """The operating system starts another kernel, in the background, without the firmware."""
        self._wish(self._leave("Rebooting with kexec", lambda: self._start(kernel)))

    def blank(self, serials: Collection[str]) -> None:
        """Take disks out of a machine that is off; the firmware puts in new ones."""
        for disk in self._disks.all:
            if disk.serial in serials:
                disk.path.unlink(missing_ok=True)

    def remove(self) -> None:
        """Delete the machine's directory."""
        shutil.rmtree(self._directory, ignore_errors=False)

    # From one state to another

    def _wish(self, what: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(what, name=f"leave {self.spec.hostname}")
        self._wishes.add(task)
        task.add_done_callback(self._wishes.discard)

    async def _leave(self, how: str, then: Callable[[], None] | None) -> None:
        """End what runs in good order, unless the machine was cut off or rebooted since."""
        boot = self._boots
        await asyncio.sleep(_FAREWELL)
        async with self._changing:
            if boot != self._boots or self._state != "up":
                return
            await self._stop(patient=True)
            self._console.line(f"systemd-shutdown[1]: {how}.")
            if then is None:
                self._remember("off")
            else:
                then()

    def _start(self, kernel: Kernel | None) -> None:
        self._remember("booting")
        self._booting = asyncio.create_task(self._boot(kernel), name=f"boot {self.spec.hostname}")

    async def _stop(self, *, patient: bool) -> None:
        self._boots += 1
        if self._booting is not None:
            self._booting.cancel()
            await asyncio.gather(self._booting, return_exceptions=True)
            self._booting = None
        if self._ssh is not None:
            self._ssh.close()
            self._ssh = None
        if self._units is not None:
            await self._units.stop(patient=patient)
            self._units = None
        if self._hardware is not None:
            await self._hardware.close()
            self._hardware = None
        root.end_processes(_MARK, self.address)

    def _remember(self, state: _State) -> None:
        self._state = state
        path = self._directory / record.NAME
        fresh = path.with_suffix(".new")
        told: dict[str, Any] = {"state": state, "spec": asdict(self.spec)}
        if state == "up" and self._system is not None:
            boot = self._system.boot
            told["system"] = {
                "root": str(self._system.root.relative_to(self._directory)),
                "boot": str(boot.relative_to(self._directory)) if boot else "",
                "ipv6": self._ipv6,
            }
        fresh.write_text(json.dumps(told))
        fresh.replace(path)

    # The boot, step by step

    async def _boot(self, kernel: Kernel | None) -> None:
        """From power on, or from a kernel that is there already."""
        try:
            async with fetch.client(self.address, fetch.trust_of(self._around.ca)) as http:
                if kernel is None:
                    kernel = await self._firmware(http)
                self._console.line("Linux version 0.0.0-simulated")
                self._console.line(f"Command line: {' '.join(kernel.arguments)}")
                links = self._network(kernel)
                directory = await self._root(kernel)
            boot_id = self._proc(directory, kernel, self.spec)
            host_network.populate(directory, cards(self.spec), links)
            host_network.populate_ipv6(directory, self.spec.ipv6 if self._ipv6 else None)
            await Provision(kernel, directory, self.address, self._around, self._console.line).run(boot_id)
            system = self._described(directory, kernel.installed and kernel.installed.boot)
            (directory / "proc/sys/kernel/hostname").write_text(system.hostname + "\n")
            await self._serve(system)
            self._remember("up")
            self._console.line(f"{system.hostname} login: ")
        except BootError as error:
            self._console.line(str(error))
        except IgnitionError as error:
            self._console.line(f"ignition[612]: Ignition failed: {error}")
            self._console.line("systemd[1]: Started Emergency Shell.")
        except Exception:
            # A fault of the simulation itself: never silent, never the end of the lab.
            _log.exception("%s: the simulated boot broke", self.spec.hostname)
            self._console.line("Kernel panic - not syncing: the simulation broke, see the log of the lab's service")

    async def _firmware(self, http: httpx.AsyncClient) -> Kernel:
        await self._around.sleep(self._around.boot_delay)
        self._disks.make()
        firmware = Firmware(self.spec, self._around, self._downloads, self._disks, self._console)
        return await firmware.boot(http, self.order(self.spec.id))

    def _network(self, kernel: Kernel) -> dict[str, host_network.Link]:
        """The bonds, VLANs and cards of nmstatectl's profiles; of other networks only the console tells."""
        given = self._directory / "firstboot-network"
        shutil.rmtree(given, ignore_errors=True)
        profiles = kernel.profiles()
        for name, text in kernel.embedded_profiles().items():
            given.mkdir(exist_ok=True)
            profiles.append(given / name)
            profiles[-1].write_text(text)
            profiles[-1].chmod(0o600)
        links: dict[str, host_network.Link] = {}
        if host_network.is_one(profiles):
            links = kernel.check_host_network(profiles, self.spec.addresses, cards(self.spec))
        else:
            for line in kernel.check_network(self.spec.addresses):
                self._console.line(line)
        ipv6 = kernel.check_ipv6(profiles, self.spec.ipv6)
        self._ipv6 = ipv6.address if ipv6 is not None else ""
        if ipv6 is not None:
            self._console.line(f"NetworkManager: {ipv6.address}/{ipv6.prefix} via {ipv6.gateway}")
        for link in links.values():
            self._console.line(f"NetworkManager: {link.told}")
        return links

    async def _root(self, kernel: Kernel) -> Path:
        """The root file system, as it is when the kernel starts: a fresh one for a live system."""
        if kernel.installed is not None:
            directory = kernel.installed.root
        else:
            directory = self._directory / "root"
            root.make(directory, self._around.lab_openshift, await self._live_image(kernel))
        root.start(directory, self._disks, live=kernel.installed is None)
        return directory

    async def _live_image(self, kernel: Kernel) -> str:
        """What a live system's root file system has for /etc/os-release, which is all that a simulated one is."""
        wanted = kernel.rootfs_hash()
        url = kernel.value("coreos.live.rootfs_url")
        if url is None:
            raise BootError("coreos-livepxe-rootfs: no rootfs image found: coreos.live.rootfs_url= is missing")
        # curl --insecure: its hash is checked (fedora-coreos-config, coreos-livepxe-rootfs.sh).
        async with fetch.client(self.address, fetch.no_trust()) as anybody:
            found = await download(anybody, self._downloads, url)
        self._console.line(f"{url}... ok ({found.size} bytes)")
        if found.sha256 != wanted:
            raise BootError(f"rootfs hash mismatch: expected {wanted} got {found.sha256}")
        return found.head.decode(errors="replace")

    @staticmethod
    def _proc(directory: Path, kernel: Kernel, spec: MachineSpec) -> str:
        """Write the kernel's files below /proc; returns the boot id."""
        boot_id = str(uuid4())
        (directory / "proc/cmdline").write_text(" ".join(kernel.arguments) + "\n")
        # It has run for longer than anything of it needs to start: its disks are files.
        (directory / "proc/uptime").write_text("90.00 90.00\n")
        (directory / "proc/sys/crypto").mkdir(exist_ok=True)
        (directory / "proc/sys/crypto/fips_enabled").write_text(f"{int('fips=1' in kernel.arguments)}\n")
        (directory / "proc/meminfo").write_text(f"MemTotal: {spec.memory_mib << 10} kB\n")
        (directory / "proc/cpuinfo").write_text("".join(f"processor\t: {each}\n\n" for each in range(spec.cpus)))
        root_device = "/dev/disk/by-partlabel/root / ext4 rw 0 0" if kernel.installed else "tmpfs / tmpfs rw 0 0"
        (directory / "proc/mounts").write_text(f"{root_device}\n")
        (directory / "proc/sys/kernel/random/boot_id").write_text(boot_id + "\n")
        return boot_id

    def _described(self, directory: Path, boot: Path | None) -> System:
        """The system below a directory; its name is what Ignition wrote, else what DHCP gave."""
        path = directory / "etc/hostname"
        return System(
            root=directory,
            hostname=(path.read_text().strip() if path.exists() else "")
            or quirks.load(self._directory).hostname
            or self.spec.hostname,
            variables={_MARK: self.address, "LAB_ADDRESS_IPV6": self._ipv6, "LAB_WIRE": _wire(self.spec)},
            filesystems=self._disks.filesystems if self.spec.disks else None,
            boot=boot or None,
        )

    async def _serve(self, system: System) -> None:
        """Start units and SSH, unless the configuration masks it."""
        self._system = system
        self._units = units = Units(system, self._console.line)
        host = Host(
            spec=self.spec,
            directory=self._directory,
            around=self._around,
            root=system.root,
            disks=self._disks,
            power=self,
            line=self._console.line,
            activating=lambda: units.activating,
        )
        self._hardware = Hardware(host)
        await self._hardware.open()
        units.start()
        if any(unitfile.is_masked(system.root, name) for name in unitfile.SSH_UNITS):
            self._console.line("systemd[1]: sshd.service is masked.")
            return
        self._ssh = ssh.Listener(system)
        try:
            await self._ssh.open([self.address, *filter(None, [self._ipv6])], self._around.ssh_port)
        except OSError as error:
            raise BackendError(f"{self.address}:{self._around.ssh_port}: {error}") from error
        self._console.line("systemd[1]: Started OpenSSH server daemon (simulated).")


def _wire(spec: MachineSpec) -> str:
    """The address, with gateway, of what has a network stack of its own (lab/openshift/node/wire.go).

    It is the private one. A server of a rack has none, and gets one that nobody is told.
    """
    for each in spec.addresses:
        if not each.public:
            return f"{each.address}/{each.prefix} {each.gateway}"
    _, _, third, fourth = spec.addresses[0].address.split(".")
    return f"169.254.{third}.{fourth}/32 {plan.BGP_PEERS[0]}"
