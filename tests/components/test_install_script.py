"""install.sh, run for real on disks that are files: which disk it takes, what it refuses, what it survives."""

from __future__ import annotations

import base64
import fcntl
import gzip
import hashlib
import json
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import trustme

from metal_ipi.components.boot.host_network import Keyfiles
from metal_ipi.components.boot.installer import marker
from metal_ipi.components.boot.stream import Artifact
from tests.components.install_machine import GIB, PLAN, Disk, Machine, namespaces
from tests.serving import Handler, answering

pytestmark = [
    pytest.mark.programs,
    pytest.mark.skipif(not namespaces(), reason="mount namespaces, jq, wipefs or curl are not to be had here"),
]

_SSD = Disk(
    name="sda",
    size=2 * GIB,
    links=("/dev/disk/by-path/pci-0000:00:1f.2-ata-1", "/dev/disk/by-id/ata-SSD_1", "/dev/disk/by-id/wwn-0x5001"),
    udev={"ID_WWN": "0x5001", "ID_WWN_WITH_EXTENSION": "0x50010002", "ID_WWN_VENDOR_EXTENSION": "0x0002"},
    lsblk={"model": "Fast SSD 480", "vendor": "ACME    ", "serial": "SSD-1", "hctl": "0:0:0:0"},
)
_HDD = Disk(
    name="sdb",
    size=8 * GIB,
    links=("/dev/disk/by-id/ata-HDD_2",),
    udev={"ID_WWN": "0x5002", "ID_SERIAL_SHORT": "HDD-2"},
    lsblk={"model": "Slow HDD", "vendor": "Spin", "serial": None, "hctl": "1:0:0:0", "rota": True},
)
_NVME = Disk(name="nvme0n1", size=3 * GIB, links=("/dev/disk/by-id/nvme-eui.0025",), lsblk={"model": "NVMe 1"})
_DISKS = (_SSD, _HDD, _NVME)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path, *_DISKS)


def _marker(**changes: str) -> str:
    return marker(**{"cluster": PLAN.cluster, "machine": PLAN.machine, "generation": "f" * 16, **changes})


def _failed(machine: Machine, state: str = "failed", **changes: Any) -> tuple[str, str]:
    """Run it, see that it fails and that no disk was written; reason and remedy."""
    before = {disk.name: machine.read(disk.name, 0, 1 << 20) for disk in _DISKS if machine.disk(disk.name).exists()}
    result = machine.run(**changes)
    status = machine.status
    assert (result.returncode, status["state"]) == (1, state), result.stderr
    assert {name: machine.read(name, 0, 1 << 20) for name in before} == before
    assert not machine.arguments
    return status["reason"], status["remedy"]


@pytest.mark.parametrize(
    ("rules", "device"),
    [
        ({"deviceName": "/dev/disk/by-path/pci-0000:00:1f.2-ata-1"}, "sda"),
        ({"byId": "nvme-eui.0025"}, "nvme0n1"),
        ({"serial": "SSD-1"}, "sda"),
        ({"serial": "HDD-2"}, "sdb"),
        ({"wwn": "0x5002"}, "sdb"),
        ({"wwnWithExtension": "0x50010002"}, "sda"),
        ({"wwnVendorExtension": "0x0002"}, "sda"),
        ({"model": "NVMe"}, "nvme0n1"),
        ({"vendor": "Spin"}, "sdb"),
        ({"hctl": "1:0:0:0"}, "sdb"),
        ({"minSize": 4}, "sdb"),
        ({"maxSize": 2}, "sda"),
        ({"rotational": True}, "sdb"),
        ({"rotational": False, "minSize": 3}, "nvme0n1"),
        ({"smallest": True}, "sda"),
        ({"smallest": True, "minSize": 3}, "nvme0n1"),
        ({"smallest": True, "rotational": True}, "sdb"),
    ],
    ids=str,
)
def test_each_rule_finds_its_disk(machine: Machine, rules: dict[str, Any], device: str) -> None:
    result = machine.run(device=rules)
    assert (result.returncode, machine.status["state"]) == (0, "done"), machine.status
    assert machine.status["device"] == machine.arguments[-1] == f"/disks/{device}"


