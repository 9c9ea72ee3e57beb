"""Programs that end what runs: reboot, poweroff, systemctl, kexec."""

from __future__ import annotations

import shlex

from lab.machines.simulated.kernel import Kernel
from lab.machines.simulated.programs import Answer, Arguments, Call, Host, Refused

_QUIET = ("--force", "-f", "--no-block")


async def systemctl(call: Call, host: Host) -> Answer:
    """What ends the machine, and whether a unit is activating. Everything else is asked of the host's systemctl."""
    words = [word for word in call.arguments if word not in _QUIET]
    if words == ["reboot"]:
        host.power.reboot()
    elif words == ["poweroff"]:
        host.power.shutdown()
    elif words == ["kexec"]:
        _execute(host)
    elif words[:1] == ["is-active"] and words[1:] and words[-1] in host.activating():
        return Answer(status=3, stdout="activating\n")
    else:
        return Answer(then=shlex.join(["systemctl", *call.arguments]))
    return Answer()


async def reboot_or_poweroff(call: Call, host: Host) -> Answer:
    """`reboot` through the firmware, `poweroff`."""
    Arguments("-f/--force").parse_args(call.arguments)
    if call.name == "reboot":
        host.power.reboot()
    else:
        host.power.shutdown()
    return Answer()


async def kexec(call: Call, host: Host) -> Answer:
    """`--load` a kernel, or `--exec` the one that is loaded."""
    options = Arguments("-l/--load", "-e/--exec", "-s/--kexec-file-syscall")
    options.add_argument("--initrd")
    options.add_argument("--command-line", default="")
    options.add_argument("kernel", nargs="?")
    given = options.parse_args(call.arguments)
    if given.exec == given.load or given.load != bool(given.kernel):
        raise Refused("simulated machines know --load with a kernel, and --exec")
    if given.exec:
        _execute(host)
        return Answer()
    images: list[bytes] = []
    for name in (given.kernel, *([given.initrd] if given.initrd else [])):
        path = host.path(call, name)
        if not path.is_file():
            raise Refused(f"cannot open {name}: No such file or directory")
        images.append(path.read_bytes())
    host.loaded = Kernel(arguments=tuple(given.command_line.split()), initrds=tuple(images[1:]))
    return Answer()


def _execute(host: Host) -> None:
    if host.loaded is None:
        raise Refused("Nothing has been loaded!")
    host.power.kexec(host.loaded)
