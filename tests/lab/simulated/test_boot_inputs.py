"""What a node of the lab is booted with beside its kernel: archives, and profiles of its network."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from lab.machines.base import Address
from lab.machines.simulated import archives, keyfile
from lab.machines.simulated.kernel import BootError, Installed, Kernel
from lab.node_image.tree import Tree

_INIT = Path(__file__).resolve().parents[3] / "lab/node_image/files/initramfs/init"
_PROFILE = """\
[connection]
id=x
uuid=84179bad-ab6c-5294-ac8e-f4baaf017ee9
type=ethernet
interface-name=eth0
wait-device-timeout=60000

[ipv4]
method=manual
address1=192.0.2.97/24
gateway=192.0.2.1
dns=192.0.2.53;192.0.2.54;
may-fail=false

[ipv6]
method=disabled
"""
_BOND = "[connection]\nid=bond0\ntype=bond\ninterface-name=bond0\n\n[bond]\nmode=802.3ad\n"
_PORT = "[connection]\nid=port\ntype=ethernet\nmaster=bond0\nslave-type=bond\n"


def _archive(path: str, content: bytes) -> bytes:
    tree = Tree()
    tree.file(path, content)
    return tree.cpio()


def _initramfs(more: str = "") -> bytes:
    return json.dumps({"kind": "simulated-initramfs", "rootfs_sha256": "abc", "more": more}).encode()


# Archives


@pytest.mark.parametrize("padding", [0, 1, 2, 3])
def test_archives_are_unpacked_behind_an_initramfs_as_the_kernel_does(padding: int) -> None:
    initramfs = _initramfs("x" * padding)
    config = _archive("config.ign", b"{}")
    assert archives.unpacked([initramfs, config]) == ("abc", {"config.ign": b"{}"})
    # kexec gives one image; whoever makes it puts the archive at a multiple of four bytes.
    one = initramfs + b"\0" * (-len(initramfs) % 4) + config
    assert archives.unpacked([one]) == ("abc", {"config.ign": b"{}"})


def test_an_archive_at_another_place_is_not_found() -> None:
    initramfs = _initramfs() + b"\0" * (-len(_initramfs()) % 4)
    with pytest.raises(archives.ArchiveError, match="invalid magic"):
        archives.unpacked([initramfs + b"\0" + _archive("config.ign", b"{}")])


def test_what_is_no_archive_is_refused() -> None:
    for image in (b"<html>Not found</html>", _archive("config.ign", b"{}" * 500)[:300]):
        with pytest.raises(archives.ArchiveError, match="Initramfs unpacking failed"):
            archives.unpacked([_initramfs(), image])


def test_a_live_system_has_the_config_of_its_archive_and_an_installed_one_has_not(tmp_path: Path) -> None:
    images = (_initramfs(), _archive("config.ign", b"{}"))
    assert Kernel(arguments=(), initrds=images).config() == b"{}"
    assert Kernel(arguments=(), initrds=images[:1]).config() is None
    installed = Installed(root=tmp_path, boot=tmp_path)
    assert Kernel(arguments=(), initrds=images, installed=installed).config() is None


# Profiles


def _write(path: Path, text: str, mode: int = 0o600) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


_Reader = Callable[[Path], tuple[str, str]]
"""A profile's path to (`obeyed`, `left alone` or `refused`, what was told)."""


def _simulated(path: Path) -> tuple[str, str]:
    try:
        found = keyfile.read(path)
    except keyfile.KeyfileError as error:
        return "refused", str(error)
    if found is None:
        return "left alone", ""
    servers = " ".join(map(str, found.nameservers))
    return "obeyed", f"{found.interface} {found.address} {found.gateway} {servers}"


def _image(path: Path) -> tuple[str, str]:
    """The function of the node image's own init."""
    text = _INIT.read_text()
    function = text[text.index("profile() {") : text.index("# All profiles of a directory")]
    script = f"""
stop() {{ echo "refused|$*"; exit; }}
say() {{ :; }}
configure() {{ echo "obeyed|$1 $2 $3 $(while read -r _ server; do printf '%s ' "$server"; done)"; }}
{function}
profile "$1" || echo 'left alone|'
"""
    done = subprocess.run(["sh", "-c", script, "sh", path], capture_output=True, text=True, check=True)
    verdict, _, told = done.stdout.strip().partition("|")
    return verdict, told.strip()


