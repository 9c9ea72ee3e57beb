"""Who may ask the machine config server: what the script gives to nft, and what it says."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from metal_ipi.components.endpoints.machine_config_access import PROGRAM, UNIT, files, unit
from tests.golden import check

_NETWORKS = "198.51.100.5\n10.64.0.0/24\n2001:db8::5\n"


class Machine:
    """A directory that stands for a machine, and a stand-in for nft that keeps what it is given."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.script = root / "script"
        (text,) = [file.text for file in files() if file.path == PROGRAM]
        self.script.write_text(
            text.replace("/etc/metal-ipi", f"{root}/etc/metal-ipi").replace("/run/systemd", str(root))
        )
        nft = root / "nft"
        nft.write_text(f'#!/bin/sh\n[ "$*" = "-f -" ] && cat >{root}/loaded && [ ! -e {root}/broken ]\n')
        nft.chmod(0o755)

    def run(self, *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
        environment = {"PATH": f"{self.root}:{os.environ['PATH']}"}
        return subprocess.run(
            ["bash", self.script, *arguments],
            input=given, env=environment, capture_output=True, text=True, check=False, timeout=20,
        )  # fmt: skip

    @property
    def loaded(self) -> str:
        return (self.root / "loaded").read_text()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_at_first_nobody_is_let_in_but_the_machine_itself(machine: Machine) -> None:
    done = machine.run()
    assert (done.returncode, done.stdout, done.stderr) == (0, "loaded\tnobody else\n", "")
    assert "elements" not in machine.loaded


def test_the_networks_are_kept_for_the_next_boot(machine: Machine) -> None:
    done = machine.run("set", given=_NETWORKS)
    assert (done.returncode, done.stdout) == (0, "loaded\t198.51.100.5, 10.64.0.0/24, 2001:db8::5\n")
    given = machine.loaded
    (machine.root / "loaded").unlink()
    assert machine.run().returncode == 0
    assert machine.loaded == given
    check("machine-config-access.txt", f"{given}--- {UNIT}\n{unit().text}")
    machine.run("set", given="198.51.100.9\n")
    assert "198.51.100.9" in machine.loaded and "198.51.100.5" not in machine.loaded


def test_a_filter_that_cannot_be_loaded_is_a_failure(machine: Machine) -> None:
    (machine.root / "broken").touch()
    done = machine.run("set", given=_NETWORKS)
    assert done.returncode != 0 and not done.stdout


def test_a_machine_that_shares_its_kernel_leaves_the_kernel_alone(machine: Machine) -> None:
    (machine.root / "container").touch()
    done = machine.run("set", given=_NETWORKS)
    assert done.returncode == 0 and done.stdout.startswith("skipped\tthis machine shares its kernel")
    assert not (machine.root / "loaded").exists()
