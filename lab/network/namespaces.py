"""The system calls for namespaces. Python has setns and unshare only from 3.12 on."""

from __future__ import annotations

import ctypes
import os
import signal
from pathlib import Path

CLONE_NEWNS = 0x00020000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_BIND = 2, 4, 8, 4096
_PR_SET_PDEATHSIG = 1

KINDS = {"user": CLONE_NEWUSER, "pid": CLONE_NEWPID, "net": CLONE_NEWNET, "mnt": CLONE_NEWNS}
"""The namespaces that a lab has, by their names under /proc/<pid>/ns, in the order in which they are entered."""

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def enter(descriptor: int, kind: str) -> None:
    """Join the namespace behind `descriptor`; a pid namespace is joined by the children made from then on."""
    _check(_libc.setns(descriptor, KINDS[kind]), f"setns({kind})")


def unshare(flags: int) -> None:
    """Leave the namespaces named by `flags` for new ones."""
    _check(_libc.unshare(flags), "unshare")


def die_with_parent() -> None:
    """Make the kernel kill this process when the thread that started it ends. A change of credentials undoes this."""
    _check(_libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0), "prctl(PR_SET_PDEATHSIG)")


def bind_file(source: Path, target: Path) -> None:
    """Let `target` show `source`, in this mount namespace."""
    arguments = (os.fsencode(source), os.fsencode(target), None, _MS_BIND, None)
    _check(_libc.mount(*arguments), f"bind {source} to {target}")


def mount_proc() -> None:
    """Show the processes of this pid namespace under /proc."""
    _check(_libc.mount(b"proc", b"/proc", b"proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC, None), "mount /proc")


def mount_tmpfs(target: Path) -> None:
    """Cover `target` with an empty directory of this mount namespace."""
    _check(
        _libc.mount(b"tmpfs", os.fsencode(target), b"tmpfs", _MS_NOSUID | _MS_NODEV, b"mode=0755"), f"tmpfs {target}"
    )


def identity(pid: int | str, kind: str) -> str:
    """The identity of a process's namespace, such as `net:[4026532201]`."""
    return str(Path(f"/proc/{pid}/ns/{kind}").readlink())
