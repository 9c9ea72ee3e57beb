"""What the live system gets, and what a generation is made of."""

from __future__ import annotations

import base64
import dataclasses
import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
import yaml

from metal_ipi.components.boot import installer
from metal_ipi.components.boot.host_keys import host_key
from metal_ipi.components.boot.ignition import IgnitionError, NodeUnit, Source, data_url, pointer
from metal_ipi.components.boot.installer import InPlace, InstallPlan, Runs, live_config
from metal_ipi.components.boot.network import StaticNetwork
from metal_ipi.components.boot.stream import Artifact
from tests import golden

_SEED = base64.b64encode(bytes(range(32))).decode()
_NODE = "rack-worker-0.rack.facility.test"
_HASH = "sha512-" + "0123456789abcdef" * 8
NETWORK = StaticNetwork(
    address="192.0.2.97",
    gateway="192.0.2.1",
    prefix=24,
    hostname=_NODE,
    interface="eno1",
    nameservers=("192.0.2.53",),
)
_PLAN = InstallPlan(
    cluster="rack.facility.test",
    machine=_NODE,
    generation="0123456789abcdef",
    platform_id="metal",
    device={"minSize": 100, "rotational": False, "smallest": True},
    pointer='{"ignition":{"version":"3.3.0"}}',
    wipe_disks=({"rotational": True}, {"byId": "ata-Old_Disk_1"}),
    image=Artifact(url="http://boot.facility.test/rhcos.raw.gz", sha256="0" * 64),
    consoles=("tty0", "ttyS0,115200n8"),
    kernel_arguments=("nosmt", "isolcpus=2-5"),
    network=NETWORK,
)


def _live(plan: InstallPlan = _PLAN) -> dict[str, Any]:
    key = host_key(_SEED, installer.live_name(_NODE))
    return json.loads(live_config(plan, authorized_keys=["ssh-ed25519 AAAA cluster"], host_key=key))


def _files(config: Mapping[str, Any]) -> dict[str, tuple[int, str]]:
    found: dict[str, tuple[int, str]] = {}
    for file in config["storage"]["files"]:
        head, _, data = file["contents"]["source"].partition(",")
        text = base64.b64decode(data).decode() if head.endswith(";base64") else unquote(data)
        found[file["path"]] = (file["mode"], text)
    return found


def test_the_live_systems_files() -> None:
    files = _files(_live())
    shown = {path: text for path, (_, text) in files.items() if "ssh_host" not in path and path != installer.PROGRAM}
    golden.check("installer-files.txt", "".join(f"== {path}\n{text}" for path, text in shown.items()))
    assert files[installer.PROGRAM] == (
        0o755,
        (Path(installer.__file__).with_name("install.sh")).read_text(),
    )
    assert {mode for path, (mode, _) in files.items() if path in shown} == {0o600}


def test_the_live_system_has_a_host_key_of_its_own() -> None:
    own = _files(_live())["/etc/ssh/ssh_host_ed25519_key.pub"][1]
    assert own == host_key(_SEED, f"live.{_NODE}").public_key + "\n" != host_key(_SEED, _NODE).public_key + "\n"


def test_coreos_installer_is_not_started_by_its_own_generator() -> None:
    """Options in installer.d make it start without a device, and the live system ends in emergency mode."""
    (link,) = _live()["storage"]["links"]
    assert (link["path"], link["target"]) == (
        "/etc/systemd/system-generators/coreos-installer-generator",
        "/dev/null",
    )


def test_a_single_nodes_live_system_bootstraps_and_does_not_install_by_itself() -> None:
    source = Source(url="https://boot.facility.test/x/bootstrap.ign", hash=_HASH)
    guard = NodeUnit(name="guard.service", text="[Unit]\n")
    in_place = InPlace(bootstrap=source, pointer=_POINTER, units=(guard,))
    config = _live(dataclasses.replace(_PLAN, pointer=None, in_place=in_place))
    assert config["ignition"]["config"] == {"merge": [{"source": source.url, "verification": {"hash": _HASH}}]}
    files = _files(config)
    assert files["/etc/hostname"] == (0o644, f"{_NODE}\n")
    assert files["/etc/metal-ipi/pointer.ign"] == (0o600, _POINTER)
    assert "ignition-file" not in files["/etc/coreos/installer.d/10-metal-ipi.yaml"][1]
    assert "/etc/metal-ipi/disk.ign" not in files and "security" not in config["ignition"]
    own = {unit["name"]: unit for unit in config["systemd"]["units"]}
    assert own.pop("install-to-disk.service") == {"name": "install-to-disk.service", "mask": True}
    assert list(own) == ["guard.service", "metal-ipi-install.service"]


