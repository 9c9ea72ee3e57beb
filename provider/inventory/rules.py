"""Checks of servers' hardware before any server is switched on; findings by server. Pure functions.

Limits from others: `provider.sizes`. The assisted installer also requires a TPM of version 2.0 if a TPM encrypts the
disk (openshift/assisted-service, internal/host/validator.go, diskEncryptionRequirementsSatisfied). That all machines
have one architecture is a limit of this project. A value that is not reported is not an error; it is a warning if the
installation depends on it.

Only a certain mistake is an error. What may be right is a warning: a link of a card that has no power yet, or a power
supply that another one replaces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from metal_ipi.provider.inventory import disks
from metal_ipi.provider.inventory.facts import Hardware
from metal_ipi.provider.preflight.findings import Finding, error, warning
from metal_ipi.provider.sizes import Least

CARDS = "cards"
_CLOCK = timedelta(seconds=300)
"""The same limit as in the check `clock` of our own clock."""
_NO_SERIALS = ("", "none", "na", "n/a", "notspecified", "defaultstring", "tobefilledbyoem", "0123456789", "123456789",
               "systemserialnumber")  # fmt: skip
"""Values that boards report if they were given no serial number."""
_TARGETS = {"pxe": ("Pxe",), "uefi-http": ("UefiHttp",), "virtual-media": ("Cd", "UsbCd"), "live-iso": ("Cd", "UsbCd")}
"""What a BMC must support for each boot method, with Redfish's names."""
_BY_DISC = ("virtual-media", "live-iso")


@dataclass(frozen=True, kw_only=True)
class Host:
    """A server, and the machine that it becomes."""

    name: str
    """Its name in the stack."""
    told: Hardware
    architecture: str
    """`x86_64` or `aarch64`."""
    least: Least
    """The minimum that the machine needs."""
    macs: Sequence[str] = ()
    """The MAC addresses of cards in the settings."""
    device: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Conditions for the disk that it is installed to; empty: it is not installed."""
    tpm2: bool = False
    """Whether its disk cannot be opened without a TPM 2.0."""
    boot_method: str | None = None
    """How it boots its installer; None: Ironic decides."""
    boot_mode: str | None = None
    """The firmware's boot mode in the settings; None: the one it has."""
    runs: bool = False
    """Whether it was installed before, so that problems did not prevent that."""


def found(hosts: Sequence[Host]) -> dict[str, list[Finding]]:
    """Findings by server. For a server that was installed before they are only warnings."""
    return {
        host.name: [
            replace(finding, check=name, host=host.name, level="warning" if host.runs else finding.level)
            for name, rule in _RULES.items()
            for finding in rule(host, hosts)
        ]
        for host in hosts
    }


def _architecture(host: Host, _: Sequence[Host]) -> Iterator[Finding]:
    architecture = host.told.architecture
    if architecture is not None and architecture != host.architecture:
        what = f"its processors are {architecture}, and boot.architecture is {host.architecture}"
        yield error(what, "use another server, or set boot.architecture; all machines must have the same architecture")


def _disks(host: Host, _: Sequence[Host]) -> Iterator[Finding]:
    told, rules = host.told.disks, host.device
    if not rules or not told:
        return
    wanted = ", ".join(f"{name}: {str(value).lower() if isinstance(value, bool) else value}"
                       for name, value in rules.items())  # fmt: skip
    known, remedy = "; ".join(map(str, told)), "correct its installDevice, or boot.install.device"
    choice = disks.choose(told, rules)
    if not choice.all:
        yield error(f"no disk meets the rules for the disk to install to ({wanted}): {known}", remedy)
    elif len(choice.certain) > 1 and not choice.possible:
        names = ", ".join(disk.name for disk in choice.certain)
        what = f"several disks meet the rules for the disk to install to ({wanted}), but only one may: {names}"
        yield warning(what, f"{remedy}, unless its operating system does not see all of them")
    elif all(disk.size_bytes is not None and disk.size_bytes < host.least.disk_gb * 10**9 for disk in choice.all):
        asked = f"the {host.least.disk_gb} GB that {host.least.asked_by} asks for"
        what = f"the disk to install to has less than {asked}"
        yield error(f"{what}: {'; '.join(map(str, choice.all))}", f"{remedy}, or put in a larger one")


def _cards(host: Host, _: Sequence[Host]) -> Iterator[Finding]:
    if not host.told.cards:
        return
    cards = {card.mac: card for card in host.told.cards}
    if missing := [mac for mac in host.macs if mac.lower() not in cards]:
        what = f"it has no network card with the MAC address {', '.join(missing)}, but {', '.join(cards)}"
        yield error(what, "correct its mac or interfaces, or the address of its BMC")
    # Without power many cards report no link; so a missing link counts only if another card of the server has one.
    linked = any(card.link == "up" for card in cards.values()) or host.told.power == "On"
    unlinked = [mac for mac in host.macs if (card := cards.get(mac.lower())) is not None and card.link == "down"]
    if linked and unlinked:
        yield warning(f"its card {', '.join(unlinked)} has no link", "look at the cable and at the switch's port")