def test_a_whole_installation(machine: Machine) -> None:
    result = machine.run()
    assert result.returncode == 0, result.stderr
    assert machine.status == {
        "state": "done",
        "generation": PLAN.generation,
        "device": "/disks/sda",
        "stable": "/dev/disk/by-id/wwn-0x5001",
        "step": "installed",
        "reason": "",
        "remedy": "",
    }
    assert machine.arguments == [
        "install",
        "--config-file",
        "/etc/coreos/installer.d/10-metal-ipi.yaml",
        "--offline",
        "/disks/sda",
    ]
    assert machine.marker("sda") == json.loads(_marker(generation=PLAN.generation))
    assert not any(machine.read("sda", 2 * GIB - (1 << 20), 1 << 20)), "the claim is gone"


@pytest.mark.parametrize(
    ("rules", "reason"),
    [
        (
            {"serial": "SSD"},
            'no disk meets the rules {"serial":"SSD"}; the disks are: /disks/sda (2 GiB, vendor ACME    , model Fast',
        ),
        ({"serial": "SSD-1", "rotational": True}, "no disk meets"),
        ({"maxSize": 1}, "/disks/sdb (8 GiB, vendor Spin, model Slow HDD, serial HDD-2, wwn 0x5002, hctl 1:0:0:0, rot"),
        ({"rotational": False}, 'several disks meet the rules {"rotational":false}: /disks/sda ('),
        ({"byPath": "x"}, "install.sh failed at line"),
    ],
    ids=str,
)
def test_without_exactly_one_disk_nothing_is_written(machine: Machine, rules: dict[str, Any], reason: str) -> None:
    assert reason in _failed(machine, device=rules)[0]


def test_of_two_smallest_none_is_taken(tmp_path: Path) -> None:
    machine = Machine(tmp_path, _SSD, Disk(name="sdc", size=2 * GIB))
    reason, remedy = _failed(machine)
    assert "several disks meet" in reason and "/disks/sdc (2 GiB, not rotational)" in reason
    assert "add rules" in remedy


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"type": "rom", "name": "sr0"}, "it is not a disk but rom"),
        ({"type": "loop"}, "it is not a disk but loop"),
        ({"name": "zram0"}, "it is memory"),
        ({"rm": True}, "it is removable"),
        ({"ro": True}, "it is read-only"),
        ({"size": 0}, "it has no size"),
        ({"mountpoints": ["/run/media/iso"]}, "the running system uses it (/run/media/iso)"),
        ({"fstype": "mpath_member"}, "it is part of multipath or RAID (mpath_member), which is not supported"),
        *(
            ({"children": [{"type": "part", "path": "/disks/sdx3", "children": [child]}]}, why)
            for child, why in (
                ({"type": "raid1", "mountpoints": []}, "it is part of multipath or RAID (raid1), which"),
                ({"type": "lvm", "mountpoints": [None]}, "a lvm device is active on it"),
                ({"type": "crypt", "mountpoints": ["/var"]}, "the running system uses it (/var)"),
            )
        ),
    ],
    ids=str,
)
def test_some_disks_never_match(tmp_path: Path, changes: dict[str, Any], why: str) -> None:
    machine = Machine(tmp_path, Disk(name="sdx", size=GIB, lsblk=changes))
    machine.installed("sdx", None)
    reason, _ = _failed(machine, accept="wipe")
    assert (
        reason.startswith('no disk meets the rules {"smallest":true}; the disks are: /disks/sdx (')
        and f"never: {why}" in reason
    )


def _foreign(machine: Machine, kind: str) -> str:
    """Put something onto the disk; what the message must say of it."""
    if kind == "partitions":
        machine.installed("sda", None, other={"grub/x": ""})
        return "signature of dos, /disks/sda3 with ext4 boot"
    if kind == "CoreOS":
        machine.installed("sda", None)
        return "/disks/sda3 with ext4 boot"
    if kind == "another machine":
        machine.installed("sda", _marker(machine="rack-worker-1.rack.facility.test"))
        return '"machine": "rack-worker-1.rack.facility.test"'
    if kind == "another cluster":
        machine.installed("sda", _marker(cluster="other.test"))
        return '"cluster": "other.test"'
    if kind == "broken marker":
        machine.installed("sda", "{")
        return "its marker is: {"
    machine.fill("sda", 4096 if kind == "data in front" else 2 * GIB - 4096, b"something")
    return "data of no known kind"


