"""Commands of the user: on a node before it is rebooted, and on this host to boot a machine that cannot be booted
otherwise."""

from __future__ import annotations

import asyncio
import os
import signal

from metal_ipi.provider.errors import ProviderError, RemoteError
from metal_ipi.provider.gates.ssh import NotYet, WrongHostKey, run
from metal_ipi.provider.installation.inputs import Job
from metal_ipi.provider.status import Status

_SHOWN = 2000
"""The number of characters of a failed command's output that are shown."""


async def before_reboot(job: Job, status: Status, *, timeout: float) -> None:
    """Run `preRebootCommands` on the node, one after the other, each by `sh` as root. Raises ProviderError."""
    for number, command in enumerate(job.pre_reboot_commands, start=1):
        await status.live(f"running pre-reboot command {number} of {len(job.pre_reboot_commands)} on {job.hostname}")
        try:
            await run(job.installed, job.access(job.installed), "sudo -n sh -s", command, timeout=timeout)
        except (NotYet, WrongHostKey) as error:
            raise ProviderError(
                f"pre-reboot command {number} failed on {job.hostname}: {error}. Nothing was installed, and the node "
                "stays cordoned: correct the command in `reprovision.preRebootCommands`, or the cause of its failure"
            ) from None


async def boot_by_commands(job: Job, environment: dict[str, str], status: Status, *, timeout: float) -> None:
    """Run `pxeCommands` on this host, each by `sh -c`. Secrets are passed only in their environment. Raises
    RemoteError."""
    names = {"MACHINE": job.hostname, "DOMAIN": job.cluster, "NODE": job.node}
    values = {**names, "MAC": job.mac or "", "ADDRESS": job.address, **environment}
    # The engine's own variables can decrypt the state, so commands must not get them.
    own = {name: value for name, value in os.environ.items() if not name.startswith("PULUMI_")}
    password = values.get("BMC_PASSWORD")
    for number, command in enumerate(job.pxe_commands, start=1):
        await status.live(f"running command {number} of {len(job.pxe_commands)} to boot {job.hostname}")
        code, output = await _shell(command, {**own, **values}, timeout=timeout)
        if code != 0:
            how = f"did not end within {timeout:g} s" if code is None else f"ended with {code}"
            said = (output.replace(password, "[secret]") if password else output).strip()[-_SHOWN:] or "nothing"
            raise RemoteError(
                f"command {number} of `reprovision.pxeCommands` {how}; it should boot machine {job.hostname} from "
                f"the network; it said: {said}"
            )


async def _shell(command: str, environment: dict[str, str], *, timeout: float) -> tuple[int | None, str]:
    """Run a command; returns its exit status (None if the time was up) and output. On timeout its children are killed
    too."""
    process = await asyncio.create_subprocess_exec(
        "sh",
        "-c",
        command,
        env=environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    parts: list[bytes] = []

    async def read() -> int:
        assert process.stdout is not None
        while part := await process.stdout.read(65536):
            parts.append(part)
        return await process.wait()

    code: int | None = None
    try:
        code = await asyncio.wait_for(read(), timeout)
    except TimeoutError:
        pass
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    return code, b"".join(parts).decode(errors="replace")