def test_a_release_that_would_install_in_another_way_is_refused() -> None:
    def bootstrap(*names: str) -> str:
        return json.dumps({"ignition": {"version": "3.2.0"}, "systemd": {"units": [{"name": name} for name in names]}})

    known = bootstrap("bootkube.service", "install-to-disk.service")
    assert installer.checked_in_place(known) == known
    for other in (bootstrap("bootkube.service", "install-to-disc.service"), '{"ignition": {"version": "3.2.0"}}'):
        with pytest.raises(IgnitionError, match=r"has no install-to-disk\.service: this release installs to disk in a"):
            installer.checked_in_place(other)


def test_the_unit_does_not_reboot() -> None:
    (unit,) = _live()["systemd"]["units"]
    assert (unit["name"], unit["enabled"]) == ("metal-ipi-install.service", True)
    golden.check("metal-ipi-install.service", unit["contents"])


def test_nothing_is_said_that_was_not_asked_for() -> None:
    plan = InstallPlan(
        cluster="c.test",
        machine="m.c.test",
        generation="0" * 16,
        platform_id="packet",
        device={"smallest": True},
        pointer=None,
    )
    assert yaml.safe_load(installer.installer_options(plan)) == {"platform": "packet", "fetch-retries": 10}
    assert "IMAGE_URL=''\n" in installer.install_values(plan)


def coreos_installer() -> str | None:
    """The real one, where there is one."""
    built = Path.home() / ".cache/metal-ipi/coreos-installer"
    return shutil.which("coreos-installer") or next((str(path) for path in built.glob("*/bin/coreos-installer")), None)


def test_the_real_coreos_installer_takes_the_options(tmp_path: Path) -> None:
    program = coreos_installer()
    if program is None:
        pytest.skip("coreos-installer is not installed, and was not built")
    options, image, device = (tmp_path / name for name in ("options.yaml", "image", "device"))
    options.write_text(installer.installer_options(dataclasses.replace(_PLAN, pointer=None, network=None)))
    image.touch()
    command = [program, "install", "--config-file", str(options), "--image-file", str(image), "--insecure"]
    command += [str(device)]
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=dict(os.environ, LC_ALL="C"))
    assert result.returncode != 0
    assert "parsing config" not in result.stderr and str(device) in result.stderr, result.stderr


_POINTER = pointer(
    hostname=_NODE,
    platform_id="metal",
    merge=[
        Source(url="https://api-int.rack.facility.test:22623/config/worker"),
        Source(url="https://boot.facility.test/artifacts/x/identity.ign", hash=_HASH),
    ],
    certificate_authorities=[],
    authorized_keys=["ssh-ed25519 AAAA cluster"],
)
_RUNS = Runs(
    release="9.8.20260428-0",
    kernel_arguments=("nosmt",),
    consoles=("ttyS0",),
    platform_id="metal",
    pointer=_POINTER,
    install_device={"smallest": True},
)


def test_a_generation_is_what_it_was() -> None:
    """A change of this value installs every machine of every cluster anew."""
    assert _RUNS.generation == "2306d11dd46ba0eb"
    assert _RUNS.shown == {
        "release": "9.8.20260428-0",
        "kernelArguments": ["nosmt"],
        "consoles": ["ttyS0"],
        "ignition": _RUNS.ignition,
        "network": "",
    }


def test_a_static_network_counts_as_the_kernel_arguments_that_once_carried_it() -> None:
    """Whoever has machines of version 0.1.0 must not find them installed anew (docs/adr/0030)."""
    before = dataclasses.replace(_RUNS, kernel_arguments=("nosmt", *NETWORK.arguments))
    now = dataclasses.replace(_RUNS, network=NETWORK)
    assert before.generation == now.generation == "eed25065b3ee68cb"
    assert now.shown["kernelArguments"] == ["nosmt"]
    assert now.shown["network"] == "192.0.2.97/24 on eno1, gateway 192.0.2.1, resolvers 192.0.2.53"
    moved = dataclasses.replace(NETWORK, gateway="192.0.2.2")
    assert dataclasses.replace(_RUNS, network=moved).generation != now.generation