_FOREIGN = (
    "partitions",
    "CoreOS",
    "another machine",
    "another cluster",
    "broken marker",
    "data in front",
    "data behind",
)


@pytest.mark.parametrize("kind", _FOREIGN)
def test_what_is_not_ours_is_refused_without_consent(machine: Machine, kind: str) -> None:
    found = _foreign(machine, kind)
    reason, remedy = _failed(machine)
    assert reason.startswith("/disks/sda (/dev/disk/by-id/wwn-0x5001) is not empty, and not an installation of this")
    assert found in reason
    assert "consent: wipe" in remedy


@pytest.mark.parametrize("kind", ["another machine", "data behind"])
def test_with_consent_whatever_is_there_goes(machine: Machine, kind: str) -> None:
    _foreign(machine, kind)
    assert machine.run(accept="wipe").returncode == 0
    assert machine.marker("sda") == json.loads(_marker(generation=PLAN.generation))


def test_an_older_installation_of_this_machine_needs_no_consent(machine: Machine) -> None:
    machine.installed("sda", _marker())
    assert machine.run().returncode == 0
    assert (machine.runs, machine.marker("sda")["generation"]) == (1, PLAN.generation)


def test_the_same_generation_is_not_installed_again(machine: Machine) -> None:
    machine.installed("sda", _marker(generation=PLAN.generation))
    before = machine.digest("sda")
    assert machine.run(cmdline="metal-ipi.not-after=1", wipe_disks=({"rotational": True},)).returncode == 0
    assert (machine.status["state"], machine.status["step"]) == ("done", "it was installed already")
    assert (machine.runs, machine.digest("sda")) == (0, before)


def test_an_expired_installer_does_nothing(machine: Machine) -> None:
    reason, remedy = _failed(machine, "expired", cmdline="metal-ipi.not-after=1700000000")
    assert reason.startswith("this installer was valid until 2023-11-14T22:13:20Z, and the machine's clock says 20")
    assert "run up again" in remedy
    reason, _ = _failed(machine, "expired", cmdline="metal-ipi.not-after=soon")
    assert reason == "the installer's end of validity is not a number: 'soon'"
    assert machine.run(cmdline="metal-ipi.not-after=4000000000").returncode == 0


def test_listed_disks_are_emptied_and_others_keep_their_content(machine: Machine) -> None:
    machine.installed("sdb", None)
    machine.fill("sdb", 8 * GIB - 512, b"the end")
    machine.fill("nvme0n1", 0, b"precious" * 1000)
    before = machine.digest("nvme0n1")
    result = machine.run(wipe_disks=({"rotational": True}, {"serial": "HDD-2"}))
    assert (result.returncode, result.stdout.count("wiping /disks/sdb")) == (0, 1)
    assert not any(machine.read("sdb", 0, 1 << 20)) and not any(machine.read("sdb", 8 * GIB - (1 << 20), 1 << 20))
    assert machine.digest("nvme0n1") == before


def _again(machine: Machine, **changes: Any) -> bytes:
    """Run it with /dev/sdb listed to be wiped; what is on that disk then."""
    assert machine.run(wipe_disks=({"rotational": True},), **changes).returncode == 0, machine.status
    assert machine.marker("sda") == json.loads(_marker(generation=PLAN.generation))
    return machine.read("sdb", 0, 8)


def test_listed_disks_are_wiped_when_a_machine_is_first_installed_only(machine: Machine) -> None:
    machine.installed("sda", _marker())
    machine.fill("sdb", 0, b"precious")
    assert _again(machine) == b"precious"
    machine.installed("sda", _marker())
    assert _again(machine, accept="wipe") == bytes(8), "by consent they are wiped again"


@pytest.mark.parametrize("write", ["after 1", "before 2", "after 2", "before 3"])
def test_an_interrupted_installation_anew_leaves_listed_disks_alone(machine: Machine, write: str) -> None:
    """The old marker is gone with the first MiB: the claim tells."""
    machine.installed("sda", _marker())
    machine.fill("sdb", 0, b"precious")
    machine.power_loss(write)
    assert machine.run(wipe_disks=({"rotational": True},)).returncode == -9
    machine.power_loss("never")
    assert _again(machine) == b"precious"


