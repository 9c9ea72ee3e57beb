"""A server's hardware as a table for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta

from metal_ipi.provider.inventory import disks
from metal_ipi.provider.inventory.facts import Card, Disk, Hardware
from metal_ipi.provider.inventory.rules import Host, difference_text
from metal_ipi.provider.sizes import GIB

UNTOLD = "not told"
_EXACT = timedelta(seconds=5)
"""BMCs report whole seconds, and answer slowly."""


def of(host: Host) -> str:
    """The table: its first line names the server; then one line for each component."""
    return "\n".join([_title(host), *(f"  {name:<14} {words}" for name, words in _rows(host))])


def _title(host: Host) -> str:
    told = host.told
    model = " ".join(word for word in (told.manufacturer, told.model) if word)
    serial = f"serial {told.serial}" if told.serial else None
    power = f"power {told.power}" if told.power else None
    where = told.where.removeprefix(f"server {host.name} ").strip("()")
    return f"{host.name}: {', '.join(word for word in (model, serial, power, where) if word)}"


def _rows(host: Host) -> Iterator[tuple[str, str]]:
    told = host.told
    cpus = None if told.cpus is None else f"{told.cpus} CPUs"
    yield "processors", _joined([cpus, told.architecture])
    yield "memory", UNTOLD if told.memory_mib is None else f"{told.memory_mib / GIB:g} GiB"
    yield from _listed("disks", [_disk(host, disk) for disk in told.disks or ()])
    yield from _listed("network cards", [_card(host, card) for card in told.cards or ()])
    secure_boot = {True: "Secure Boot on", False: "Secure Boot off", None: None}[told.secure_boot]
    tpm = {None: None, "none": "no TPM", "off": "TPM switched off"}.get(told.tpm, f"TPM {told.tpm}")
    versions = [f"{name} {version}" for name, version in told.firmware.items()]
    yield "firmware", _joined([told.boot_mode, secure_boot, tpm, *versions])
    yield "health", _health(host)
    yield "BMC's clock", _clock(told)
    yield "virtual drives", _drives(host)


def _listed(name: str, words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """One line for each of several."""
    for number, each in enumerate(words or [UNTOLD]):
        yield "" if number else name, each


def _joined(words: Sequence[str | None]) -> str:
    return ", ".join(word for word in words if word) or UNTOLD


def _disk(host: Host, disk: Disk) -> str:
    chosen = disks.choose(host.told.disks or (), host.device).all if host.device else ()
    return f"{disk}{', to install to' if len(chosen) == 1 and disk in chosen else ''}"


def _card(host: Host, card: Card) -> str:
    named = ", named by the stack" if card.mac in {mac.lower() for mac in host.macs} else ""
    return f"{card.mac}, link {card.link or UNTOLD}{named}"


def _clock(hardware: Hardware) -> str:
    if hardware.clock is None:
        return UNTOLD
    ahead = hardware.clock[0] - hardware.clock[1]
    return "as ours" if abs(ahead) <= _EXACT else difference_text(ahead)


def _health(host: Host) -> str:
    parts = host.told.parts or ()
    bad = [f"{part.kind} {part.name}".strip() + f" {part.health}" for part in parts if part.health != "OK"]
    good = len(parts) - len(bad)
    return _joined([*bad, f"{good} parts OK" if good else None])


def _drives(host: Host) -> str:
    drives = host.told.drives
    if drives is None:
        return UNTOLD
    return ", ".join(f"{each.name}{f' with {each.disc}' if each.disc else ''}" for each in drives) or "none"
