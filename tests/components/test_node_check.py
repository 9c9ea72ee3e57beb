"""The node check's script, run against prepared root file systems, and what is made of its output."""

from __future__ import annotations

import dataclasses
import json
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from metal_ipi.components.boot.installer import marker
from metal_ipi.components.checks import node_check
from metal_ipi.components.checks.node_check import Expectation, variables
from metal_ipi.provider.node_check import CheckOutputError, parse, script_of
from tests import golden
from tests.components.install_machine import Root

_EXPECTATION = Expectation(
    hostname="lab-worker-0.lab.facility.test",
    metadata_hostname="lab-worker-0",
    public_ipv4="198.51.100.7",
    private_ipv4="203.0.113.7",
    platform_id="packet",
    release="9.8.20260428-0",
    kernel_arguments=("console=ttyS1,115200n8", "nosmt"),
)
_FILES = {
    "etc/.ignition-result.json": '{\n  "provisioningDate": "2026-05-01T10:00:00Z",\n  "userConfigProvided": true\n}\n',
    "etc/os-release": 'NAME="Lab"\nID="rhcos-lab"\nOSTREE_VERSION=\'9.8.20260428-0\'\n',
    "proc/cmdline": "initrd=main ignition.platform.id=packet console=ttyS1,115200n8 nosmt\n",
    "proc/sys/kernel/hostname": "lab-worker-0.lab.facility.test\n",
    "proc/mounts": "proc /proc proc rw 0 0\ncomposefs / overlay ro 0 0\n/dev/vda4 /sysroot xfs rw 0 0\n",
    "etc/metal-ipi/installation.json": marker(cluster="c.test", machine="m.test", generation="0123456789abcdef"),
    "run/metadata/afterburn": (
        "AFTERBURN_PACKET_HOSTNAME=lab-worker-0\n"
        "AFTERBURN_PACKET_IPV4_PUBLIC_0=198.51.100.7\n"
        "AFTERBURN_PACKET_IPV4_PRIVATE_0=203.0.113.7\n"
    ),
    "opt/bin/afterburn": "#!/bin/sh\n",
    "opt/bin/sudo": '#!/bin/sh\n[ "$1" = -n ] || exit 1\nshift\nexec "$@"\n',
    "dev/null": "",
}


def _namespaces() -> bool:
    program = shutil.which("unshare")
    if program is None:
        return False
    return subprocess.run([program, "-Urm", "true"], capture_output=True, check=False).returncode == 0


runs_scripts = pytest.mark.skipif(not _namespaces(), reason="user and mount namespaces are not permitted here")


class Node(Root):
    """A node, every file of which can be changed."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        for path, text in _FILES.items():
            self.write(path, text)
        for program in ("afterburn", "sudo"):
            (root / "opt/bin" / program).chmod(0o755)

    def replace(self, path: str, old: str, new: str) -> None:
        """Change a file of a healthy node."""
        assert old in _FILES[path]
        self.write(path, _FILES[path].replace(old, new))

    def remove(self, *paths: str) -> None:
        """Take files away."""
        for path in paths:
            (self._root / path).unlink()

    def check(self, expectation: Expectation = _EXPECTATION) -> subprocess.CompletedProcess[str]:
        """Run the script as the node's shell would."""
        root = shlex.quote(str(self._root))
        mounts = [f"mount --rbind /{name} {root}/{name}" for name in self._mounts]
        inside = " && ".join([*mounts, f"exec chroot {root} /bin/sh -s"])
        return subprocess.run(
            ["unshare", "-Urm", "sh", "-c", inside],
            input=script_of(variables(expectation)),
            capture_output=True,
            text=True,
            check=False,
            env={"PATH": "/usr/bin:/bin:/usr/sbin:/sbin:/opt/bin", "LC_ALL": "C"},
            timeout=60,
        )


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    monkeypatch.setattr(node_check, "_AFTERBURN_WAIT", 1)
    return Node(tmp_path)