@pytest.mark.parametrize("write", ["before 1", "after 2", "before 3", "after 4"])
def test_an_interrupted_first_installation_wipes_listed_disks(machine: Machine, write: str) -> None:
    """Writes: the claim, the first MiB, the listed disk's first and last MiB."""
    machine.fill("sdb", 0, b"useless!")
    machine.power_loss(write)
    assert machine.run(wipe_disks=({"rotational": True},)).returncode == -9
    machine.power_loss("never")
    assert _again(machine) == bytes(8)


def test_a_listed_disk_that_is_gone_does_not_matter_later(machine: Machine) -> None:
    machine.installed("sda", _marker())
    assert machine.run(wipe_disks=({"serial": "none"},)).returncode == 0


def test_a_machine_that_moves_to_another_disk_gives_up_the_old_one_only(machine: Machine) -> None:
    machine.installed("sdb", _marker())
    machine.fill("nvme0n1", 0, b"precious")
    assert machine.run(wipe_disks=({"serial": "HDD-2"}, {"model": "NVMe"})).returncode == 0, machine.status
    assert not any(machine.read("sdb", 0, 1 << 20)) and machine.read("nvme0n1", 0, 8) == b"precious"


_RECORDED = "metal-ipi.device=/dev/disk/by-id/wwn-0x5001"


@pytest.mark.parametrize(("accept", "remedy"), [("empty", "(consent: wipe)"), ("new", "pulumi up --replace")])
def test_no_other_disk_takes_the_place_of_one_that_is_gone(tmp_path: Path, accept: str, remedy: str) -> None:
    machine = Machine(tmp_path, _NVME, _HDD)
    reason, advice = _failed(machine, cmdline=_RECORDED, accept=accept, environment={"DISK_WAIT": "30"})
    assert reason.startswith(
        "this machine is installed on /dev/disk/by-id/wwn-0x5001, which is missing; "
        'the rules {"smallest":true} now select /disks/nvme0n1 (/dev/disk/by-id/nvme-eui.0025); '
        "the disks are: /disks/nvme0n1 (3 GiB"
    )
    assert advice.startswith("find out why that disk is missing; if it will not come back, ") and remedy in advice
    assert machine.waited == 30
    assert machine.run(cmdline=_RECORDED, accept="wipe").returncode == 0
    assert machine.marker("nvme0n1") == json.loads(_marker(generation=PLAN.generation))


def test_a_disk_that_came_later_does_not_take_the_place_of_the_recorded_one(machine: Machine) -> None:
    reason, remedy = _failed(machine, cmdline="metal-ipi.device=/dev/disk/by-id/nvme-eui.0025")
    assert reason == (
        "this machine is installed on /dev/disk/by-id/nvme-eui.0025 (/disks/nvme0n1), "
        'but the rules {"smallest":true} now select /disks/sda (/dev/disk/by-id/wwn-0x5001)'
    )
    assert "by byId" in remedy


@pytest.mark.parametrize("state", ["done", "ours", "begun"])
def test_what_an_earlier_run_put_onto_another_disk_by_consent_is_gone_on_with(tmp_path: Path, state: str) -> None:
    """Its resource does not know of that disk yet."""
    machine = Machine(tmp_path, _NVME, _HDD)
    if state == "begun":
        machine.installer("killed")
        machine.run(cmdline=_RECORDED, accept="wipe")
        machine.installer("works")
    else:
        machine.installed("nvme0n1", _marker(generation=PLAN.generation if state == "done" else "f" * 16))
    before = machine.digest("nvme0n1")
    assert machine.run(cmdline=_RECORDED).returncode == 0, machine.status
    assert (machine.digest("nvme0n1") == before) == (state == "done")


@pytest.mark.parametrize(("cmdline", "waited"), [("", 9), (_RECORDED, 4)], ids=["new", "recorded"])
def test_a_disk_that_is_late_is_waited_for(machine: Machine, cmdline: str, waited: int) -> None:
    """The smallest one comes with the fifth look; five more show that none follows, where it is not known which."""
    machine.late("sda", 4)
    assert machine.run(cmdline=cmdline, environment={"DISK_WAIT": "30"}).returncode == 0, machine.status
    assert (machine.status["device"], machine.waited) == ("/disks/sda", waited)