@pytest.mark.parametrize("read", [_simulated, _image], ids=["simulated", "image"])
class TestBothKindsOfNodesRead:
    def test_the_profile_of_a_static_address(self, tmp_path: Path, read: _Reader) -> None:
        path = _write(tmp_path / "x.nmconnection", _PROFILE)
        assert read(path) == ("obeyed", "eth0 192.0.2.97/24 192.0.2.1 192.0.2.53 192.0.2.54")

    def test_ours_as_it_is_rendered(self, tmp_path: Path, read: _Reader) -> None:
        text = (Path(__file__).resolve().parents[2] / "golden/installer-files.txt").read_text()
        start = text.index("[connection]")
        path = _write(tmp_path / "x.nmconnection", text[start : text.index("== ", start)])
        assert read(path) == ("obeyed", "eno1 192.0.2.97/24 192.0.2.1 192.0.2.53")

    @pytest.mark.parametrize("text", [_BOND, _PORT], ids=["bond", "port"])
    def test_no_bond(self, tmp_path: Path, read: _Reader, text: str) -> None:
        assert read(_write(tmp_path / "x.nmconnection", text))[0] == "left alone"

    @pytest.mark.parametrize(
        ("old", "new", "told"),
        [
            ("type=ethernet", "type=wifi", "type wifi"),
            ("method=manual", "method=auto", "ipv4.method=auto"),
            ("may-fail=false", "may-fail=true", "ipv4.may-fail=true"),
            ("method=disabled", "method=ignore", "ipv6.method=ignore"),
            ("gateway=192.0.2.1\n", "", "gateway"),
            ("interface-name=eth0\n", "", "interface-name"),
            ("[ipv6]", "[ethernet]\nmac-address=52:54:00:00:00:01\n[ipv6]", "ethernet.mac-address"),
            ("may-fail=false", "may-fail=false\nroute1=10.0.0.0/8,192.0.2.2", "ipv4.route1"),
        ],
    )
    def test_nothing_else(self, tmp_path: Path, read: _Reader, old: str, new: str, told: str) -> None:
        assert old in _PROFILE
        verdict, why = read(_write(tmp_path / "x.nmconnection", _PROFILE.replace(old, new)))
        assert verdict == "refused" and told in why, why

    def test_no_file_that_others_can_read(self, tmp_path: Path, read: _Reader) -> None:
        verdict, why = read(_write(tmp_path / "x.nmconnection", _PROFILE, 0o644))
        assert verdict == "refused" and "NetworkManager ignores it" in why


_IPV6 = Address(address="2001:db8:64::61", prefix=64, gateway="2001:db8:64::1", public=True)
_MANUAL = "method=manual\naddress1=2001:db8:64::61/64\ngateway=2001:db8:64::1\nmay-fail=false\n"
_ARGUMENT = "ip=[2001:db8:64::61]::[2001:db8:64::1]:64:n:eth0:none"


@pytest.mark.parametrize(
    ("profile", "arguments", "has"),
    [
        (None, (), True),  # DHCP and router advertisements
        (_PROFILE, (), False),
        (_PROFILE.replace("method=disabled\n", _MANUAL), (), True),
        (None, ("ip=192.0.2.97::192.0.2.1:255.255.255.0:n:eth0:none",), False),
        (None, ("ip=192.0.2.97::192.0.2.1:255.255.255.0:n:eth0:none", _ARGUMENT), True),
    ],
)
def test_a_machine_has_ipv6_where_it_is_told_or_left_to_routers(
    tmp_path: Path, profile: str | None, arguments: tuple[str, ...], has: bool
) -> None:
    paths = [] if profile is None else [_write(tmp_path / "x.nmconnection", profile)]
    kernel = _kernel(tmp_path, *arguments)
    if profile is not None:
        assert keyfile.read(paths[0]) is not None
    assert kernel.check_ipv6(paths, _IPV6) == (_IPV6 if has else None)
    assert kernel.check_network(_MINE) is not None


@pytest.mark.parametrize("wrong", [("::61", "::62"), ("::1", "::2"), (":64:n", ":65:n")])
def test_an_ipv6_address_that_the_network_does_not_know_ends_the_boot(tmp_path: Path, wrong: tuple[str, str]) -> None:
    with pytest.raises(BootError, match="the network is 2001:db8:64::61/64 with gateway 2001:db8:64::1"):
        _kernel(tmp_path, _ARGUMENT.replace(*wrong)).check_ipv6([], _IPV6)


_MINE = (Address(address="192.0.2.97", prefix=24, gateway="192.0.2.1", public=True),)


def _kernel(tmp_path: Path, *arguments: str) -> Kernel:
    return Kernel(arguments=arguments, installed=Installed(root=tmp_path / "root", boot=tmp_path / "boot"))


def test_the_first_boot_has_its_network_from_the_boot_partition_and_later_ones_from_etc(tmp_path: Path) -> None:
    elsewhere = _PROFILE.replace("192.0.2.97", "192.0.2.98")
    _write(tmp_path / "boot/coreos-firstboot-network/x.nmconnection", _PROFILE)
    _write(tmp_path / "root/etc/NetworkManager/system-connections/x.nmconnection", elsewhere)
    told = _kernel(tmp_path, "ignition.firstboot").check_network(_MINE)
    assert told == ["NetworkManager: eth0: 192.0.2.97/24 via 192.0.2.1"]
    with pytest.raises(BootError, match=r"192\.0\.2\.98 is not this machine's address"):
        _kernel(tmp_path).check_network(_MINE)


@pytest.mark.parametrize(
    ("change", "arguments", "told"),
    [
        (("192.0.2.97/24", "192.0.2.97/25"), (), r"the network is 192\.0\.2\.97/24 with gateway 192\.0\.2\.1"),
        (("gateway=192.0.2.1", "gateway=192.0.2.2"), (), r"the network is 192\.0\.2\.97/24 with gateway"),
        (("type=ethernet", "type=team"), (), "no connection of type team"),
        (("", ""), ("ip=192.0.2.97::192.0.2.1:255.255.255.0:n:eth0:none",), "and ip= both say what the network is"),
    ],
)
def test_a_profile_that_is_wrong_ends_the_boot(
    tmp_path: Path, change: tuple[str, str], arguments: tuple[str, ...], told: str
) -> None:
    _write(tmp_path / "root/etc/NetworkManager/system-connections/x.nmconnection", _PROFILE.replace(*change))
    with pytest.raises(BootError, match=told):
        _kernel(tmp_path, *arguments).check_network(_MINE)