def _statuses(output: str) -> dict[str, tuple[str, str]]:
    return {result["name"]: (result["status"], result["observed"]) for result in parse(output)}


def test_the_script_is_the_expectations_and_the_checks() -> None:
    golden.check("node-check.sh", script_of(variables(_EXPECTATION)))


def test_what_is_expected_cannot_become_a_command() -> None:
    hostile = dataclasses.replace(_EXPECTATION, hostname="x; touch /gone '$(id)'", kernel_arguments=("a='b'",))
    lines = script_of(variables(hostile)).splitlines()
    assert shlex.split(lines[0]) == ["EXPECTED_HOSTNAME=x; touch /gone '$(id)'"]
    assert shlex.split(lines[6]) == ["EXPECTED_KERNEL_ARGUMENTS=a='b'"]


@runs_scripts
def test_a_node_that_is_what_it_should_be_passes(node: Node) -> None:
    result = node.check()
    assert (result.returncode, result.stderr) == (0, "")
    statuses = _statuses(result.stdout)
    compact = json.dumps(json.loads(_FILES["etc/.ignition-result.json"]), separators=(",", ":"))
    assert statuses == {
        "ignition": ("passed", compact),
        "platform-karg": ("passed", "packet"),
        "karg console=ttyS1,115200n8": ("passed", "console=ttyS1,115200n8"),
        "karg nosmt": ("passed", "nosmt"),
        "afterburn-public-ipv4": ("passed", "198.51.100.7"),
        "afterburn-private-ipv4": ("passed", "203.0.113.7"),
        "afterburn-hostname": ("passed", "lab-worker-0"),
        "hostname": ("passed", "lab-worker-0.lab.facility.test"),
        "os-version": ("passed", "9.8.20260428-0"),
    }


@runs_scripts
def test_a_node_that_was_left_on_another_release_is_told(node: Node) -> None:
    result = node.check(dataclasses.replace(_EXPECTATION, release=None, kernel_arguments=()))
    assert result.returncode == 0
    assert _statuses(result.stdout)["os-version"] == (
        "skipped",
        "9.8.20260428-0 stays: reprovision.controlPlane is keep",
    )


@runs_scripts
@pytest.mark.parametrize(
    ("change", "check", "cause"),
    [
        (("proc/cmdline", "=packet", "=metal"), "platform-karg", "read 'metal', expected 'packet'"),
        (("proc/cmdline", "ignition.platform.id=packet", ""), "platform-karg", "read '', expected 'packet'"),
        (("proc/cmdline", "ttyS1,", "ttyS0,"), "karg console=ttyS1,115200n8", "it is not on the kernel's command line"),
        (("proc/cmdline", "nosmt", "nosmt=force"), "karg nosmt", "it is not on the kernel's command line"),
        (("run/metadata/afterburn", "100.7", "100.9"), "afterburn-public-ipv4",
         "read '198.51.100.9', expected '198.51.100.7'"),
        (("run/metadata/afterburn", "113.7", "113.9"), "afterburn-private-ipv4",
         "read '203.0.113.9', expected '203.0.113.7'"),
        (("run/metadata/afterburn", "worker-0", "worker-1"), "afterburn-hostname",
         "read 'lab-worker-1', expected 'lab-worker-0'"),
        (("proc/sys/kernel/hostname", "lab-worker-0.lab.facility.test", "localhost"), "hostname",
         "read 'localhost', expected 'lab-worker-0.lab.facility.test'"),
        (("etc/os-release", "9.8.2026", "9.7.2026"), "os-version", "read '9.7.20260428-0', expected '9.8.20260428-0'"),
        (("etc/os-release", "OSTREE_VERSION", "VERSION"), "os-version", "read '', expected '9.8.20260428-0'"),
    ],
)  # fmt: skip
def test_each_deviation_fails_and_is_named(node: Node, change: tuple[str, str, str], check: str, cause: str) -> None:
    node.replace(*change)
    result = node.check()
    assert result.returncode == 1
    assert result.stderr == f"lab-worker-0.lab.facility.test failed: {check}: {cause}\n"
    assert [name for name, (status, _) in _statuses(result.stdout).items() if status != "passed"] == [check]