@pytest.mark.parametrize(("uptime", "waited"), [(20, 5), (59, 5), (60, 0), (86400, 0)])
def test_disks_that_may_come_later_are_waited_for_while_the_kernel_is_young(
    machine: Machine, uptime: int, waited: int
) -> None:
    assert machine.run(uptime=uptime, environment={"DISK_WAIT": "30"}).returncode == 0, machine.status
    assert machine.waited == waited


def test_where_a_look_takes_long_fewer_of_them_show_that_no_disk_follows(machine: Machine) -> None:
    # Beside its sleep a look takes time of its own: where processors are busy, seconds.
    machine.write("fixtures/slow", "3")
    assert machine.run(environment={"DISK_WAIT": "30", "DISK_STEADY": "7"}).returncode == 0, machine.status
    assert machine.waited in (2, 3), "looks that are three seconds apart, instead of five"


def test_properties_are_read_as_udev_writes_them(tmp_path: Path) -> None:
    odd = Disk(name="sdb", udev={"ID_SERIAL_SHORT": "A=B==", "ID_WWN": ""})
    machine = Machine(tmp_path, _SSD, odd)
    machine.write("fixtures/udev/sdb", "ID_WWN_WITH_EXTENSION\nID_WWN=\nID_SERIAL_SHORT=A=B==\n")
    assert machine.run(device={"serial": "A=B=="}).returncode == 0, machine.status
    assert machine.status["device"] == machine.status["stable"] == "/disks/sdb"


def test_a_disk_that_udev_does_not_know_ends_it_before_anything_is_written(machine: Machine) -> None:
    (machine.disk("sdb").parents[1] / "fixtures/udev/sdb").unlink()
    reason, _ = _failed(machine)
    assert "list_disks" in reason


@pytest.mark.parametrize("cmdline", ["", "metal-ipi.device=", _RECORDED])
def test_of_a_new_machine_whatever_is_there_goes_until_it_was_installed_once(machine: Machine, cmdline: str) -> None:
    machine.fill("sda", 0, b"what somebody left behind")
    if not cmdline:
        assert machine.run(accept="new").returncode == 0
        return
    reason, remedy = _failed(machine, accept="new", cmdline=cmdline)
    assert "is not empty, and not an installation of this machine" in reason and "pulumi up --replace" in remedy


@pytest.mark.parametrize(
    ("marker", "what"),
    [
        (_marker(), f"an earlier installation of this machine ({'f' * 16})"),
        (_marker(machine="rack-worker-1.rack.facility.test"), "an installation with the marker {"),
        (None, "a file system with label boot"),
    ],
    ids=["ours", "another machine's", "unmarked"],
)
def test_no_second_system_is_left_on_another_disk(machine: Machine, marker: str | None, what: str) -> None:
    """CoreOS would not start, or the old system would."""
    machine.installed("sda", marker)
    reason, remedy = _failed(machine, device={"rotational": True}, accept="wipe")
    assert reason.startswith(f"besides /disks/sdb, the disk to install to, another disk has {what}")
    assert "/disks/sda (2 GiB, vendor ACME    , " in reason and "byId ata-SSD_1 or" in reason
    assert "list that disk in wipeDisks" in remedy
    assert machine.run(device={"rotational": True}, wipe_disks=({"byId": "ata-SSD_1"},)).returncode == 0
    assert not any(machine.read("sda", 0, 1 << 20))
    assert machine.marker("sdb") == json.loads(_marker(generation=PLAN.generation))


@pytest.mark.parametrize(
    ("rules", "reason"),
    [
        ({"serial": "none"}, 'no disk meets the rules {"serial":"none"} of wipeDisks; the disks are: /disks/sda'),
        ({"rotational": False}, "of wipeDisks select /disks/sda, the disk to install to"),
    ],
)
def test_a_wrong_list_is_told_before_anything_is_wiped(machine: Machine, rules: dict[str, Any], reason: str) -> None:
    assert reason in _failed(machine, wipe_disks=({"rotational": True}, rules))[0]


