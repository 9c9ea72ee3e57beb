"""A libvirtd of the lab's own, in namespaces of its own: it sees no configuration of the host and leaves nothing.

libvirtd has the places of its files built in (/etc/libvirt, /var/lib/libvirt, ...). In its mount namespace
these are fresh, and the machines' directory is bound to /mnt, so that no path depends on where the state directory is.
/dev has only what is needed, above all no kvm: one that exists and does not work makes libvirtd examine QEMU again, for
seconds, whenever it needs it.

In its process namespace a shell is init: QEMU makes itself a daemon, libvirtd waits for it to be reaped, and when the
shell is killed, the kernel ends libvirtd and every machine with it. It dies with our process. virsh joins both.

Who runs in the lab's network namespace reaches it at URI, over the loopback: a stack may make a virtual machine there.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from lab.machines.base import BackendError, run

URI = "qemu+tcp://127.0.0.1/system"
MACHINES = "/mnt"
"""The path of the machines' directory inside the namespace."""

_ENTER = """
set -e
mount --bind "$1" /mnt
for place in /run /var; do mount -t tmpfs -o mode=0755 lab-libvirt $place; done
ln -s /run /var/run
mkdir -p /run/libvirt /var/cache /var/lib /var/log /var/tmp
mount -t tmpfs -o mode=0755 lab-libvirt /etc
mkdir -p /etc/libvirt /run/drivers /run/dev/net /run/dev/shm
for device in full net/tun null random tty urandom zero; do
  touch /run/dev/$device
  mount --bind /dev/$device /run/dev/$device
done
mkdir /run/dev/pts
mount -t devpts -o newinstance,ptmxmode=0666 lab-libvirt /run/dev/pts
ln -s pts/ptmx /run/dev/ptmx
mount --rbind /run/dev /dev
for user in root:x:0:0 libvirt-qemu:x:64055:64055; do echo "$user::/:/bin/sh"; done >/etc/passwd
for group in root:x:0 libvirt-qemu:x:64055 kvm:x:109 libvirt:x:110; do echo "$group:"; done >/etc/group
ln -s /usr/lib/*/libvirt/connection-driver/libvirt_driver_qemu.so /run/drivers
export LIBVIRT_DRIVER_DIR=/run/drivers
cat >/etc/libvirt/qemu.conf <<'END'
user = "root"
group = "root"
dynamic_ownership = 0
remember_owner = 0
security_driver = "none"
namespaces = []
cgroup_controllers = []
stdio_handler = "file"
END
cat >/etc/libvirt/libvirtd.conf <<'END'
auth_unix_ro = "none"
auth_unix_rw = "none"
listen_tls = 0
listen_tcp = 1
listen_addr = "127.0.0.1"
auth_tcp = "none"
END
libvirtd --listen
exit $?  # not the last command: the shell stays, and is init
"""

_START_SECONDS = 20.0


class LibvirtDaemon:
    """libvirtd as a child of this process, and virsh to talk to it."""

    def __init__(self, machines: Path, log: Path) -> None:
        """`machines` is the directory that domains find at MACHINES; `log` takes what libvirtd says."""
        self._machines = machines
        self._log = log
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start it and wait until it answers; raises BackendError."""
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *("unshare", "--mount", "--propagation", "private", "sh", "-c", _ENTER, "libvirtd", self._machines),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        deadline = asyncio.get_running_loop().time() + _START_SECONDS
        while True:
            try:
                await self.virsh("version", "--daemon")
            except BackendError as error:
                if self._process.returncode is not None or asyncio.get_running_loop().time() > deadline:
                    raise BackendError(f"libvirtd does not answer: {error}; see {self._log}") from error
                await asyncio.sleep(0.1)
            else:
                return

    async def virsh(self, *arguments: str, stdin: str = "") -> str:
        """Run one virsh command; its output, or a BackendError with libvirt's words."""
        return await run(*self._command(*arguments), stdin=stdin, called=f"virsh {arguments[0]}")

    async def watch(self) -> asyncio.StreamReader:
        """Report power events of guests, one line per event, until libvirtd ends.

        virsh says `ready` once it is connected; what machines started after that do is not missed.
        """
        with self._log.open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                *self._command("echo ready; qemu-monitor-event --loop --event SHUTDOWN"),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
            )
        assert process.stdout is not None
        try:
            await process.stdout.readuntil(b"ready")
        except asyncio.IncompleteReadError as error:
            raise BackendError(f"virsh cannot watch machines; see {self._log}") from error
        return process.stdout

    def _command(self, *arguments: str) -> tuple[str, ...]:
        if self._process is None or self._process.returncode is not None:
            raise BackendError(f"libvirtd does not run; see {self._log}")
        namespaces = f"/proc/{self._process.pid}/ns"
        enter = ("nsenter", f"--mount={namespaces}/mnt", f"--pid={namespaces}/pid_for_children")
        return (*enter, "virsh", "--quiet", "--connect", "qemu:///system", *arguments)

    async def stop(self) -> None:
        """End libvirtd and cut the power of every machine."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()
        self._process = None
