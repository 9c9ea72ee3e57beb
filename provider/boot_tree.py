"""The boot tree: files at known paths, from which machines boot.

DHCP or the BMC sends a machine's iPXE to `boot/boot.ipxe` below the artifact host's `bootBaseUrl`. That script chains
`mac-<hexhyp>.ipxe` beside it, and exits if there is none, so that the machine boots from its disk. A machine's script
is there only while the machine must boot it: so an installed machine never boots into its installer again, whatever its
boot order. Any web server can serve these files. If the site has a matchbox, it gets the same as groups and profiles.

Ironic's boot files send a machine to `start.ipxe`, which chains `boot.ipxe` by its full URL, because iPXE runs it from
a copy.

The paths of the scripts can be guessed, so their content is as public as the network that serves them. One artifact
directory belongs to one cluster: `boot.ipxe` is deleted with the last machine's script.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Mapping

from metal_ipi.provider import matchbox
from metal_ipi.provider.artifact_stores import ArtifactStore, open_store, persistently
from metal_ipi.provider.configuration import Settings, SshArtifactSettings
from metal_ipi.provider.errors import InvalidInputs
from metal_ipi.provider.forms import MAC
from metal_ipi.provider.per_loop import PerLoop

DIRECTORY = "boot"
CHAIN = "boot.ipxe"
START = "start.ipxe"
_DIGITS = 16
_SCRIPT = r"mac-[0-9a-f-]+\.ipxe"

_lock = PerLoop(asyncio.Lock)
"""One machine at a time: withdrawing one machine's script must not delete `boot.ipxe` while another script is
published."""


def script_name(mac: str) -> str:
    """The file that a machine's firmware asks for: `mac-${net0/mac:hexhyp}.ipxe`."""
    return f"mac-{_hyphenated(mac)}.ipxe"


def _hyphenated(mac: str) -> str:
    if not re.fullmatch(MAC, mac):
        raise InvalidInputs(f"{mac} is not a MAC address: give six bytes in hex, 52:54:00:12:34:56")
    return mac.lower().replace(":", "-")


def start_url(settings: Settings) -> str:
    """The URL of `start.ipxe`."""
    return f"{settings.need_artifacts().boot_base_url}/{DIRECTORY}/{START}"


def _start(settings: Settings) -> str:
    """The text of `start.ipxe`. It frees the images that Ironic's script has loaded; otherwise the kernel would get
    them as initramfs."""
    chain = f"{settings.need_artifacts().boot_base_url}/{DIRECTORY}/{CHAIN}"
    return f"#!ipxe\nimgfree\nchain --replace {chain} || exit\n"


async def publish(settings: Settings, mac: str, script: str, chain: str, *, start: bool = False) -> None:
    """Publish a machine's iPXE script. `chain` is the text of `boot.ipxe`; with `start`, also write `start.ipxe` for
    Ironic.

    Raises InvalidInputs if `start` is combined with matchbox.
    """
    name = script_name(mac)
    if (data := _matchbox(settings)) is not None:
        if start:
            raise InvalidInputs(
                "with `matchbox` of `artifacts` boot scripts are served by matchbox, and Ironic's boot files do not "
                "lead there: remove it if servers have the driver ipmi"
            )
        each = _hyphenated(mac)
        places = {  # the group last, because matchbox matches machines by groups
            matchbox.SCRIPTS: {name: script},
            matchbox.PROFILES: {f"{matchbox.name(each)}.json": matchbox.profile(each, script)},
            matchbox.GROUPS: {f"{matchbox.name(each)}.json": matchbox.group(each)},
        }
        for directory, texts in places.items():
            await _put(data, directory, texts, listed=True)
        return
    async with _lock.get():
        files = {name: script, CHAIN: chain, **({START: _start(settings)} if start else {})}
        await _put(open_store(settings.need_artifacts()), DIRECTORY, files, listed=False)


async def withdraw(settings: Settings, mac: str) -> None:
    """Delete a machine's script, and `boot.ipxe` with the last one. A missing file is not an error."""
    name = script_name(mac)
    if (data := _matchbox(settings)) is not None:
        own = f"{matchbox.name(_hyphenated(mac))}.json"
        for directory, file in ((matchbox.GROUPS, own), (matchbox.PROFILES, own), (matchbox.SCRIPTS, name)):
            await persistently(lambda place=directory, gone=file: data.delete(place, [gone]))
        return
    store = open_store(settings.need_artifacts())

    async def work() -> None:
        await store.delete(DIRECTORY, [name])
        names = await store.names(DIRECTORY)
        if names and not any(re.fullmatch(_SCRIPT, other) for other in names):
            await store.delete(DIRECTORY, [CHAIN, START])

    async with _lock.get():
        await persistently(work)


async def published(settings: Settings, mac: str) -> str:
    """`sha512-<hex>` of a machine's published script; empty if there is none."""
    data = _matchbox(settings)
    store, place = (open_store(settings.need_artifacts()), DIRECTORY) if data is None else (data, matchbox.SCRIPTS)
    name = script_name(mac)
    return (await persistently(lambda: store.hashes(place, [name]))).get(name, "")


def _matchbox(settings: Settings) -> ArtifactStore | None:
    """The data directory of the site's matchbox; None if there is none."""
    artifacts = settings.need_artifacts()
    if isinstance(artifacts, SshArtifactSettings) and artifacts.matchbox is not None:
        return open_store(artifacts.model_copy(update={"directory": artifacts.matchbox}))
    return None


async def _put(store: ArtifactStore, directory: str, texts: Mapping[str, str], *, listed: bool) -> None:
    files = {name: text.encode() for name, text in texts.items()}
    await persistently(lambda: store.put(directory, files, listed=listed))


async def is_published(settings: Settings, mac: str, script: str) -> bool:
    """Whether the machine's published script has this `digest`."""
    return (await published(settings, mac)).startswith(f"sha512-{script}")


def digest(script: str) -> str:
    """The identifier of a script in the boot tree: the beginning of its SHA-512."""
    return hashlib.sha512(script.encode()).hexdigest()[:_DIGITS]
