"""Unit files and what Afterburn writes."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from lab.machines.simulated import afterburn, unitfile
from lab.machines.simulated.disk import Disks
from lab.machines.simulated.programs import Answer, Call, Host, Refused, block, installer, network, power


def unit(text: str, name: str = "worker@7.service") -> unitfile.UnitFile:
    found = unitfile.UnitFile(name)
    found.feed(text)
    return found


def test_specifiers_lists_and_continuations() -> None:
    found = unit(
        "[Unit]\nAfter=a.service b.service\nAfter=c.service\n[Service]\nExecStart=/x %i \\\n  --unit=%n 100%%\n"
    )
    assert found.names("Unit", "After") == ["a.service", "b.service", "c.service"]
    assert found.last("Service", "ExecStart") == "/x 7    --unit=worker@7.service 100%"


def test_exec_lines(tmp_path: Path) -> None:
    (tmp_path / "env").write_text("# comment\nB=two words\n")
    found = unit('[Service]\nEnvironment="A=one" C=3\nEnvironmentFile=/env\nEnvironmentFile=-/missing\n')
    variables = unitfile.environment(found, tmp_path)
    assert variables == {"A": "one", "B": "two words", "C": "3"}
    line = "-/usr/local/bin/tool --a=${A} $B 'with space'"
    assert unitfile.arguments(line, variables) == (
        ["/usr/local/bin/tool", "--a=one", "two", "words", "with space"],
        True,
    )


def test_what_enabled_units_pull_in(tmp_path: Path) -> None:
    directory, preset = tmp_path / "etc/systemd/system", tmp_path / "etc/systemd/system-preset/20-ignition.preset"
    directory.mkdir(parents=True)
    preset.parent.mkdir()
    preset.write_text("enable a.service\ndisable c.service\n")
    (directory / "a.service").write_text("[Unit]\nRequires=b.service afterburn.service\n")
    (directory / "b.service").write_text("[Service]\nExecStart=/bin/true\n")
    (directory / "c.service").write_text("[Service]\nExecStart=/bin/true\n")
    assert {name: found is not None for name, found in unitfile.wanted(tmp_path).items()} == {
        "a.service": True,
        "b.service": True,
        "afterburn.service": False,
    }
    assert afterburn.required(tmp_path)
    preset.write_text("enable b.service\n")
    assert not afterburn.required(tmp_path)


def test_systemctl_tells_which_unit_is_activating() -> None:
    """Gates ask it of the first boot's unit: one that runs on until the restart."""
    host: Any = SimpleNamespace(activating=lambda: {"first.service"})

    def asked(name: str) -> Answer:
        return asyncio.run(power.systemctl(Call(name="systemctl", directory="/", arguments=("is-active", name)), host))

    assert (asked("first.service").status, asked("first.service").stdout) == (3, "activating\n")
    assert asked("second.service").then == "systemctl is-active second.service"


@pytest.mark.parametrize(
    ("program", "line", "told"),
    [
        (power.kexec, "--exec", "Nothing has been loaded"),
        (power.kexec, "--load", "know --load with a kernel"),
        (power.kexec, "--load kernel", "cannot open kernel"),
        (power.kexec, "--unload", "unrecognized arguments: --unload"),
        (power.reboot_or_poweroff, "--halt", "unrecognized arguments: --halt"),
        (block.lsblk, "--json --output NAME", "know --json --bytes"),
        (block.lsblk, "--json --bytes --output WWN", "know --json --bytes"),
        (block.lsblk, "--json --bytes --output NAME /dev/vdz", "not a block device"),
        (block.wipefs, "--all /dev/vdz", "not a block device"),
        (block.mount, "/dev/vdz /mnt", "not a block device"),
        (block.udevadm, "trigger", "invalid choice"),
        (installer.coreos_installer, "download", "know coreos-installer install"),
        (installer.coreos_installer, "install --append-kargs x", "unrecognized arguments"),
        (installer.coreos_installer, "install", "destination device must be specified"),
        (installer.coreos_installer, "install -c none.yaml /dev/vda", "parsing config file none.yaml"),
        (installer.coreos_installer, "install -c odd.yaml /dev/vda", "do not know the option secure='yes'"),
        (installer.coreos_installer, "install -c list.yaml /dev/vda", "not a mapping"),
        (installer.coreos_installer, "install /dev/vdz", "it is none"),
        (network.chronyc, "sources", "`chronyc -c tracking` alone"),
        (network.ping, "-f 192.0.2.1", "unrecognized arguments"),
        (network.ip, "-json link show dev eth9", 'Device "eth9" does not exist'),
    ],
)
def test_what_programs_do_not_know_they_refuse(tmp_path: Path, program: Any, line: str, told: str) -> None:
    (tmp_path / "odd.yaml").write_text("secure: 'yes'\n")
    (tmp_path / "list.yaml").write_text("- install\n")
    host = Host(
        spec=cast("Any", None), directory=tmp_path, around=cast("Any", None), root=tmp_path, disks=Disks((), tmp_path),
        power=cast("Any", None), line=print, activating=tuple[str, ...],
    )  # fmt: skip
    with pytest.raises(Refused, match=re.escape(told)):
        asyncio.run(program(Call(name="x", directory="/", arguments=tuple(line.split())), host))


def test_afterburn_counts_each_kind_of_address() -> None:
    addresses = [
        {"address": "198.51.100.1", "gateway": "198.51.100.0", "public": True},
        {"address": "2001:db8::3", "gateway": "2001:db8::2", "public": True},
        {"address": "203.0.113.1", "gateway": "203.0.113.0", "public": False},
        {"address": "203.0.113.3", "gateway": "203.0.113.2", "public": False},
    ]
    metadata = {"network": {"addresses": addresses}, "hostname": "n", "phone_home_url": "https://m/p", "plan": "c3"}
    assert afterburn.attributes(metadata) == {
        "AFTERBURN_PACKET_IPV4_PUBLIC_0": "198.51.100.1",
        "AFTERBURN_PACKET_IPV4_PUBLIC_GATEWAY_0": "198.51.100.0",
        "AFTERBURN_PACKET_IPV6_PUBLIC_0": "2001:db8::3",
        "AFTERBURN_PACKET_IPV6_PUBLIC_GATEWAY_0": "2001:db8::2",
        "AFTERBURN_PACKET_IPV4_PRIVATE_0": "203.0.113.1",
        "AFTERBURN_PACKET_IPV4_PRIVATE_GATEWAY_0": "203.0.113.0",
        "AFTERBURN_PACKET_IPV4_PRIVATE_1": "203.0.113.3",
        "AFTERBURN_PACKET_IPV4_PRIVATE_GATEWAY_1": "203.0.113.2",
        "AFTERBURN_PACKET_HOSTNAME": "n",
        "AFTERBURN_PACKET_PHONE_HOME_URL": "https://m/p",
        "AFTERBURN_PACKET_PLAN": "c3",
    }
