"""A machine as seen over SSH: the host key tells which of its systems answers.

All decisions of an installation are based on the machine itself, never on notes of an earlier run. So a run after a
killed one continues from the machine's current state.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from metal_ipi.provider.gates.first_boot import QUESTION as _FIRST_BOOT
from metal_ipi.provider.gates.ssh import NotYet, WrongHostKey, run
from metal_ipi.provider.installation.inputs import Job
from metal_ipi.provider.resources.gate_kinds import GateNode

_STATUS = "/run/metal-ipi/install.json"
_MARKER = "/etc/metal-ipi/installation.json"
_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_CERTIFICATE = "/var/lib/kubelet/pki/kubelet-client-current.pem"
_JOINED = f"sudo -n sh -c 'if [ -e {_CERTIFICATE} ] || [ -L {_CERTIFICATE} ]; then echo yes; else echo no; fi'"
_MEMBERSHIP = f"{_JOINED}; {_FIRST_BOOT}"
_SERVICE = "metal-ipi-install.service"
_FAILED = f"sudo -n systemctl is-failed --quiet {_SERVICE} 2>/dev/null && echo yes || echo no"
_JOURNAL = f"sudo -n journalctl --boot --unit={_SERVICE} --lines=5 --output=cat --no-pager"
_AUTHORITIES = "/etc/pki/tls/certs/ca-bundle.crt"
"""The file with the authorities that RHCOS trusts."""
_KEY_TIMEOUT = 10.0
_ENDS = ("done", "failed", "expired")
"""Final states of the installer."""


@dataclass(frozen=True, kw_only=True)
class Installing:
    """The live system answers."""

    state: str
    """One of: waiting, held, installing, done, failed, expired."""
    generation: str
    """The generation that it installs; empty before its installer has started."""
    boot_id: str
    step: str = ""
    device: str = ""
    """A stable path of the chosen disk."""
    reason: str = ""
    remedy: str = ""


@dataclass(frozen=True, kw_only=True)
class Installed:
    """The system on disk answers."""

    generation: str
    """The generation in its marker; empty if it has no marker of this cluster and machine."""
    boot_id: str
    joined: bool
    """Whether its kubelet ever got a certificate from a cluster; True if that is unknown."""
    first_boot: str
    """The progress of its first boot, for `FirstBoot`."""


@dataclass(frozen=True, kw_only=True)
class Silent:
    """No known system answers."""

    why: str
    stranger: bool = False
    """Whether a system answers whose host key is none of the machine's."""


Seen = Installing | Installed | Silent


async def look(job: Job) -> Seen:
    """Find out which system answers, and its state. Raises nothing for what a machine does."""
    try:
        # The live system is asked again at the end: the machine may have booted into it after the first question.
        for ask in (_ask_live, _ask_disk, _ask_live):
            with contextlib.suppress(WrongHostKey):
                return await ask(job)
    except NotYet as error:
        return Silent(why=str(error))
    return Silent(why="SSH answers with a host key that is not the machine's", stranger=True)


async def _ask_live(job: Job) -> Seen:
    status, boot_id, failed = await _read(job, job.installing, _STATUS, _FAILED)
    seen = _installing(status, boot_id)
    return await _speechless(job, seen) if failed == "yes" and seen.state not in _ENDS else seen


async def _ask_disk(job: Job) -> Seen:
    return _installed(job, await _read(job, job.installed, _MARKER, _MEMBERSHIP))


async def _read(job: Job, node: GateNode, document: str, question: str) -> tuple[Mapping[str, Any], str, str]:
    """Read a JSON document (empty if missing), the boot's id, and a command's output. Raises NotYet."""
    command = f"cat {_BOOT_ID}; echo $({question}); cat {document} 2>/dev/null || true"
    lines = (await run(node, job.access(), command)).splitlines()
    if len(lines) < 2:
        raise NotYet("SSH: an incomplete answer")
    try:
        found = json.loads("\n".join(lines[2:]) or "{}")
    except ValueError:
        raise NotYet(f"{document} is not JSON") from None
    if not isinstance(found, dict):
        raise NotYet(f"{document} is not a JSON object")
    return found, lines[0], lines[1]


async def _speechless(job: Job, seen: Installing) -> Installing:
    """The state of an installer that ended without a report: it could not be started, or was killed."""
    try:
        lines = (await run(job.installing, job.access(), _JOURNAL)).splitlines()
        said = f"its journal ends with: {' | '.join(line.strip() for line in lines) or 'nothing'}"
    except (NotYet, WrongHostKey) as error:
        said = f"its journal cannot be read ({error})"
    reason = f"{_SERVICE} failed in state `{seen.state}` and reported no reason; {said}"
    remedy = (
        f"Look at `journalctl -u {_SERVICE}` on the live system; correct the cause, then run the same command again"
    )
    return replace(seen, state="failed", reason=reason, remedy=remedy)