@runs_scripts
@pytest.mark.parametrize(
    "kept", ["etc/ignition-machine-config-encapsulated.json.bak", "etc/machine-config-daemon/currentconfig"]
)
def test_a_node_that_runs_the_operating_system_of_its_clusters_release(node: Node, kept: str) -> None:
    node.replace("etc/os-release", "9.8.2026", "9.9.2026")
    assert node.check().returncode == 1
    node.write(kept, "{}")
    result = node.check()
    assert (result.returncode, result.stderr) == (0, "")
    told = "9.9.20260428-0, of the cluster's release, which may be another than the machine was installed with"
    assert _statuses(result.stdout)["os-version"] == ("skipped", told)


@runs_scripts
@pytest.mark.parametrize(("mode", "status"), [("1\n", "passed"), ("0\n", "failed"), (None, "failed")])
def test_a_node_that_is_to_be_in_fips_mode(node: Node, mode: str | None, status: str) -> None:
    if mode is not None:
        node.write("proc/sys/crypto/fips_enabled", mode)
    result = node.check(dataclasses.replace(_EXPECTATION, fips=True))
    assert (_statuses(result.stdout)["fips"][0], result.returncode) == (status, int(status == "failed"))
    assert ("the kernel is not in FIPS mode" in result.stderr) == (status == "failed")


@runs_scripts
def test_a_node_in_its_first_boot_fails(node: Node) -> None:
    node.write("etc/ignition-machine-config-encapsulated.json", "{}")
    result = node.check()
    assert result.returncode == 1
    assert "os-version: the first boot is not over: /etc/ignition-machine-config-encap" in result.stderr


@runs_scripts
@pytest.mark.parametrize("empty", [False, True])
def test_a_node_that_ignition_did_not_finish_fails(node: Node, empty: bool) -> None:
    node.write("etc/.ignition-result.json", "") if empty else node.remove("etc/.ignition-result.json")
    result = node.check()
    assert result.returncode == 1
    told = (
        "lab-worker-0.lab.facility.test failed: ignition: /etc/.ignition-result.json does not say that Ignition applied"
    )
    assert result.stderr.startswith(told) and len(result.stderr.splitlines()) == 1
    assert ("No such file" in result.stderr.replace("Nosuchfile", "No such file")) != empty


@runs_scripts
def test_all_deviations_are_told_at_once_and_afterburn_is_waited_for(node: Node) -> None:
    node.remove("run/metadata/afterburn")
    node.replace("proc/cmdline", "nosmt", "smt")
    node.write("proc/sys/kernel/hostname", "localhost\n")
    result = node.check()
    assert result.returncode == 1
    afterburn = ("public-ipv4", "private-ipv4", "hostname")
    named = ["karg nosmt", *(f"afterburn-{name}" for name in afterburn), "hostname"]
    assert [line.split(": ")[1] for line in result.stderr.splitlines()] == named
    assert "afterburn-public-ipv4: read '', expected '198.51.100.7'" in result.stderr


@runs_scripts
@pytest.mark.parametrize(
    ("os_id", "status", "code"),
    [
        ("rhcos-lab", "skipped", 0),
        ("debian", "skipped", 0),
        *((name, "failed", 1) for name in ("rhcos", "scos", "fedora")),
    ],
)
def test_only_an_image_without_afterburn_skips_it(node: Node, os_id: str, status: str, code: int) -> None:
    node.remove("run/metadata/afterburn", "opt/bin/afterburn")
    node.replace("etc/os-release", "rhcos-lab", os_id)
    result = node.check()
    assert result.returncode == code
    assert {name: found for name, (found, _) in _statuses(result.stdout).items() if "afterburn" in name} == {
        "afterburn": status
    }
    assert (f"failed: afterburn: {os_id} comes with Afterburn, this node has none" in result.stderr) == bool(code)


