"""The networks of a host with several cards, bonds, VLANs or routes: from NMState to NetworkManager keyfiles.

In the NMState document cards have names that the user chose. `cards` maps each name to a MAC address, as
`hosts[].interfaces` of agent-config.yaml does. `nmstatectl gc` turns the document into keyfiles that use these names.
This module makes two sets of keyfiles from them:

- For the live system: a card's profile is bound to its MAC address. Nothing has to run before NetworkManager starts; we
  cannot run anything in the initramfs of a live system.
- For the installed system: a card's profile is bound to its interface's name, written here as `@<MAC address>@`.
  install.sh runs on the machine and replaces it by the name. A binding to the MAC address would not work:
  configure-ovs.sh (machine-config-operator) clones the profile of the default route's interface for br-ex, and a clone
  that is bound to a MAC address matches no OVS interface.

Sources: nmstate 2.2.62, nm/gen_conf.rs and nm/settings; nm-settings-nmcli(5): `mac-address` is compared with the
permanent address, so ports of a bond match too; assisted-service, internal/constants/scripts.go, which also fills the
names in on the host. It renames VLANs after their cards; here they keep the names from the NMState document.
"""

from __future__ import annotations

import configparser
import hashlib
import io
import json
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import yaml

from metal_ipi.components.boot.ignition import NodeFile

PROGRAM = "nmstatectl"
LIVE_PROFILES = "etc/coreos-firstboot-network"
"""The directory from which the initramfs of a live system takes profiles (coreos-installer, src/live/embed.rs)."""
_CARDS = ("802-3-ethernet", "ethernet")
"""Values of `connection.type` in the profile of a card."""
_NAMES = ("parent", "primary")
"""Keys whose value is the name of another interface."""
_BY_MAC = ("identifier", "mac-address")
"""NMState's own keys for binding a card by its MAC address."""
_FILE = re.compile(r"[A-Za-z0-9_.-]+\.nmconnection")
_SECONDS = 60


class HostNetworkError(ValueError):
    """nmstatectl refuses a host's NMState (the message is nmstatectl's), or nmstatectl cannot be run."""


@dataclass(frozen=True, kw_only=True)
class HostNetwork:
    """The networks of one host, as plain values."""

    cards: Mapping[str, str]
    """MAC addresses, by the names that `state` uses for the cards."""
    state: Mapping[str, Any]
    """NMState: `interfaces`, `routes`, `dns-resolver`."""
    told: str
    """One line that describes the network to people."""
    path: str
    """The path of the host's settings in the stack file."""
    links: tuple[str, ...] = ()
    """What the node check looks for: bonds as `<name>=<mode>/<MAC addresses>`, VLANs as `<name>=<number>/<parent>`."""

    @property
    def counted(self) -> tuple[str, ...]:
        """The part of a machine's generation that stands for its network.

        It is a hash of the NMState document, not of the keyfiles: another version of nmstatectl may write them
        differently.
        """
        text = json.dumps([dict(self.cards), self.state], sort_keys=True, separators=(",", ":"))
        return (f"network={hashlib.sha256(text.encode()).hexdigest()}",)


@dataclass(frozen=True, kw_only=True)
class Keyfiles:
    """The keyfiles of one host, text by file name."""

    live: Mapping[str, str]
    """Keyfiles of the live system."""
    installed: Mapping[str, str]
    """Keyfiles of the installed system, with `@<MAC address>@` in place of the names of cards."""

    @property
    def initramfs(self) -> dict[str, str]:
        """The live system's keyfiles, by their paths in the initramfs."""
        return {f"{LIVE_PROFILES}/{name}": text for name, text in self.live.items()}

    def files(self, directory: str) -> list[NodeFile]:
        """The installed system's keyfiles as files in `directory`."""
        return [NodeFile(path=f"{directory}/{name}", text=text, mode=0o600) for name, text in self.installed.items()]


def keyfiles(network: HostNetwork, program: str) -> Keyfiles:
    """Generate a host's keyfiles. `program` is the path of nmstatectl. Raises HostNetworkError."""
    made = {name: _read(name, text) for name, text in generated(_by_name(network), program).items()}
    uuids = {
        file.get("connection", "interface-name", fallback=""): file["connection"]["uuid"] for file in made.values()
    }
    return Keyfiles(
        live={name: _text(_live(file, network.cards, uuids)) for name, file in made.items()},
        installed={name: _text(_installed(file, network.cards)) for name, file in made.items()},
    )


