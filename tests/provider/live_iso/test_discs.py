"""A server's disc: the small one comes out of the whole one, and coreos-installer reads what is written into it."""

from __future__ import annotations

import hashlib
import io
import json
import lzma
import subprocess
from pathlib import Path

import pytest

from metal_ipi.provider.live_iso import LiveIsoError, embed, initrd, minimal
from metal_ipi.provider.live_iso.iso9660 import Disc, Extent
from tests.provider.live_iso.discs import DEFAULT, RELEASE, coreos_installer, initramfs, line, room, small, whole

ROOTFS = "coreos.live.rootfs_url=http://boot.facility.test/images/rootfs.img"
CONFIG = b'{"ignition":{"version":"3.2.0"}}'


def written(arguments: list[str], files: dict[str, bytes]) -> io.BytesIO:
    """A disc with these kernel arguments and files."""
    out = small()
    for patch in embed.patches(Disc(out), arguments, files):
        out.seek(patch.offset)
        out.write(patch.data)
    return out


def customized(arguments: list[str], files: dict[str, bytes] | None = None) -> Disc:
    return Disc(written(arguments, files or {}))


# --- reading


def test_files_are_found_however_their_names_are_written() -> None:
    disc = Disc(io.BytesIO(whole()))
    for path in ("images/pxeboot/vmlinuz", "/IMAGES/PXEBOOT/VMLINUZ"):
        place = disc.find(path)
        assert place is not None and disc.read(place) == b"K" * 5000
    assert [disc.find(path) for path in ("images/none", "none/vmlinuz", "images/pxeboot", "images/ignition.img/x")] == [
        None
    ] * 4


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is incomplete"),
        (b"\0" * 40960, "not an ISO 9660 image"),
        (whole()[: 17 * 2048], "no primary volume descriptor|is incomplete"),
    ],
)
def test_what_is_no_disc_is_refused(data: bytes, words: str) -> None:
    with pytest.raises(LiveIsoError, match=words):
        disc = Disc(io.BytesIO(data))
        disc.find("x")


def test_a_disc_that_was_cut_off_is_refused() -> None:
    disc = Disc(io.BytesIO(whole()[:-1000]))
    with pytest.raises(LiveIsoError, match="is incomplete"):
        disc.read(Extent(offset=len(whole()) - 2048, length=2048))


# --- the small disc


def test_the_small_disc_has_all_but_the_root_file_system() -> None:
    out = io.BytesIO()
    digest = minimal.unpack(io.BytesIO(whole()), out)
    assert digest == hashlib.sha256(out.getvalue()).hexdigest()
    disc = Disc(out)
    assert disc.find("images/pxeboot/rootfs.img") is None and disc.find("coreos/miniso.dat") is None
    place = disc.find("images/pxeboot/initrd.img")
    assert place is not None and disc.read(place) == b"I" * 70000
    assert len(out.getvalue()) < len(whole()) - 300000


def test_a_changed_disc_does_not_give_a_small_one() -> None:
    place = Disc(io.BytesIO(whole())).find("images/pxeboot/vmlinuz")
    assert place is not None
    changed = bytearray(whole())
    changed[place.offset] ^= 1
    with pytest.raises(LiveIsoError, match="it is corrupt"):
        minimal.unpack(io.BytesIO(changed), io.BytesIO())


def test_a_disc_that_is_not_coreos_is_refused() -> None:
    with pytest.raises(LiveIsoError, match=r"has no coreos/miniso\.dat"):
        minimal.unpack(small(), io.BytesIO())


@pytest.mark.parametrize("change", [(0, b"X"), (8, b"\x02")], ids=["magic", "version"])
def test_a_newer_format_is_refused(change: tuple[int, bytes]) -> None:
    place = Disc(io.BytesIO(whole())).find("coreos/miniso.dat")
    assert place is not None
    changed = bytearray(whole())
    changed[place.offset + change[0]] = change[1][0]
    with pytest.raises(LiveIsoError, match="has a format that this program does not know"):
        minimal.unpack(io.BytesIO(changed), io.BytesIO())


# --- what is written