@runs_scripts
def test_afterburn_is_skipped_where_there_is_no_metadata(node: Node) -> None:
    node.replace("proc/cmdline", "=packet", "=metal")
    node.remove("run/metadata/afterburn")
    result = node.check(dataclasses.replace(_EXPECTATION, platform_id="metal"))
    assert (result.returncode, result.stderr) == (0, "")
    assert {name: found for name, found in _statuses(result.stdout).items() if "afterburn" in name} == {
        "afterburn": ("skipped", "platform metal has no metadata service for Afterburn to read")
    }


_INSTALLED = dataclasses.replace(_EXPECTATION, generation="0123456789abcdef")


@runs_scripts
@pytest.mark.parametrize(
    ("mounts", "source"),
    [
        (_FILES["proc/mounts"], "/dev/vda4"),
        ("/dev/vda4 /sysroot xfs rw 0 0\n/dev/loop0 / squashfs ro 0 0\n", "/dev/vda4"),
        ("/dev/mapper/root / ext4 rw 0 0\n", "/dev/mapper/root"),
    ],
)
def test_an_installed_node_says_what_it_is(node: Node, mounts: str, source: str) -> None:
    node.write("proc/mounts", mounts)
    result = node.check(_INSTALLED)
    assert (result.returncode, result.stderr) == (0, "")
    statuses = _statuses(result.stdout)
    assert statuses["installation"] == ("passed", "0123456789abcdef")
    assert statuses["root-on-disk"] == ("passed", source)


@runs_scripts
@pytest.mark.parametrize(
    ("path", "text", "cause"),
    [
        (
            "etc/metal-ipi/installation.json",
            marker(cluster="c.test", machine="m.test", generation="f" * 16),
            f"installation: /etc/metal-ipi/installation.json says '{'f' * 16}', expected generation 0123456789abcdef",
        ),
        ("etc/metal-ipi/installation.json", "{}", "installation: /etc/metal-ipi/installation.json says ''"),
        ("etc/metal-ipi/installation.json", None, "installation: /etc/metal-ipi/installation.json says ''"),
        ("proc/mounts", "/dev/loop1 /sysroot squashfs ro 0 0\n", "root-on-disk: the root file system is in memory"),
        ("proc/mounts", "rootfs / rootfs rw 0 0\n", "root-on-disk: the root file system is on no disk but on 'rootfs'"),
    ],
)
def test_an_installed_node_that_is_another_one_fails(node: Node, path: str, text: str | None, cause: str) -> None:
    node.remove(path) if text is None else node.write(path, text)
    result = node.check(_INSTALLED)
    assert result.returncode == 1
    assert len(result.stderr.splitlines()) == 1 and cause in result.stderr


@runs_scripts
@pytest.mark.parametrize(
    ("links", "failing"),
    [
        ((), ()),
        (("bond0=active-backup/52:54:00:00:00:01,52:54:00:00:00:02", "bond0.100=100/bond0"), ()),
        (("bond0=802.3ad/52:54:00:00:00:01,52:54:00:00:00:02", "bond0.100=101/bond0"), ("bond0", "bond0.100")),
        (("bond0=active-backup/52:54:00:00:00:01", "bond1=active-backup/52:54:00:00:00:01"), ("bond0", "bond1")),
    ],
)
def test_bonds_and_vlans_must_be_there(node: Node, links: tuple[str, ...], failing: tuple[str, ...]) -> None:
    node.write("sys/class/net/bond0/bonding/mode", "active-backup 1\n")
    node.write("sys/class/net/bond0/bonding/slaves", "eth1 eth0\n")
    for number in (0, 1):
        node.write(f"sys/class/net/eth{number}/bonding_slave/perm_hwaddr", f"52:54:00:00:00:0{number + 1}\n")
    vlan = "bond0.100  VID: 100\t REORDER_HDR: 1  dev->priv_flags: 1021\n  total frames received 0\nDevice: bond0\n"
    node.write("proc/net/vlan/bond0.100", vlan).chmod(0o600)
    result = node.check(dataclasses.replace(_EXPECTATION, links=links))
    found = {name: status for name, (status, _) in _statuses(result.stdout).items() if name.startswith("link ")}
    assert found == {
        f"link {name}": "failed" if name in failing else "passed" for name in (link.split("=")[0] for link in links)
    }
    assert result.returncode == bool(failing), result.stderr