def _by_name(network: HostNetwork) -> dict[str, Any]:
    """The NMState document with every card identified by its name, as in `cards`.

    For `identifier: mac-address` nmstatectl would bind the profile to the MAC address, for installed systems too.
    """
    links = [
        {key: value for key, value in link.items() if key not in _BY_MAC}
        if link.get("identifier") == "mac-address" and link.get("name") in network.cards
        else link
        for link in network.state.get("interfaces") or []
    ]
    return {**network.state, "interfaces": links}


def generated(state: Mapping[str, Any], program: str) -> dict[str, str]:
    """Run `nmstatectl gc` on an NMState document; returns the texts of the keyfiles by file name. Raises
    HostNetworkError."""
    command = [program, "gc", "-"]  # JSON is valid YAML
    try:
        done = subprocess.run(
            command, input=json.dumps(state), capture_output=True, encoding="utf-8", check=False, timeout=_SECONDS
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise HostNetworkError(f"{program} cannot be run: {error}") from error
    if done.returncode:
        said = " ".join(line.strip() for line in done.stderr.splitlines() if not line.startswith("["))
        raise HostNetworkError(said.removeprefix("NmstateError: ") or f"it ended with status {done.returncode}")
    document: Any = yaml.safe_load(done.stdout)
    found = cast("dict[str, list[list[str]]]", document or {}).get("NetworkManager") or []
    if not found:
        raise HostNetworkError("it makes no profile: networkConfig describes no interface")
    odd = [name for name, _ in found if not _FILE.fullmatch(name)]
    if odd:
        raise HostNetworkError(f"a profile has the name {odd[0]!r}: use letters, digits and _ . - in profile-name")
    return {name: text for name, text in sorted(found)}


def _read(name: str, text: str) -> configparser.RawConfigParser:
    file = configparser.RawConfigParser(delimiters=("=",), comment_prefixes=("#",), interpolation=None)
    file.optionxform = str  # type: ignore[method-assign,assignment]  # keep the case of keys
    try:
        file.read_string(text)
    except configparser.Error as error:
        raise HostNetworkError(f"it makes a profile {name} that cannot be read: {error}") from error
    return file


def _copy(file: configparser.RawConfigParser) -> configparser.RawConfigParser:
    return _read("", _text(file))


def _text(file: configparser.RawConfigParser) -> str:
    out = io.StringIO()
    file.write(out, space_around_delimiters=False)
    return out.getvalue().rstrip("\n") + "\n"


def _card(file: configparser.RawConfigParser, cards: Mapping[str, str]) -> str | None:
    """The MAC address of the card that a profile belongs to; None for a profile of another kind of interface."""
    of_card = file.get("connection", "type", fallback="") in _CARDS
    return cards.get(file.get("connection", "interface-name", fallback="")) if of_card else None


def _installed(original: configparser.RawConfigParser, cards: Mapping[str, str]) -> configparser.RawConfigParser:
    """The profile of the installed system: names of cards are replaced by tokens.

    The driver of a card may load late, so NetworkManager waits 60 s for the device, as it does for an interface of
    `ip=`.
    """
    file = _copy(original)
    if (mac := _card(file, cards)) is not None:
        file["connection"].update({"interface-name": _token(mac), "wait-device-timeout": "60000"})
    for section in file.sections():
        for key, value in file.items(section):
            if key in _NAMES and value in cards:
                file[section][key] = _token(cards[value])
            elif key.startswith("routing-rule"):
                file[section][key] = re.sub(
                    r"\b([io]if) (\S+)",
                    lambda found: f"{found[1]} {_token(cards[found[2]]) if found[2] in cards else found[2]}",
                    value,
                )
    return file


def _live(
    original: configparser.RawConfigParser, cards: Mapping[str, str], uuids: Mapping[str, str]
) -> configparser.RawConfigParser:
    """The profile of the live system: cards are bound by MAC address.

    The preferred port of a bond is dropped: it can only be given by name, and does not matter in the live system.
    """
    file = _copy(original)
    if (mac := _card(file, cards)) is not None:
        del file["connection"]["interface-name"]
        if not file.has_section("ethernet"):
            file.add_section("ethernet")
        file["ethernet"]["mac-address"] = mac
    for section in file.sections():
        parent = file.get(section, "parent", fallback="")
        if parent in cards:
            if parent not in uuids:
                name = file["connection"]["id"]
                raise HostNetworkError(f"{name} is on {parent}, which networkConfig does not describe: add it there")
            file[section]["parent"] = uuids[parent]
    if file.has_section("bond"):
        file.remove_option("bond", "primary")
    return file


def _token(mac: str) -> str:
    return f"@{mac}@"
