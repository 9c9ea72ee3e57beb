"""What a stack says of its boot server: its certificate, what it keeps, and which kernel arguments are ours."""

from __future__ import annotations

import json
import re

import pytest
import trustme

from metal_ipi.components.boot.stream import Artifact
from metal_ipi.stacks import mirror
from metal_ipi.stacks.sections.kernel_arguments import NETWORK
from tests.mocks import plain
from tests.stacks.rack import rack_declared, rack_problems, rack_settings


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def _pem(authority: trustme.CA) -> str:
    return authority.cert_pem.bytes().decode()


# The authority


def test_a_bundle_is_split_into_its_certificates(authority: trustme.CA) -> None:
    """Ignition of every release takes one certificate per source."""
    other = trustme.CA()
    bundle = f"# the site's authorities\n{_pem(authority)}\n{_pem(other)}"
    assert rack_settings(artifacts__caBundle=bundle).artifacts.authorities == (_pem(authority), _pem(other))
    assert rack_settings().artifacts.authorities == ()


def test_a_key_or_a_servers_certificate_is_refused(authority: trustme.CA) -> None:
    server = authority.issue_cert("boot.example.com")
    own = server.cert_chain_pems[0].bytes().decode()
    for value, why in (
        ("no pem", "it contains no certificate"),
        (_pem(authority) + server.private_key_pem.bytes().decode(), "it contains a private key"),
        (own, "is not that of an authority, so no certificate can be verified with it"),
    ):
        (problem,) = rack_problems(artifacts__caBundle=value)
        assert problem.path == "metal-ipi:artifacts.caBundle" and why in problem.why
        assert "PRIVATE KEY" not in str(problem)


# The mirror


def test_machines_boot_from_the_mirror_and_wait_for_it() -> None:
    recorder = rack_declared(artifacts__mirror=True, boot__install__image="stream")
    (made,) = recorder.of("metal-ipi:index:Mirror")
    files = plain(made.inputs["files"])
    assert set(files) == {"kernel", "initramfs", "rootfs", "disk"}
    assert all(file["url"].startswith("https://rhcos.mirror.openshift.com/") for file in files.values())
    assert recorder.after("mirror") >= {"preflight"}
    assert "mirror" in recorder.after("rack-worker-4-server")
    # Everything that a machine fetches of the release is named by its hash, on the boot server.
    inputs = recorder.inputs("rack-worker-4-installation")
    below = "https://b.example.com/mirror"
    live = json.loads(recorder.inputs("workers-installers")["files"]["rack-worker-4.ign"])
    assert "rhcos.mirror.openshift.com" not in inputs["script"] + json.dumps(live)
    for name in ("kernel", "initramfs", "rootfs"):
        assert f"{below}/{files[name]['sha256']}-" in inputs["script"]
    assert inputs["live"]["kernel"]["url"].startswith(f"{below}/{files['kernel']['sha256']}-")
    # What is looked at first is where it comes from, unless it is there already.
    looked = {each["name"]: each for each in recorder.inputs("preflight")["boot"]}
    assert {name: each["url"] for name, each in looked.items()} == {name: file["url"] for name, file in files.items()}
    assert looked["disk"]["mirrored"].startswith(f"{below}/{files['disk']['sha256']}-")


def test_only_what_machines_fetch_is_kept_and_only_where_a_stack_asks_for_it() -> None:
    (made,) = rack_declared(artifacts__mirror=True).of("metal-ipi:index:Mirror")
    assert set(plain(made.inputs["files"])) == {"kernel", "initramfs", "rootfs"}
    without = rack_declared()
    assert without.of("metal-ipi:index:Mirror") == []
    assert all("mirrored" not in each or each["mirrored"] is None for each in without.inputs("preflight")["boot"])


def test_the_mirror_is_where_firmware_fetches() -> None:
    found = Artifact(url="https://r.example.com/9.8/live-kernel", sha256="a" * 64)
    settings = rack_settings(artifacts__mirror=True, artifacts__bootBaseUrl="http://boot.example.com/x")
    assert mirror.place(settings, found) == f"http://boot.example.com/x/mirror/{'a' * 64}-live-kernel"


# Kernel arguments

_OURS = {
    "ignition.config.url=http://x": "this program sets where Ignition",
    "ignition.platform.id=metal": "this program sets where Ignition",
    "coreos.inst.install_dev=/dev/sda": "boot.install.device",
    "coreos.inst.image_url=http://x": "boot.install",
    "coreos.live.rootfs_url=http://x": "boot.streamUrl",
    "metal-ipi.device=/dev/sda": "its own installer",
    "initrd=main": "boot.streamUrl",
    "root=/dev/sda4": "boot.install.device",
    "ostree=/ostree/boot.1": "boot.install.device",
    "init=/bin/sh": "never joins",
    "rdinit=/bin/sh": "never joins",
    "rd.break": "never joins",
    "systemd.unit=rescue.target": "another target",
    "rd.systemd.unit=emergency.target": "another target",
    "single": "another target",
    "emergency": "another target",
    "systemd.hostname=x": "clusterName",
    '"ignition.config.url=x"': "where Ignition finds",
    "console=ttyS0,115200n8": "set boot.consoles to [ttyS0,115200n8]",
    "console=tty0": "set boot.consoles to [tty0]",
}


@pytest.mark.parametrize("argument", list(_OURS))
def test_a_kernel_argument_that_contradicts_ours_is_refused(argument: str) -> None:
    for setting in (
        "boot__kernelArguments",
        "controlPlane__kernelArguments",
        "workers__kernelArguments",
        "platform__servers__0__kernelArguments",
    ):
        (problem,) = rack_problems(**{setting: ["nosmt", argument]})
        path = re.sub(r"__(\d+)__", r"[\1].", setting).replace("__", ".")
        assert problem.path == f"metal-ipi:{path}"
        assert f"'{argument}' contradicts this program: " in problem.why
        assert _OURS[argument] in problem.why + problem.remedy


@pytest.mark.parametrize(
    "argument",
    ["nosmt", "console=ttyUSB0", "console=tty1", "rootflags=prjquota", "systemd.show_status=1", "ipv6.disable=1",
     "ignition", "rd.luks.options=discard", "hugepages=16", "intel_iommu=on", "init_on_alloc=1"],
)  # fmt: skip
def test_others_are_the_stacks_own(argument: str) -> None:
    assert rack_settings(boot__kernelArguments=[argument]).boot.kernel_arguments == (argument,)


@pytest.mark.parametrize("name", NETWORK)
def test_the_networks_arguments_are_ours_where_we_say_what_it_is(name: str) -> None:
    given = {"workers__kernelArguments": ["nosmt", f"{name}=x"], "platform__servers__0__kernelArguments": [f"{name}=x"]}
    assert rack_settings(**given).workers.kernel_arguments == ("nosmt", f"{name}=x"), "with DHCP nobody else says it"
    problems = rack_problems(**given, platform__networkBoot="static", platform__interface="eno1")
    assert [problem.path for problem in problems] == [
        "metal-ipi:platform.servers[0].kernelArguments[0]",
        "metal-ipi:workers.kernelArguments[1]",
    ]
    assert all("platform.networkBoot is static" in problem.why for problem in problems)
