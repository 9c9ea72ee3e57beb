"""iPXE scripts, as far as boot scripts use them: evaluation; the network is the caller's.

Known: comments, `echo`, `set`, `inc`, `isset`, `iseq`, labels and `goto`, `kernel`, `initrd [--name]`, `imgfree`,
`chain [--replace] [--autofree]`, `boot`, `exit`, `dhcp` (done already), `&&`, `||`. A kernel that is a script is run.
Anything else fails the boot, as a command that iPXE does not know.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from urllib.parse import urljoin

_DEEPEST = 20
_LONGEST = 10_000
_SCRIPT = "#!ipxe"
_VARIABLE = re.compile(r"\$\{([^${}]*)\}")


class IpxeError(Exception):
    """The script cannot go on; the text is what iPXE would print."""


@dataclass(frozen=True, kw_only=True)
class Boot:
    """The result of the script."""

    kernel: str
    """URL."""
    arguments: tuple[str, ...]
    initrds: tuple[tuple[str, str], ...]
    """Name within the initramfs list, URL."""


class _Exit:
    """The script that says `exit`, or that another one replaced, ends here."""


@dataclass(frozen=True)
class _Goto:
    """The script goes on at a label."""

    label: str


_Outcome = Boot | _Exit | _Goto | None
Fetch = Callable[[str], Awaitable[str]]


async def run(
    start: str,
    variables: dict[str, str],
    fetch: Fetch,
    echo: Callable[[str], None],
    head: Callable[[str], Awaitable[bytes]] | None = None,
) -> Boot | None:
    """Evaluate the script at a URL; None when it ended without a boot, and the firmware goes on with its next device.

    `fetch` gets a script; it raises OSError when it cannot. `head` gets how a kernel begins; without it, none is a
    script.
    """
    ended = await _Interpreter(dict(variables), fetch, echo, head).script(start)
    return ended if isinstance(ended, Boot) else None


@dataclass
class _Interpreter:
    """Scripts within scripts, which share variables and images."""

    variables: dict[str, str]
    fetch: Fetch
    echo: Callable[[str], None]
    head: Callable[[str], Awaitable[bytes]] | None
    kernel: str = ""
    arguments: tuple[str, ...] = ()
    initrds: dict[str, str] = field(default_factory=dict[str, str])
    depth: int = 0

    async def script(self, url: str) -> Boot | _Exit:
        """Run the script at a URL to its end."""
        try:
            script = await self.fetch(url)
        except OSError as error:
            raise IpxeError(f"{url}... {error}") from error
        if not script.startswith(_SCRIPT):
            raise IpxeError("Exec format error: not an iPXE script")
        self.depth += 1
        if self.depth > _DEEPEST:
            raise IpxeError("scripts chain to each other without an end")
        lines = [line.strip() for line in script.replace("\\\n", " ").splitlines()]
        labels = {line[1:]: number for number, line in enumerate(lines) if line.startswith(":")}
        number = 0
        for _ in range(_LONGEST):
            if number >= len(lines):
                return _Exit()
            line, number = lines[number], number + 1
            outcome = await self._line(line, url) if line and line[0] not in "#:" else None
            if isinstance(outcome, _Goto):
                if outcome.label not in labels:
                    raise IpxeError(f"{url}: there is no label {outcome.label}")
                number = labels[outcome.label]
            elif outcome is not None:
                return outcome
        raise IpxeError(f"{url} goes on without an end")

    async def _line(self, line: str, url: str) -> _Outcome:
        """One line: commands joined by && and ||; the last failure stands unless an alternative follows."""
        failure: IpxeError | None = None
        first, *parts = re.split(r"\s(&&|\|\|)(?:\s|$)", line)
        for joint, command in [("&&", first), *zip(parts[0::2], parts[1::2], strict=True)]:
            if (joint == "&&") != (failure is None):
                continue
            if failure is not None:
                self.echo(str(failure))
            try:
                outcome = await self._command(command, url)
            except IpxeError as error:
                failure = error
                continue
            failure = None
            if outcome is not None:
                return outcome
        if failure is not None:
            raise failure
        return None

    async def _command(self, text: str, url: str) -> _Outcome:
        while text != (expanded := _VARIABLE.sub(self._expanded, text)):
            text = expanded
        verb, *words = text.split() or [""]
        if verb == "echo":
            self.echo(" ".join(words))
        elif verb == "set":
            self.variables[words[0].partition(":")[0]] = " ".join(words[1:])
        elif verb == "inc":
            self.variables[words[0]] = str(int(self.variables.get(words[0]) or 0) + 1)
        elif verb in ("isset", "iseq"):
            if not words or (verb == "iseq" and words[0] != words[-1]):
                raise IpxeError("")
        elif verb == "goto":
            return _Goto(words[0])
        elif verb == "imgfree":
            self.kernel, self.arguments = "", ()
            self.initrds.clear()
        elif verb == "kernel":
            self.kernel, self.arguments = urljoin(url, words[0]), tuple(words[1:])
        elif verb == "initrd":
            name, image = words[1:] if words[0] == "--name" else (words[0].rsplit("/", 1)[-1], words[0])
            self.initrds[name] = urljoin(url, image)
        elif verb == "chain":
            ended = await self.script(urljoin(url, words[-1]))
            return ended if "--replace" in words or isinstance(ended, Boot) else None
        elif verb == "exit":
            return _Exit()
        elif verb == "boot":
            if self.head is not None and self.kernel and (await self.head(self.kernel)).startswith(_SCRIPT.encode()):
                ended = await self.script(self.kernel)
                return ended if isinstance(ended, Boot) else None
            return self._boot()
        elif verb == "sanboot":
            raise IpxeError("Could not open SAN device")
        elif verb not in ("", "dhcp"):
            raise IpxeError(f"{verb}: command not found")
        return None

    def _expanded(self, match: re.Match[str]) -> str:
        """The value of a setting, in the format that its name may end in."""
        name, _, form = match[1].partition(":")
        if form not in ("", "hexhyp"):
            raise IpxeError(f"{match[1]}: simulated machines know settings as they are, and as hexhyp")
        value = self.variables.get(name, "")
        return value.replace(":", "-") if form else value

    def _boot(self) -> Boot:
        if not self.kernel:
            raise IpxeError("boot: No such file or directory (no kernel was selected)")
        # UEFI firmware loads what is named, in that order, and nothing else.
        named = [entry.partition("=")[2] for entry in self.arguments if entry.startswith("initrd=")]
        missing = "UEFI: no initrd= argument" if self.initrds and not named else ""
        missing = next((f"no image named {name}" for name in named if name not in self.initrds), missing)
        if missing:
            raise IpxeError(f"kernel panic - not syncing: VFS: Unable to mount root fs ({missing})")
        loaded = tuple((name, self.initrds[name]) for name in named)
        return Boot(kernel=self.kernel, arguments=self.arguments, initrds=loaded)
