"""The networks of a host with several cards, bonds, VLANs or routes: NMState, and NetworkManager's keyfiles made of it.

NMState names cards as it likes; which card is meant, a list of MAC addresses says, as `hosts[].interfaces` of
agent-config.yaml does. `nmstatectl gc` makes keyfiles of it, in which cards go by these names. They become two kinds:

- Of a live system: a card's profile is bound to its MAC address. So nothing has to run before NetworkManager starts; in
  the initramfs of a live system nothing of ours could.
- Of an installed system: a card's profile is bound to its interface's name, for which `@<MAC address>@` stands here.
  install.sh, which sees the cards, puts the names in. configure-ovs.sh (machine-config-operator) clones the profile of
  the default route's interface for br-ex, and a clone that is bound to a MAC address fits no OVS interface.

Sources: nmstate 2.2.62, nm/gen_conf.rs and nm/settings; nm-settings-nmcli(5): `mac-address` is compared with the
permanent one, so ports of a bond are found too; assisted-service, internal/constants/scripts.go, which puts names in on
the host as well. It renames VLANs after their cards; here they are called what NMState calls them.
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
"""Where the initramfs of a live system takes profiles from (coreos-installer, src/live/embed.rs)."""
_CARDS = ("802-3-ethernet", "ethernet")
"""Types of the profiles of cards."""
_NAMES = ("parent", "primary")
"""Keys whose value is the name of another interface."""
_BY_MAC = ("identifier", "mac-address")
"""How NMState itself says that a card goes by its MAC address."""
_FILE = re.compile(r"[A-Za-z0-9_.-]+\.nmconnection")
_SECONDS = 60


class HostNetworkError(ValueError):
    """What is wrong with a host's NMState, in nmstatectl's words, or that nmstatectl is not there."""


@dataclass(frozen=True, kw_only=True)
class HostNetwork:
    """What one host's networks are to be; plain values."""

    cards: Mapping[str, str]
    """MAC addresses by the names that `state` has for the cards."""
    state: Mapping[str, Any]
    """NMState: `interfaces`, `routes`, `dns-resolver`."""
    told: str
    """The same for people, one line."""
    path: str
    """Where the settings of the host stand."""
    links: tuple[str, ...] = ()
    """What a node check finds of it: bonds as `<name>=<mode>/<MAC addresses>`, VLANs as `<name>=<number>/<parent>`."""

    @property
    def counted(self) -> tuple[str, ...]:
        """What stands for it in a machine's generation. Keyfiles do not count: nmstatectl may word them anew."""
        text = json.dumps([dict(self.cards), self.state], sort_keys=True, separators=(",", ":"))
        return (f"network={hashlib.sha256(text.encode()).hexdigest()}",)


@dataclass(frozen=True, kw_only=True)
class Keyfiles:
    """The keyfiles of one host: their names, and texts."""

    live: Mapping[str, str]
    """Those of a live system."""
    installed: Mapping[str, str]
    """Those of an installed one, with `@<MAC address>@` in place of the names of cards."""

    @property
    def initramfs(self) -> dict[str, str]:
        """The live system's, by where its initramfs finds them."""
        return {f"{LIVE_PROFILES}/{name}": text for name, text in self.live.items()}

    def files(self, directory: str) -> list[NodeFile]:
        """Those of the installed system, as files of a directory."""
        return [NodeFile(path=f"{directory}/{name}", text=text, mode=0o600) for name, text in self.installed.items()]


def keyfiles(network: HostNetwork, program: str) -> Keyfiles:
    """A host's keyfiles; `program` is nmstatectl. Raises HostNetworkError."""
    made = {name: _read(name, text) for name, text in generated(_by_name(network), program).items()}
    uuids = {
        file.get("connection", "interface-name", fallback=""): file["connection"]["uuid"] for file in made.values()
    }
    return Keyfiles(
        live={name: _text(_live(file, network.cards, uuids)) for name, file in made.items()},
        installed={name: _text(_installed(file, network.cards)) for name, file in made.items()},
    )


def _by_name(network: HostNetwork) -> dict[str, Any]:
    """Its state with all cards known by their names, as `cards` has them: of `identifier: mac-address`, nmstatectl
    makes profiles that are bound to MAC addresses, and those of installed systems would be, too."""
    links = [
        {key: value for key, value in link.items() if key not in _BY_MAC}
        if link.get("identifier") == "mac-address" and link.get("name") in network.cards
        else link
        for link in network.state.get("interfaces") or []
    ]
    return {**network.state, "interfaces": links}


def generated(state: Mapping[str, Any], program: str) -> dict[str, str]:
    """What `nmstatectl gc` makes of a state: texts of keyfiles by their names. Raises HostNetworkError."""
    command = [program, "gc", "-"]  # JSON is YAML
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
        raise HostNetworkError("it makes no profile of it: no interface is described")
    odd = [name for name, _ in found if not _FILE.fullmatch(name)]
    if odd:
        raise HostNetworkError(f"a profile is called {odd[0]!r}: use letters, digits and _ . - in profile-name")
    return {name: text for name, text in sorted(found)}


def _read(name: str, text: str) -> configparser.RawConfigParser:
    file = configparser.RawConfigParser(delimiters=("=",), comment_prefixes=("#",), interpolation=None)
    file.optionxform = str  # type: ignore[method-assign,assignment]  # keys are as they are written
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
    """The MAC address of the card that a profile is of; None where it is of something else."""
    of_card = file.get("connection", "type", fallback="") in _CARDS
    return cards.get(file.get("connection", "interface-name", fallback="")) if of_card else None


def _installed(original: configparser.RawConfigParser, cards: Mapping[str, str]) -> configparser.RawConfigParser:
    """With tokens for cards. A driver may be loaded late: NetworkManager waits as long as for an interface of `ip=`."""
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
    """Bound to MAC addresses. Which port a bond prefers does not matter there, and could only be said by name."""
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
