"""The boot tree: what firmware finds by itself, at paths it can know.

A machine's iPXE is sent to `boot/boot.ipxe` below the artifact host's `bootBaseUrl`, by DHCP or from its BMC. That
script chains `mac-<hexhyp>.ipxe` beside it, and exits where there is none, so that the machine goes on to its disk. A
machine's script is there only while it is to boot it: an installed machine never comes into its installer again,
whatever its boot order. The tree is files: any web server can serve it.

The scripts lie at names that can be guessed, so what they name is as public as the network they are served to. One
artifact directory belongs to one cluster: the last machine that is withdrawn takes `boot.ipxe` with it.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from weakref import WeakKeyDictionary

from provider.artifact_stores import open_store, persistently
from provider.configuration import Settings
from provider.errors import InvalidInputs
from provider.fields import Reader

DIRECTORY = "boot"
CHAIN = "boot.ipxe"
MAC = r"[0-9a-fA-F]{2}([:-][0-9a-fA-F]{2}){5}"
"""A MAC address."""
_DIGITS = 16
_SCRIPT = r"(mac|uuid)-[0-9a-f-]+\.ipxe"

_locks: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()
"""One machine at a time: one that is withdrawn must not take away the chain script of one that is being published."""


def script_name(mac: str) -> str:
    """The file a machine's firmware asks for: `mac-${net0/mac:hexhyp}.ipxe`."""
    if not re.fullmatch(MAC, mac):
        raise InvalidInputs(f"{mac} is no MAC address: give six bytes in hex, 52:54:00:12:34:56")
    return f"mac-{mac.lower().replace(':', '-')}.ipxe"


def read_mac(reader: Reader) -> str:
    """A resource's `mac`, in lower case with colons."""
    mac = reader.text("mac", pattern=MAC, what="a MAC address, 52:54:00:12:34:56")
    return mac.lower().replace("-", ":")


async def publish(settings: Settings, mac: str, script: str, chain: str) -> None:
    """Lets a machine that boots from the network run a script; `chain` is the text of `boot.ipxe`."""
    store = open_store(settings.need_artifacts())
    files = {script_name(mac): script.encode(), CHAIN: chain.encode()}
    async with _lock():
        await persistently(lambda: store.put(DIRECTORY, files))


async def withdraw(settings: Settings, mac: str) -> None:
    """Takes a machine's script away, and `boot.ipxe` with the last one. Finding nothing is fine."""
    store = open_store(settings.need_artifacts())
    name = script_name(mac)

    async def work() -> None:
        await store.delete(DIRECTORY, [name])
        names = await store.names(DIRECTORY)
        if names and not any(re.fullmatch(_SCRIPT, other) for other in names):
            await store.delete(DIRECTORY, [CHAIN])

    async with _lock():
        await persistently(work)


async def is_published(settings: Settings, mac: str, script: str = "") -> bool:
    """Whether a machine that boots from the network finds its script; with a digest, whether it finds that very one."""
    store = open_store(settings.need_artifacts())
    name = script_name(mac)
    hashes = await persistently(lambda: store.hashes(DIRECTORY, [name]))
    return name in hashes and hashes[name].startswith(f"sha512-{script}")


def digest(script: str) -> str:
    """What a script is known again by in the boot tree: the beginning of its SHA-512."""
    return hashlib.sha512(script.encode()).hexdigest()[:_DIGITS]


def _lock() -> asyncio.Lock:
    return _locks.setdefault(asyncio.get_running_loop(), asyncio.Lock())