def test_kernel_arguments_take_the_place_of_those_for_a_whole_disc() -> None:
    disc = customized([ROOTFS, "console=ttyS0"])
    written = line(disc)
    assert written.startswith(f"{DEFAULT} {ROOTFS} console=ttyS0") and "liveiso" not in written
    again = customized(["ignition.platform.id=metal", ROOTFS])
    assert line(again).startswith(f"ignition.firstboot ignition.platform.id=metal {ROOTFS}"), "nothing is there twice"


def test_as_many_as_fit() -> None:
    fitting = "x" * (room() - len(DEFAULT) - 1)
    assert line(customized([fitting])) == f"{DEFAULT} {fitting}"
    with pytest.raises(LiveIsoError, match=f"have {room() + 1} characters, and the live ISO has room for {room()}"):
        customized([f"{fitting}x"])


@pytest.mark.parametrize("argument", ["a;b", "a$b", 'a="b"', "a b", "a#b", "a{b", "a&b", "a\\b", "a'b", ""])
def test_what_a_boot_loader_would_read_itself_is_refused(argument: str) -> None:
    with pytest.raises(LiveIsoError, match="is not possible with a live ISO"):
        customized([argument])


def test_files_are_in_an_initramfs_that_the_kernel_takes() -> None:
    files = {"config.ign": CONFIG, "etc/a/b": b"", "etc/c": b"12345"}
    assert initramfs(customized([ROOTFS], files)) == files and initrd.pack(files)[7] == lzma.CHECK_CRC32


def test_too_much_is_refused() -> None:
    noise = b"".join(hashlib.sha256(bytes((n % 256, n // 256))).digest() for n in range(9000))
    with pytest.raises(LiveIsoError, match="bytes, and the live ISO has room for 262144"):
        customized([], {"config.ign": noise})


@pytest.mark.parametrize("data", [b"", b"070701", b"\xfd7zXZ\0broken", b"\x1f\x8bbroken", b"070701" + b"0" * 104])
def test_a_broken_initramfs_is_refused(data: bytes) -> None:
    with pytest.raises(LiveIsoError):
        initrd.unpack(data)


# --- coreos-installer, the program that CoreOS's users do the same with


@pytest.fixture
def installer() -> str:
    program = coreos_installer()
    if program is None:
        pytest.skip("coreos-installer was not built")
    return program


def run(*command: str, data: bytes = b"") -> str:
    done = subprocess.run(command, input=data, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def test_coreos_installer_reads_what_we_wrote(installer: str, tmp_path: Path) -> None:
    disc = tmp_path / "disc.iso"
    disc.write_bytes(written([ROOTFS, "console=ttyS0"], {"config.ign": CONFIG}).getvalue())
    assert run(installer, "iso", "kargs", "show", str(disc)) == f"{DEFAULT} {ROOTFS} console=ttyS0\n"
    assert json.loads(run(installer, "iso", "ignition", "show", str(disc))) == json.loads(CONFIG)


def test_coreos_installer_writes_the_same_disc(installer: str, tmp_path: Path) -> None:
    """All but the note of what its default arguments are, which nothing reads but coreos-installer."""
    full, theirs = tmp_path / "full.iso", tmp_path / "theirs.iso"
    full.write_bytes(whole())
    assert run(installer, "iso", "kargs", "show", str(full)) == f"coreos.liveiso=lab-coreos-{RELEASE} {DEFAULT}\n"
    url = ROOTFS.partition("=")[2]
    run(installer, "iso", "extract", "minimal-iso", str(full), str(theirs), "--rootfs-url", url)
    ours = customized([ROOTFS])
    note = ours.find("coreos/kargs.jso")
    assert note is not None
    mine, their = (
        bytearray(data) for data in (ours.read(Extent(offset=0, length=theirs.stat().st_size)), theirs.read_bytes())
    )
    for data in (mine, their):
        data[note.offset : note.offset + note.length] = bytes(note.length)
    assert mine == their


def test_coreos_installer_wraps_ignition_as_we_do(installer: str) -> None:
    theirs = subprocess.run(
        [installer, "pxe", "ignition", "wrap"], input=CONFIG, capture_output=True, check=True
    ).stdout
    assert initrd.unpack(theirs) == {"config.ign": CONFIG}
    assert run(installer, "pxe", "ignition", "unwrap", data=initrd.pack({"config.ign": CONFIG})) == CONFIG.decode()