def test_a_failing_coreos_installer_is_told_and_tried_again(machine: Machine) -> None:
    machine.installer("fail")
    assert machine.run().returncode == 1
    assert machine.status["state"] == "failed"
    assert machine.status["reason"] == "coreos-installer failed: Error: something is broken"
    machine.installer("works")
    assert machine.run().returncode == 0
    assert (machine.status["state"], machine.runs) == ("done", 2)


def test_killed_while_coreos_installer_writes_it_starts_over(machine: Machine) -> None:
    machine.installer("killed")
    assert machine.run().returncode == -9
    assert machine.status["step"] == "coreos-installer writes /disks/sda"
    assert machine.read("sda", 2 << 20, 4) == b"half"
    machine.installer("works")
    assert machine.run().returncode == 0, machine.status
    assert (machine.status["state"], machine.runs) == ("done", 2)


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("write", [1, 2, 3])
@pytest.mark.parametrize("old", [True, False], ids=["reinstalled", "new"])
def test_power_loss_at_any_write_is_survived(machine: Machine, moment: str, write: int, old: bool) -> None:
    """Writes: the claim, the first MiB, and the claim's removal."""
    if old:
        machine.installed("sda", _marker())
    machine.fill("sdb", 0, b"precious")
    machine.power_loss(f"{moment} {write}")
    assert machine.run().returncode == -9
    assert machine.status["state"] == "installing"
    machine.power_loss("never")
    assert machine.run().returncode == 0, machine.status
    assert machine.marker("sda") == json.loads(_marker(generation=PLAN.generation))
    assert machine.read("sdb", 0, 8) == b"precious"
    assert not any(machine.read("sda", 2 * GIB - (1 << 20), 1 << 20)), "the claim is gone"
    assert machine.runs == 1, "what was finished is not installed again, what was not begun is"


def test_a_half_installed_system_that_booted_is_ours(machine: Machine) -> None:
    """Power was lost before the marker, and the machine then booted its disk."""
    machine.power_loss("before 3")
    machine.run()
    machine.disk("sda3").unlink() if machine.disk("sda3").is_file() else None
    machine.installed("sda", None)
    machine.power_loss("never")
    assert machine.run().returncode == 0, machine.status


def test_a_claim_does_not_give_away_what_came_after_it(machine: Machine) -> None:
    machine.installer("killed")
    machine.run()
    machine.installed("sda", None, other={"grub/x": "another system, installed by hand"})
    (machine.disk("sda").parent.parent / "record/arguments").unlink()
    assert "is not empty" in _failed(machine)[0]


class _Server(Handler):
    """Answers 503 so many times, then the image."""

    image, failures = b"image" * 1000, 0

    def do_GET(self) -> None:
        cls = type(self)
        ok = cls.failures == 0
        cls.failures = max(cls.failures - 1, 0)
        self.send_response(200 if ok else 503)
        self.end_headers()
        if ok:
            self.wfile.write(cls.image)


@contextmanager
def _served(authority: trustme.CA | None = None) -> Generator[Artifact, None, None]:
    """The image on a server, of this authority where there is one."""
    _Server.failures = 0
    with answering(_Server, authority) as url:
        yield Artifact(url=f"{url}/rhcos.raw.gz", sha256=hashlib.sha256(_Server.image).hexdigest())


@pytest.fixture
def image() -> Generator[Artifact, None, None]:
    with _served() as found:
        yield found


def test_a_disk_image_is_fetched_with_retries_and_checked(machine: Machine, image: Artifact) -> None:
    _Server.failures = 1
    assert machine.run(image=image).returncode == 0, machine.status
    assert machine.arguments[-4:] == ["--image-file", "/var/tmp/metal-ipi-image", "--insecure", "/disks/sda"]


def test_a_disk_image_from_a_server_of_the_sites_own_authority(machine: Machine) -> None:
    authority = trustme.CA()
    with _served(authority) as image:
        reason, _ = _failed(machine, image=image, environment={"DOWNLOAD_RETRIES": "0"})
        assert "certificate" in reason
        machine.write("etc/metal-ipi/ca.pem", authority.cert_pem.bytes().decode())
        assert machine.run(image=image).returncode == 0, machine.status