def test_the_boot_servers_authority_does_not_count() -> None:
    """It says how something is fetched, and may be renewed: no machine is installed anew for it."""
    url = data_url("-----BEGIN CERTIFICATE-----\nprivate\n")
    cluster = data_url("-----BEGIN CERTIFICATE-----\ncluster\n")

    def runs(trusted: list[str], authorities: tuple[str, ...]) -> Runs:
        tree = json.loads(_POINTER)
        if trusted:
            tree["ignition"]["security"] = {"tls": {"certificateAuthorities": [{"source": each} for each in trusted]}}
        return dataclasses.replace(_RUNS, pointer=json.dumps(tree), authorities=authorities)

    private = ("-----BEGIN CERTIFICATE-----\nprivate\n",)
    assert runs([url], private).generation == runs([], private).generation == _RUNS.generation
    assert runs([cluster, url], private).generation == runs([cluster], ()).generation != _RUNS.generation
    assert runs([url], ()).generation != _RUNS.generation, "an authority of somebody else's counts"


@pytest.mark.parametrize(
    "change",
    [
        {"release": "9.8.20260428-1"},
        {"kernel_arguments": ()},
        {"consoles": ("ttyS1",)},
        {"platform_id": "packet"},
        {"installation": 1},
        {"install_device": {"byId": "x"}},
        {"pointer": _POINTER.replace("worker-0", "worker-1")},
        {"pointer": _POINTER.replace("0123456789abcdef", "0123456789abcdee")},
        {"pointer": _POINTER.replace("config/worker", "config/master")},
    ],
    ids=lambda change: next(iter(change)),
)
def test_each_part_makes_another_generation(change: dict[str, Any]) -> None:
    assert dataclasses.replace(_RUNS, **change).generation != _RUNS.generation


def test_where_something_with_a_hash_is_fetched_from_does_not_count() -> None:
    moved = _POINTER.replace("https://boot.facility.test/artifacts/x/", "https://other.facility.test/y/")
    assert moved != _POINTER
    assert dataclasses.replace(_RUNS, pointer=moved).generation == _RUNS.generation


def test_the_marker_of_a_running_node() -> None:
    file = installer.marker_file(cluster="rack.facility.test", machine=_NODE, generation="0" * 16)
    assert (file.path, file.mode) == ("/etc/metal-ipi/installation.json", 0o644)
    assert json.loads(file.text) == {"cluster": "rack.facility.test", "machine": _NODE, "generation": "0" * 16}
    assert file.text.count("\n") == 1


@pytest.mark.parametrize(
    ("given", "persisted"),
    [
        ("ttyS0", "ttyS0,9600n8"),
        ("ttyS1,115200n8", "ttyS1,115200n8"),
        ("ttyAMA0,115200", "ttyAMA0,115200n8"),
        ("ttyS0,57600e7", "ttyS0,57600e7"),
        ("ttyS02,5o", "ttyS2,5o8"),
        ("tty0", "tty0"),
        ("hvc0", "hvc0"),
    ],
)
def test_consoles_are_expected_as_coreos_installer_writes_them(given: str, persisted: str) -> None:
    assert installer.takes_console(given) and installer.persisted_console(given) == persisted


@pytest.mark.parametrize(
    "console",
    ["tty1", "ttyS", "ttyS256", "ttyS1,", "ttyS1,115200n", "ttyS1,115200n9", "ttyS1,115200n8r", "ttyS1,4294967296",
     "ttyUSB0", "/dev/ttyS0", "console=ttyS0", "uart8250,io,0x3f8"],
)  # fmt: skip
def test_consoles_that_coreos_installer_does_not_know(tmp_path: Path, console: str) -> None:
    taken = console == "ttyS1,115200n"  # without bits there are 8
    assert installer.takes_console(console) == taken
    if (program := coreos_installer()) is not None:
        command = [program, "install", "--offline", "--console", console, str(tmp_path / "none")]
        result = subprocess.run(command, capture_output=True, text=True, check=False, env=dict(os.environ, LC_ALL="C"))
        assert ("invalid value" in result.stderr or "parsing" in result.stderr) != taken, result.stderr
