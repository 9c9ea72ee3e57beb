"""Programs that end what runs: reboot, poweroff, systemctl, kexec."""

from __future__ import annotations

import shlex

from lab.machines.simulated.kernel import Kernel
from lab.machines.simulated.programs import Answer, Call, Host, Refused

_VALUED = ("initrd", "command-line", "append")


async def reboot(call: Call, host: Host) -> Answer:
    """Boot again, through the firmware."""
    _without_arguments(call)
    host.power.reboot()
    return Answer()


async def poweroff(call: Call, host: Host) -> Answer:
    """Switch off."""
    _without_arguments(call)
    host.power.shutdown()
    return Answer()


async def systemctl(call: Call, host: Host) -> Answer:
    """What ends the machine, and whether a unit is activating. Everything else is asked of the host's systemctl."""
    words = [word for word in call.arguments if word not in ("--force", "-f", "--no-block", "--no-wall", "-i")]
    if words == ["reboot"]:
        host.power.reboot()
    elif words == ["poweroff"]:
        host.power.shutdown()
    elif words == ["kexec"]:
        _execute(host)
    elif words[:1] == ["is-active"] and len(words) == 2 and words[1] in host.activating():
        return Answer(status=3, stdout="activating\n")
    else:
        return Answer(then=shlex.join(["systemctl", *call.arguments]))
    return Answer()


async def kexec(call: Call, host: Host) -> Answer:
    """`--load` a kernel, `--exec` it, or `--unload` it."""
    options, plain = _options(call.arguments)
    verbs = [name for name in ("load", "exec", "unload") if name in options]
    if not verbs and plain:
        verbs = ["load", "exec"]
    if "load" in verbs:
        host.loaded = _load(call, host, options, plain)
    if "exec" in verbs:
        _execute(host)
    if "unload" in verbs:
        host.loaded = None
    if not verbs:
        raise Refused("nothing to do: simulated machines know --load, --exec and --unload")
    return Answer()


def _load(call: Call, host: Host, options: dict[str, str], plain: list[str]) -> Kernel:
    if len(plain) != 1:
        raise Refused(f"one kernel is needed, not {plain}")
    if not host.path(call, plain[0]).is_file():
        raise Refused(f"cannot open {plain[0]}: No such file or directory")
    arguments: list[str] = []
    if "reuse-cmdline" in options:
        arguments += (host.root / "proc/cmdline").read_text().split()
    arguments += options.get("command-line", options.get("append", "")).split()
    initrds: list[bytes] = []
    if "initrd" in options:
        image = host.path(call, options["initrd"])
        if not image.is_file():
            raise Refused(f"cannot open {options['initrd']}: No such file or directory")
        initrds.append(image.read_bytes())
    return Kernel(arguments=tuple(arguments), initrds=tuple(initrds))


def _execute(host: Host) -> None:
    if host.loaded is None:
        raise Refused("Nothing has been loaded!")
    host.power.kexec(host.loaded)


def _options(arguments: tuple[str, ...]) -> tuple[dict[str, str], list[str]]:
    """Long and short options of kexec-tools, by long name; what is no option."""
    short = {"-l": "load", "-e": "exec", "-u": "unload", "-s": "kexec-file-syscall", "-a": "kexec-syscall-auto"}
    known = {*short.values(), *_VALUED, "reuse-cmdline"}
    options: dict[str, str] = {}
    plain: list[str] = []
    words = list(arguments)
    while words:
        word = words.pop(0)
        if not word.startswith("-"):
            plain.append(word)
            continue
        name, equals, value = short.get(word, word.removeprefix("--")).partition("=")
        if name not in known or (name in _VALUED and not equals and not words):
            raise Refused(f"simulated machines do not know {word}")
        options[name] = value if equals or name not in _VALUED else words.pop(0)
    return options, plain


def _without_arguments(call: Call) -> None:
    if call.arguments and call.arguments not in (("-f",), ("--force",)):
        raise Refused(f"simulated machines do not know {' '.join(call.arguments)}")