def test_a_disk_image_with_another_hash_is_not_installed(machine: Machine, image: Artifact) -> None:
    reason, remedy = _failed(machine, image=Artifact(url=image.url, sha256="0" * 64))
    assert reason.endswith(f"has SHA-256 {image.sha256}, but the stream metadata say {'0' * 64}")
    assert "correct the stream" in remedy


def test_a_disk_image_that_cannot_be_had_is_told(machine: Machine, image: Artifact) -> None:
    _Server.failures = 1000
    reason, _ = _failed(machine, image=image, environment={"DOWNLOAD_RETRIES": "1"})
    assert reason.startswith(f"the disk image cannot be downloaded from {image.url}: ") and "503" in reason


def _single_node(machine: Machine) -> Path:
    """Let it be the live system of a single node; the directory that bootkube works in."""
    machine.write("etc/metal-ipi/pointer.ign", '{"ignition":{"version":"3.3.0","config":{"merge":[]}},"storage":{}}')
    return machine.write("opt/openshift/master.ign", '{"ignition":{"version":"3.2.0"}}').parent


def test_a_single_node_is_installed_with_what_bootkube_leaves(machine: Machine, tmp_path: Path) -> None:
    bootkube = _single_node(machine)

    def finish() -> None:
        status = tmp_path / "run/metal-ipi/install.json"
        while not (status.exists() and "bootkube" in status.read_text()):
            time.sleep(0.05)
        seen.append((machine.status, machine.runs))
        (bootkube / ".bootkube.done").touch()

    seen: list[tuple[dict[str, str], int]] = []
    watcher = threading.Thread(target=finish, daemon=True)
    watcher.start()
    result = machine.run(pointer=None)
    watcher.join(10)

    assert (result.returncode, machine.status["state"]) == (0, "done"), machine.status
    ((waiting, runs),) = seen
    assert (waiting["state"], waiting["step"], runs) == ("waiting", "waiting until bootkube has formed the cluster", 0)
    assert waiting["device"] == "/disks/sda", "a disk that is none is told before, not after"
    file = "/run/metal-ipi/disk.ign"
    assert machine.arguments[:3] == ["install", "--ignition-file", file]
    path = tmp_path / file.lstrip("/")
    assert path.stat().st_mode & 0o077 == 0
    document = json.loads(path.read_text())
    (merged,) = document["ignition"]["config"].pop("merge")
    assert document == {"ignition": {"version": "3.3.0", "config": {}}, "storage": {}}
    assert merged.keys() == {"source", "compression"} and merged["compression"] == "gzip"
    data = base64.b64decode(merged["source"].removeprefix("data:;base64,"), validate=True)
    assert json.loads(gzip.decompress(data)) == {"ignition": {"version": "3.2.0"}}


def test_a_bootkube_that_leaves_nothing_is_told(machine: Machine) -> None:
    bootkube = _single_node(machine)
    (bootkube / ".bootkube.done").touch()
    (bootkube / "master.ign").write_text("")
    reason, remedy = _failed(machine, pointer=None)
    assert reason == "bootkube is done, but left no /opt/openshift/master.ign"
    assert remedy == "look at journalctl -u bootkube on the live system"


@pytest.mark.parametrize(
    ("verdict", "state"), [("go\n", "done"), ("live checks: its clock is late\nCorrect it\n", "failed")]
)
def test_nothing_is_written_before_somebody_has_looked_at_it(
    machine: Machine, tmp_path: Path, verdict: str, state: str
) -> None:
    before = {disk.name: machine.digest(disk.name) for disk in _DISKS}

    def look() -> None:
        status = tmp_path / "run/metal-ipi/install.json"
        while not (status.exists() and '"held"' in status.read_text()):
            time.sleep(0.05)
        held.append((machine.status["device"], {disk.name: machine.digest(disk.name) for disk in _DISKS}))
        with (tmp_path / "run/metal-ipi/probe.lock").open("w") as lock:  # a probe of a run that is gone
            fcntl.flock(lock, fcntl.LOCK_EX)
            # Whole at once, as provider/installation/meeting.py writes it.
            machine.write("run/metal-ipi/verdict.new", verdict).rename(tmp_path / "run/metal-ipi/verdict")
            while (tmp_path / "run/metal-ipi/verdict").exists():
                time.sleep(0.05)
            time.sleep(1)
            held.append((machine.status["device"], {disk.name: machine.digest(disk.name) for disk in _DISKS}))
            seen.append(machine.status["state"])

    seen: list[str] = []
    held: list[tuple[str, dict[str, str]]] = []
    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    result = machine.run(held=True)
    watcher.join(10)

    assert machine.status["state"] == state, result.stderr
    assert held == [("/disks/sda", before)] * 2
    assert not (tmp_path / "run/metal-ipi/verdict").exists(), "the next start is looked at again"
    if state == "done":
        assert seen == ["held"], "nothing goes on while a probe does"
    if state == "failed":
        assert (machine.status["reason"], machine.status["remedy"]) == tuple(verdict.splitlines())
        assert {disk.name: machine.digest(disk.name) for disk in _DISKS} == before