def _installing(status: Mapping[str, Any], boot_id: str) -> Installing:
    texts = {key: str(status.get(key) or "") for key in ("generation", "step", "reason", "remedy")}
    return Installing(
        state=str(status.get("state") or "waiting"),
        device=str(status.get("stable") or status.get("device") or ""),
        boot_id=boot_id,
        **texts,
    )


def _installed(job: Job, answer: tuple[Mapping[str, Any], str, str]) -> Installed:
    marker, boot_id, said = answer
    words = said.split()
    ours = marker.get("cluster") == job.cluster and marker.get("machine") == job.node
    generation = str(marker.get("generation") or "") if ours else ""
    # If the machine does not tell (sudo refuses, or its disk fails), assume that it is part of the cluster.
    return Installed(
        generation=generation, boot_id=boot_id, joined=words[:1] != ["no"], first_boot=words[-1] if words else ""
    )


async def host_key(job: Job) -> str:
    """The fingerprint of the host key at the machine's address."""
    import asyncssh

    try:
        key = await asyncio.wait_for(asyncssh.get_server_host_key(job.address, job.ssh_port, config=None), _KEY_TIMEOUT)
    except (OSError, asyncssh.Error, TimeoutError):
        key = None
    return key.get_fingerprint() if key else "(it does not answer any more)"


async def kexec(job: Job, node: GateNode, authorities: str | None) -> None:
    """Boot a running system into the live system by kexec; returns before it goes down. Raises NotYet or
    WrongHostKey."""
    await run(node, job.access(), "sudo -n bash -s", kexec_script(job, authorities), timeout=_KEXEC_TIMEOUT)


async def reboot(job: Job, node: GateNode) -> None:
    """Reboot a running system; returns before it goes down. Raises NotYet or WrongHostKey."""
    await run(node, job.access(), "sudo -n bash -s", _later("systemctl reboot"))


_KEXEC_TIMEOUT = 900.0
"""Downloading the live kernel and initramfs takes long: they have 100 MB."""


def kexec_script(job: Job, authorities: str | None = None) -> str:
    """The script by which a running node boots its own installer. It is passed on standard input, because it contains
    secret URLs.

    `authorities` (PEM) are those of the artifact host that systems do not trust already. kexec takes one initramfs, so
    the archive with the live system's Ignition is appended to it, at a multiple of four bytes, where the kernel expects
    a further archive (Linux, init/initramfs.c).
    """
    live = job.live
    assert live.kernel is not None and live.initramfs is not None, "it has them, or its pool"
    named = {"kernel": live.kernel, "initramfs": live.initramfs, **({"config": live.config} if live.config else {})}
    files = "\n".join(f"fetch {name} {shlex.quote(file.url)} {file.sha256}" for name, file in named.items())
    if live.config is not None:
        files += "\ntruncate --size=%4 initramfs\ncat config >>initramfs"
    arguments = shlex.quote(f"--command-line={' '.join((*job.live.arguments, *job.arguments_now()))}")
    return f"""set -euo pipefail
command -v kexec >/dev/null || {{ echo "the node has no kexec" >&2; exit 1; }}
directory=$(TMPDIR=${{TMPDIR:-/var/tmp}} mktemp -d -t metal-ipi-kexec.XXXXXX)
trap 'rm -rf "$directory"' EXIT
cd "$directory"
{_trust(authorities)}
fetch() {{
    curl --fail --silent --show-error --location --retry 3 "${{trust[@]}}" --output "$1" "$2"
    printf '%s  %s\\n' "$3" "$1" | sha256sum -c >/dev/null
}}
{files}
# Where only signed kernels may be started, the kernel itself has to look at the file (-s); elsewhere it may refuse to.
kexec -s -l kernel --initrd=initramfs {arguments} 2>/dev/null || kexec -l kernel --initrd=initramfs {arguments}
sync
{_later("systemctl kexec || kexec -e")}"""


def _trust(authorities: str | None) -> str:
    """Makes curl trust these authorities too: it takes one file, which must contain all of them."""
    if authorities is None:
        return "trust=()"
    system = f"if [ -e {_AUTHORITIES} ]; then cat {_AUTHORITIES}; fi >ca.pem"
    return f"{system}\ncat >>ca.pem <<'END'\n{authorities.strip()}\nEND\ntrust=(--cacert ca.pem)"


def _later(command: str) -> str:
    """Run a command a second later, independent of the SSH connection."""
    return f"setsid --fork sh -c {shlex.quote(f'sleep 1; {command}')} </dev/null >/dev/null 2>&1\n"


def describe(seen: Seen) -> str:
    """What was seen, in a few words."""
    if isinstance(seen, Silent):
        return seen.why
    if isinstance(seen, Installing):
        return seen.step or f"its installer says {seen.state}"
    if seen.generation:
        return f"it runs generation {seen.generation}"
    return "it runs from disk, and was not installed by this program"