def _twins(host: Host, hosts: Sequence[Host]) -> Iterator[Finding]:
    others = [each for each in hosts if each is not host]
    remedy = "correct the address (or systemId) of one of their BMCs: each machine has a server of its own"
    mine = host.told
    same = [each.name for each in others if _uuid(mine) and _uuid(each.told) == _uuid(mine)]
    if same:
        yield error(f"it is the same server as {', '.join(same)}: both BMCs report the UUID {mine.uuid}", remedy)
    others = [each for each in others if each.name not in same]
    alike = [each for each in others if _serial(mine) and _serial(each.told) == _serial(mine)]
    # With different UUIDs they are two servers: servers in one chassis may report the chassis's serial number.
    two = [each.name for each in alike if _uuid(mine) and _uuid(each.told)]
    for report, names in ((error, [each.name for each in alike if each.name not in two]), (warning, two)):
        if names:
            yield report(f"it has the same serial number as {', '.join(names)}: {mine.serial}", remedy)
    for other in others:
        taken = sorted({card.mac for card in other.told.cards or ()} & {mac.lower() for mac in host.macs})
        if taken:
            what = f"the server of {other.name} has its MAC address {', '.join(taken)}"
            yield error(
                what, "exchange the BMCs' addresses or the MAC addresses: one of them belongs to another machine"
            )


def _uuid(hardware: Hardware) -> str | None:
    """Its UUID; None if it is a placeholder: boards without a UUID repeat one digit."""
    plain = (hardware.uuid or "").replace("-", "").lower()
    return plain if len(set(plain)) > 2 else None


def _serial(hardware: Hardware) -> tuple[str | None, str] | None:
    plain = "".join((hardware.serial or "").lower().replace(".", "").split())
    return None if plain in _NO_SERIALS or len(set(plain)) < 2 else (hardware.manufacturer, plain)


def _firmware(host: Host, _: Sequence[Host]) -> Iterator[Finding]:
    hardware, method = host.told, host.boot_method
    if method is not None and hardware.boot_targets and not set(_TARGETS[method]) & set(hardware.boot_targets):
        what = f"its BMC does not offer to boot {_TARGETS[method][0]}, which bootMethod {method} needs"
        yield error(f"{what}, but {', '.join(hardware.boot_targets)}", "set another bootMethod, or update its firmware")
    if host.boot_mode is not None and hardware.boot_modes and host.boot_mode not in hardware.boot_modes:
        what = f"its firmware does not offer bootMode {host.boot_mode}, but {', '.join(hardware.boot_modes)}"
        yield error(what, "correct bootMode")
    mode = host.boot_mode or hardware.boot_mode
    if method == "uefi-http" and mode == "bios":
        yield error("its firmware boots in BIOS mode, and bootMethod uefi-http needs UEFI", "set bootMode: uefi")
    if host.architecture == "aarch64" and mode == "bios":
        yield error("its firmware boots in BIOS mode, and machines of aarch64 boot by UEFI only", "set bootMode: uefi")
    if hardware.override is not None:
        what = f"it is set to boot {hardware.override} at every start"
        yield warning(what, "nothing; `up` removes this setting when the server boots from its disk")


def _tpm(host: Host, _: Sequence[Host]) -> Iterator[Finding]:
    tpm = host.told.tpm
    if not host.tpm2 or tpm == "2.0":
        return
    needs = "machineConfig.diskEncryption.tpm2 needs a TPM of version 2.0"
    if tpm is None:
        yield warning(f"the BMC does not report whether it has a TPM: {needs}", "look at its firmware's settings")
        return
    has = {"none": "it has no TPM", "off": "its TPM is switched off", "1.2": "its TPM is of version 1.2"}[tpm]
    yield error(f"{has}, and {needs}", "switch a TPM 2.0 on in its firmware's settings, or put one in")


def _health(host: Host, _: Sequence[Host]) -> Iterator[Finding]:
    remedy = "look at the BMC's log, and have it repaired"
    chosen = {disk.name for disk in disks.choose(host.told.disks or (), host.device).all} if host.device else set[str]()
    for part in host.told.parts or ():
        if part.health == "OK":
            continue
        essential = part.kind in ("system", "processor", "memory") or (part.kind == "disk" and part.name in chosen)
        level = "error" if part.health == "Critical" and essential else "warning"
        what = f"the health of its {part.kind}{f' {part.name}' if part.name else ''} is {part.health}"
        yield Finding(level=level, what=what, remedy=remedy)


def _clock(host: Host, _: Sequence[Host]) -> Iterator[Finding]:
    if host.told.clock is None:
        return
    ahead = host.told.clock[0] - host.told.clock[1]
    if abs(ahead) > _CLOCK:
        what = f"its BMC's clock is {difference_text(ahead)} of ours"
        yield warning(what, "set the BMC's time servers: it uses this clock to verify certificates and for its log")


def difference_text(ahead: timedelta) -> str:
    """How far a clock is from ours."""
    seconds = round(abs(ahead).total_seconds())
    words = f"{seconds} s" if seconds < 7200 else f"{seconds // 3600} h"
    return f"{words} {'ahead' if ahead > timedelta() else 'behind'}"


def _media(host: Host, _: Sequence[Host]) -> Iterator[Finding]:
    drives = host.told.drives
    if host.boot_method not in _BY_DISC or drives is None:
        return
    if not drives:
        what = f"its BMC has no virtual drive for discs, which bootMethod {host.boot_method} needs"
        yield error(what, "look at the BMC's licence, or set another bootMethod")
    elif all(drive.disc for drive in drives):
        discs = ", ".join(str(drive.disc) for drive in drives)
        yield warning(f"its virtual drives are in use, and one will be emptied: {discs}", "check whose disc that is")


_RULES: dict[str, Callable[[Host, Sequence[Host]], Iterator[Finding]]] = {
    "architecture": _architecture,
    "disks": _disks,
    CARDS: _cards,
    "twins": _twins,
    "firmware": _firmware,
    "tpm": _tpm,
    "health": _health,
    "bmc-clock": _clock,
    "virtual-media": _media,
}
NAMES = tuple(_RULES)
"""The names of all checks."""