# --- networks ------------------------------------------------------------------------------------------------------

_PROFILES = {
    "bond0.nmconnection": "[connection]\ninterface-name=bond0\n[bond]\nprimary=@52:54:00:00:00:01@\n",
    "eno1.nmconnection": "[connection]\nid=eno1\ninterface-name=@52:54:00:00:00:01@\n",
    "eno2.nmconnection": "[connection]\nid=eno2\ninterface-name=@52:54:00:00:00:02@\n",
}
_KEYFILES = Keyfiles(live={}, installed=_PROFILES)


def _cards(machine: Machine, *, second: str = "52:54:00:00:00:02") -> None:
    """Two cards that are ports of a bond, whose address both have; their own is beside it."""
    for name, mac in (("eno2", "52:54:00:00:00:01"), ("ens3", second)):  # eno2 is what the settings call the other one
        machine.write(f"sys/class/net/{name}/address", "52:54:00:00:00:01\n")
        machine.write(f"sys/class/net/{name}/device/vendor", "")
        machine.write(f"sys/class/net/{name}/bonding_slave/perm_hwaddr", f"{mac}\n")
    machine.write("sys/class/net/bond0/address", "52:54:00:00:00:01\n")
    for name, text in _PROFILES.items():
        machine.write(f"etc/metal-ipi/network-by-mac/{name}", text)


def test_profiles_are_bound_to_the_names_that_the_cards_have_here(machine: Machine, tmp_path: Path) -> None:
    _cards(machine)
    theirs = {"path": "/etc/NetworkManager/system-connections/eno1.nmconnection", "contents": {"source": "data:,old"}}
    pointer = {"ignition": {"version": "3.3.0"}, "storage": {"files": [theirs, {"path": "/etc/hostname"}]}}
    machine.write("etc/metal-ipi/disk.ign", json.dumps(pointer)).chmod(0o600)
    for _ in range(2):  # it may have been killed after the first
        assert machine.run(keyfiles=_KEYFILES).returncode == 0
    bound = {name: text.replace("@52:54:00:00:00:01@", "eno2").replace("@52:54:00:00:00:02@", "ens3")
             for name, text in _PROFILES.items()}  # fmt: skip
    folder = tmp_path / "etc/metal-ipi/network"
    assert {path.name: path.read_text() for path in folder.iterdir()} == bound
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    disk = tmp_path / "etc/metal-ipi/disk.ign"
    files = json.loads(disk.read_text())["storage"]["files"]
    assert disk.stat().st_mode & 0o777 == 0o600
    assert [file["path"].rpartition("/")[2] for file in files] == ["hostname", *bound]
    for file in files[1:]:
        text = base64.b64decode(file["contents"]["source"].partition("base64,")[2]).decode()
        assert (text, file["mode"]) == (bound[file["path"].rpartition("/")[2]], 0o600)


def test_a_card_that_is_not_there_is_told_before_anything_is_written(machine: Machine) -> None:
    _cards(machine, second="52:54:00:00:00:03")
    reason, remedy = _failed(machine, keyfiles=_KEYFILES)
    assert "no network card with the MAC address 52:54:00:00:00:02" in reason
    assert "it has: 52:54:00:00:00:01 (eno2), 52:54:00:00:00:03 (ens3)" in reason
    assert "interfaces of this server" in remedy