_NONE, _OWN, _GATEWAY = "0" * 32, "20010db8006400000000000000000061", "20010db8006400000000000000000001"
_WAY = f"{_NONE} 00 {_NONE} 00 {_GATEWAY} 00000400 00000001 00000000 00000003    br-ex\n"
_NO_WAY = f"{_NONE} 00 {_NONE} 00 {_NONE} ffffffff 00000001 00000000 00200200       lo\n"


@runs_scripts
@pytest.mark.parametrize(
    ("address", "route", "failing"),
    [
        (f"{_OWN} 05 40 00 80    br-ex\n", _WAY, {}),
        (f"{_OWN} 05 40 00 c8    br-ex\n", _WAY, {"ipv6-address": "tentative or a duplicate (flags 0xc8)"}),
        (f"{_GATEWAY} 05 40 00 80    br-ex\n", _WAY, {"ipv6-address": "absent"}),
        (f"{_OWN} 05 40 00 80    br-ex\n", _NO_WAY, {"ipv6-route": "no IPv6 default route"}),
    ],
)
def test_with_dual_stack_there_are_an_ipv6_address_and_a_default_route(
    node: Node, address: str, route: str, failing: dict[str, str]
) -> None:
    node.write("proc/net/if_inet6", f"{_NONE[1:]}1 01 80 10 80       lo\n{address}")
    near = f"{_OWN[:16]:0<32} 40 {_NONE} 00 {_NONE} 00000100 00000001 00000000 00000001    br-ex\n"
    node.write("proc/net/ipv6_route", near + route)
    result = node.check(dataclasses.replace(_EXPECTATION, ipv6="2001:db8:64::61"))
    assert result.returncode == (1 if failing else 0), result.stderr
    for name in ("ipv6-address", "ipv6-route"):
        assert _statuses(result.stdout)[name][0] == ("failed" if name in failing else "passed")
        assert failing.get(name, "") in result.stderr


@runs_scripts
def test_what_a_node_says_cannot_break_the_lines(node: Node) -> None:
    node.write("etc/.ignition-result.json", '"userConfigProvided":true a\tb\nhostname\tpassed\tx' + "y" * 500)
    result = node.check()
    assert [found["name"] for found in parse(result.stdout)].count("hostname") == 1
    observed = dict(_statuses(result.stdout))["ignition"][1]
    assert len(observed) == 300 and "\t" not in observed


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("", "a node check printed nothing"),
        ("motd of the day\n", "a node check printed 'motd of the day', which is not a check result"),
        ("hostname\tmaybe\tx\n", "which is not a check result"),
        ("hostname\tpassed\n", "which is not a check result"),
    ],
)
def test_any_other_output_is_an_error(output: str, message: str) -> None:
    with pytest.raises(CheckOutputError) as caught:
        parse(output)
    assert message in str(caught.value)


def test_results_keep_their_order_and_what_was_read() -> None:
    results: Sequence[dict[str, str]] = parse("b\tpassed\tx\ty\na\tskipped\t\n")
    assert results == [
        {"name": "b", "status": "passed", "observed": "x\ty"},
        {"name": "a", "status": "skipped", "observed": ""},
    ]
