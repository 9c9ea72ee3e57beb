"""What userdata, pointers and boot scripts weigh with the real installer's files, and what their takers can hold."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from metal_ipi.components.boot.ignition import USERDATA_LIMIT
from metal_ipi.provider.live_iso import initrd
from tests.conformance.conftest import Configured, Made
from tests.conformance.facilities import SETTINGS, Facility
from tests.conftest import TOLD
from tests.mocks import plain

# Linux, arch/x86/include/asm/setup.h and arch/arm64/include/uapi/asm/setup.h: COMMAND_LINE_SIZE, with the last NUL.
_COMMAND_LINE = 2048
# coreos-assembler, cmd-buildextend-live: room for kernel arguments beside the disc's own, and for an initramfs.
_LIVE_ISO_ARGUMENTS, _LIVE_ISO_INITRAMFS = 1024, 256 * 1024
# What is left of a limit for settings that are longer than these: names, URLs, keys, kernel arguments.
_ROOM = 0.5
_ORDERED = ("metal", "compact", "four", "five")


@dataclass(frozen=True, kw_only=True)
class Weight:
    """What something weighs."""

    what: str
    size: int
    """Bytes."""
    limit: int | None = None
    """What it may weigh; None: nothing is known to limit it."""

    def __str__(self) -> str:
        return f"{self.size:>9,} of {self.limit:>9,} bytes" if self.limit else f"{self.size:>9,} bytes" + " " * 16


def _user_data(facility: Facility) -> Iterator[Weight]:
    for args in facility.recorder.resources:
        text = plain(args.inputs).get("userData")
        if text is not None:
            yield Weight(what=f"userdata of {args.name}", size=len(str(text).encode()), limit=USERDATA_LIMIT)


def _command_lines(facility: Facility) -> Iterator[Weight]:
    for script in facility.recorder.resources:
        inputs = plain(script.inputs)
        texts = {f"{script.name} {key}": value for key, value in inputs.items() if "#!ipxe" in str(value)[:6]}
        for what, text in texts.items():
            yield from _of_script(what, text)
    for url, text in facility.uploaded(".ipxe").items():
        yield from _of_script(url.rpartition("/")[2], text)


def _of_script(what: str, text: str) -> Iterator[Weight]:
    found = re.search(r"^kernel \S+ (.*)$", text, re.M)
    if found:
        yield Weight(what=f"kernel arguments in {what}", size=len(found[1].encode()), limit=_COMMAND_LINE - 1)


def _archives(facility: Facility) -> Iterator[Weight]:
    """What a live ISO would have embedded; beside an iPXE script it is an initrd of its own."""
    for url, text in facility.uploaded(".img").items():
        size = len(initrd.pack(initrd.unpack(text.encode())))
        yield Weight(what=f"initramfs of {url.rpartition('/')[2]}", size=size, limit=_LIVE_ISO_INITRAMFS)


def _uploads(facility: Facility) -> Iterator[Weight]:
    for url, text in facility.uploaded(".ign").items():
        yield Weight(what=f"uploaded {'/'.join(url.split('/')[-2:])}", size=len(text.encode()))


_LIMITED: tuple[Callable[[Facility], Iterator[Weight]], ...] = (_user_data, _command_lines, _archives)


def _table(weights: list[Weight]) -> str:
    """The heaviest of each kind; machines of a role differ by their names only."""
    heaviest: dict[str, Weight] = {}
    for weight in sorted(weights, key=lambda weight: weight.size):
        heaviest[re.sub(r"-\d+(?=[-. ])|-\d+$|\.[-\w]{43}(?=\.ign)", "", weight.what)] = weight
    return "\n".join(f"{weight}  {what}" for what, weight in sorted(heaviest.items()))


@pytest.mark.parametrize("name", SETTINGS)
def test_half_of_every_limit_is_left(name: str, made: Made, record_property: Callable[[str, str], None]) -> None:
    facility = made(name)
    limited = [weight for find in _LIMITED for weight in find(facility)]
    told = _table([*limited, *_uploads(facility)])
    record_property(f"{TOLD}what {name} weighs, with the real installer's files", told)
    kinds = {weight.what.split(" ", 1)[0] for weight in limited}
    assert kinds == ({"userdata", "kernel", "initramfs"} if name in _ORDERED else {"kernel", "initramfs"})
    assert [weight for weight in limited if weight.limit and weight.size > weight.limit * _ROOM] == [], f"\n{told}"


@pytest.mark.parametrize("name", ["rack", "single"])
def test_a_live_iso_takes_the_kernel_arguments_of_a_rack(name: str, made: Made) -> None:
    lines = list(_command_lines(made(name)))
    assert lines
    assert max(weight.size for weight in lines) < _LIVE_ISO_ARGUMENTS, _table(lines)


def test_what_only_fits_behind_a_pointer_is_behind_a_pointer(made: Made, configured: Configured) -> None:
    """The reason for pointers: the installer's bootstrap.ign and a rendered configuration are larger than userdata."""
    facility = made("metal")
    bootstrap, rendered = json.loads(facility.assets)["bootstrap"], configured("metal").served
    weights = [Weight(what="bootstrap.ign", size=len(bootstrap)), Weight(what="/config/master", size=len(rendered))]
    assert all(weight.size > 4 * USERDATA_LIMIT for weight in weights), _table(weights)
    given = [name for name in facility.recorder.requests if name.endswith(("-device", "-bootstrap"))]
    assert {weight.what.removeprefix("userdata of ") for weight in _user_data(facility)} > set(given)
    assert len(given) == 6, "a bootstrap machine, and 3 + 2"
