"""iPXE scripts, as far as boot scripts use them: evaluation; the network is the caller's.

Known: comments, `echo`, `set`, `isset`, `kernel`/`imgselect`, `initrd [--name]`, `imgargs`, `imgfree`, `chain
[--replace]`, `boot`, `exit`, `dhcp`/`ifopen`/`ifconf` (done already), `:labels` with `goto`, `&&`, `||`. Anything else
fails the boot, as iPXE does.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from urllib.parse import urljoin

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


@dataclass(frozen=True)
class _Goto:
    label: str


class _Exit:
    """The script that says `exit`, or that another one replaced, ends here."""


_End = Boot | _Exit
_Outcome = Boot | _Exit | _Goto | None
Fetch = Callable[[str], Awaitable[str]]


async def run(start: str, variables: dict[str, str], fetch: Fetch, echo: Callable[[str], None]) -> Boot | None:
    """Evaluate the script at a URL; None when it ended without a boot, and the firmware goes on with its next device.

    `fetch` gets a script; it raises OSError when it cannot.
    """
    ended = await _Interpreter(_Progress(dict(variables)), fetch, echo).script(start)
    return ended if isinstance(ended, Boot) else None


class _Interpreter:
    """Scripts within scripts, which share variables and images."""

    def __init__(self, progress: _Progress, fetch: Fetch, echo: Callable[[str], None]) -> None:
        self._progress = progress
        self._fetch = fetch
        self._echo = echo
        self._steps = 0

    async def script(self, url: str) -> _End:
        """Run the script at a URL to its end."""
        try:
            script = await self._fetch(url)
        except OSError as error:
            raise IpxeError(f"{url}... {error}") from error
        if not script.startswith("#!ipxe"):
            raise IpxeError("Exec format error: not an iPXE script")
        lines = script.replace("\\\n", " ").splitlines()
        labels = {
            line.strip()[1:].split()[0]: number for number, line in enumerate(lines) if line.strip().startswith(":")
        }
        position = 0
        while position < len(lines):
            self._steps += 1
            if self._steps > _STEPS:
                raise IpxeError("the script runs in circles")
            line = lines[position].strip()
            position += 1
            if not line or line.startswith(("#", ":")):
                continue
            outcome = await self._line(line, url)
            if isinstance(outcome, _Goto):
                if outcome.label not in labels:
                    raise IpxeError(f"goto {outcome.label}: No such label")
                position = labels[outcome.label]
            elif outcome is not None:
                return outcome
        return _Exit()

    async def _line(self, line: str, url: str) -> _Outcome:
        """One line: commands joined by && and ||; the last failure stands unless an alternative follows."""
        succeeded, failure = True, IpxeError("Operation not permitted")
        for joint, command in _commands(line):
            if (joint == "&&" and not succeeded) or (joint == "||" and succeeded):
                continue
            if not succeeded:
                self._echo(str(failure))
            try:
                outcome = await self._command(command, url)
            except IpxeError as error:
                succeeded, failure = False, error
                continue
            succeeded = True
            if outcome is not None:
                return outcome
        if not succeeded:
            raise failure
        return None

    async def _command(self, text: str, url: str) -> _Outcome:
        progress = self._progress
        words = _VARIABLE.sub(lambda match: _expanded(match.group(1), progress.variables), text).split()
        if not words:
            return None
        verb, rest = words[0], words[1:]
        plain = _without_options(rest)
        if verb == "echo":
            self._echo(" ".join(rest))
        elif verb == "set":
            progress.variables[rest[0]] = " ".join(shlex.split(" ".join(rest[1:])))
        elif verb == "isset":
            if not plain:
                raise IpxeError("isset: no such setting")
        elif verb in ("kernel", "imgselect", "imgargs"):
            progress.kernel = progress.kernel if verb == "imgargs" else urljoin(url, plain[0])
            progress.arguments = tuple(plain[1:])
        elif verb in ("initrd", "module"):
            name = _option(rest, "--name") or plain[0].rsplit("/", 1)[-1]
            progress.initrds.append((name, urljoin(url, plain[0])))
        elif verb == "imgfree":
            progress.kernel, progress.initrds = "", []
        elif verb == "chain":
            return await self._chain(urljoin(url, plain[0]), replace="--replace" in rest or "-r" in rest)
        elif verb == "goto":
            return _Goto(plain[0])
        elif verb == "exit":
            return _Exit()
        elif verb == "boot":
            return _boot(plain, progress)
        elif verb not in ("dhcp", "ifopen", "ifconf", "imgstat"):
            raise IpxeError(f"{verb}: command not found")
        return None

    async def _chain(self, url: str, *, replace: bool) -> _Outcome:
        """Another script: its end is also this one's when it replaces it."""
        ended = await self.script(url)
        return ended if replace or isinstance(ended, Boot) else None


def _commands(line: str) -> list[tuple[str, str]]:
    parts = re.split(r"\s(&&|\|\|)(?:\s|$)", line)
    return [("&&", parts[0]), *zip(parts[1::2], parts[2::2], strict=True)]


def _expanded(setting: str, variables: dict[str, str]) -> str:
    """The value of a setting, in the format that its name may end in."""
    name, _, form = setting.partition(":")
    value = variables.get(name, "")
    if form in ("", "string"):
        return value
    if form in ("hex", "hexhyp", "hexraw"):
        return value.replace(":", {"hex": ":", "hexhyp": "-", "hexraw": ""}[form])
    raise IpxeError(f"{setting}: simulated machines know settings as string, hex, hexhyp and hexraw")


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
    # UEFI firmware loads what is named, in that order, and nothing else.
    loaded = tuple((name, dict(progress.initrds)[name]) for name in named)
    return Boot(kernel=progress.kernel, arguments=progress.arguments, initrds=loaded)


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
