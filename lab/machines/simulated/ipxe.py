"""iPXE scripts, as far as boot scripts use them: pure evaluation, the network is the caller's.

Known: comments, `echo`, `set`, `isset`, `kernel`/`imgselect`, `initrd [--name]`, `imgargs`, `imgfree`, `chain`, `boot`,
`dhcp`/`ifopen`/`ifconf` (done already), `:labels` with `goto`, `&&`, `||`. Anything else fails the boot, as iPXE does.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

_STEPS = 1000
_VARIABLE = re.compile(r"\$\{([^}]*)\}")


class IpxeError(Exception):
    """The script cannot go on; the text is what iPXE would print."""


@dataclass(frozen=True, kw_only=True)
class Boot:
    """What the script ended in."""

    kernel: str
    """URL."""
    arguments: tuple[str, ...]
    initrds: tuple[tuple[str, str], ...]
    """Name within the initramfs list, URL."""


@dataclass
class _Progress:
    variables: dict[str, str]
    kernel: str = ""
    arguments: tuple[str, ...] = ()
    initrds: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])


Fetch = Callable[[str], Awaitable[str]]


async def run(script: str, variables: dict[str, str], fetch: Fetch, echo: Callable[[str], None]) -> Boot:
    """Evaluate a script until it boots. `fetch` gets a script to chain to; it raises OSError when it cannot."""
    progress = _Progress(dict(variables))
    while True:
        following = await _one_script(script, progress, echo)
        if isinstance(following, Boot):
            return following
        try:
            script = await fetch(following)
        except OSError as error:
            raise IpxeError(f"{following}... {error}") from error


async def _one_script(script: str, progress: _Progress, echo: Callable[[str], None]) -> Boot | str:
    """Run one script; the result is a boot or the URL of the script to go on with."""
    if not script.startswith("#!ipxe"):
        raise IpxeError("Exec format error: not an iPXE script")
    lines = script.replace("\\\n", " ").splitlines()
    labels = {line.strip()[1:].split()[0]: number for number, line in enumerate(lines) if line.strip().startswith(":")}
    position = 0
    for _ in range(_STEPS):
        if position >= len(lines):
            raise IpxeError("end of script without a boot: no more network devices")
        line = lines[position].strip()
        position += 1
        if not line or line.startswith(("#", ":")):
            continue
        result = _line(line, progress, echo)
        if isinstance(result, Boot):
            return result
        if result is None:
            continue
        verb, target = result
        if verb == "chain":
            return target
        if target not in labels:
            raise IpxeError(f"goto {target}: No such label")
        position = labels[target]
    raise IpxeError("the script runs in circles")


def _line(line: str, progress: _Progress, echo: Callable[[str], None]) -> Boot | tuple[str, str] | None:
    """One line: commands joined by && and ||; the last failure stands unless an alternative follows."""
    succeeded, failure = True, IpxeError("Operation not permitted")
    for joint, command in _commands(line):
        if (joint == "&&" and not succeeded) or (joint == "||" and succeeded):
            continue
        try:
            result = _command(command, progress, echo)
        except IpxeError as error:
            succeeded, failure = False, error
            continue
        succeeded = True
        if result is not None:
            return result
    if not succeeded:
        raise failure
    return None


def _commands(line: str) -> list[tuple[str, str]]:
    parts = re.split(r"\s(&&|\|\|)(?:\s|$)", line)
    return [("&&", parts[0]), *zip(parts[1::2], parts[2::2], strict=True)]


def _command(text: str, progress: _Progress, echo: Callable[[str], None]) -> Boot | tuple[str, str] | None:
    expanded = _VARIABLE.sub(lambda match: progress.variables.get(match.group(1).split(":")[0], ""), text)
    words = expanded.split()
    if not words:
        return None
    verb, rest = words[0], words[1:]
    plain = _without_options(rest)
    if verb == "echo":
        echo(" ".join(rest))
    elif verb == "set":
        progress.variables[rest[0]] = " ".join(shlex.split(" ".join(rest[1:])))
    elif verb == "isset":
        if not plain:
            raise IpxeError("isset: no such setting")
    elif verb in ("kernel", "imgselect", "imgargs"):
        progress.kernel = progress.kernel if verb == "imgargs" else plain[0]
        progress.arguments = tuple(plain[1:])
    elif verb in ("initrd", "module"):
        progress.initrds.append((_option(rest, "--name") or plain[0].rsplit("/", 1)[-1], plain[0]))
    elif verb == "imgfree":
        progress.kernel, progress.initrds = "", []
    elif verb in ("chain", "goto"):
        return verb, plain[0]
    elif verb == "boot":
        return _boot(plain, progress)
    elif verb not in ("dhcp", "ifopen", "ifconf", "imgstat"):
        raise IpxeError(f"{verb}: command not found")
    return None


def _boot(plain: list[str], progress: _Progress) -> Boot:
    if plain:
        progress.kernel, progress.arguments = plain[0], tuple(plain[1:])
    if not progress.kernel:
        raise IpxeError("boot: No such file or directory (no kernel was selected)")
    named = [entry.partition("=")[2] for entry in progress.arguments if entry.startswith("initrd=")]
    names = [name for name, _ in progress.initrds]
    if progress.initrds and not named:
        raise IpxeError("kernel panic - not syncing: VFS: Unable to mount root fs (UEFI: no initrd= argument)")
    missing = [name for name in named if name not in names]
    if missing:
        raise IpxeError(f"kernel panic - not syncing: VFS: Unable to mount root fs (no image named {missing[0]})")
    return Boot(kernel=progress.kernel, arguments=progress.arguments, initrds=tuple(progress.initrds))


_VALUED = ("--name", "-n", "--timeout", "-t")


def _option(words: list[str], name: str) -> str | None:
    for index, word in enumerate(words):
        if word == name or (name == "--name" and word == "-n"):
            return words[index + 1]
        if word.startswith(f"{name}="):
            return word.partition("=")[2]
    return None


def _without_options(words: list[str]) -> list[str]:
    """The positional words; options come before them."""
    result = list(words)
    while result and result[0].startswith("-"):
        option = result.pop(0)
        if option in _VALUED and result:
            result.pop(0)
    return result
