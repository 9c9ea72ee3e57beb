"""The way to a machine's BGP peers, laid by the script against stand-ins for curl and ip."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from components.endpoints.bgp_routes import UNIT, files, unit
from tests.components.test_kube_vip import METADATA

URL = "https://metadata.packet.net/metadata"
_CURL = """#!/bin/sh
while [ "$1" != -o ]; do shift; done
[ "$3" = https://metadata.packet.net/metadata ] && cp "$STATE/metadata" "$2"
"""
_IP = """#!/bin/sh
[ "$1" != -j ] || { cat "$STATE/default"; exit; }
echo "$*" >>"$STATE/ip.log"
[ ! -e "$STATE/broken" ]
"""
LAID = [
    "address replace 203.0.113.5/31 dev enp1s0",
    "route replace 169.254.255.1/32 via 203.0.113.4 dev enp1s0 src 203.0.113.5",
    "address replace 203.0.113.5/31 dev enp1s0",
    "route replace 169.254.255.2/32 via 203.0.113.4 dev enp1s0 src 203.0.113.5",
]


class Machine:
    """A directory that stands for a machine, and the script running on it."""

    def __init__(self, root: Path) -> None:
        self.state, programs = root / "state", root / "bin"
        self.state.mkdir()
        programs.mkdir()
        naps = '#!/bin/sh\necho "$1" >>"$STATE/naps"\nexec /bin/sleep 0.05\n'
        for name, text in (("curl", _CURL), ("ip", _IP), ("sleep", naps)):
            (programs / name).write_text(text)
            (programs / name).chmod(0o755)
        for file in files(URL):
            path = root / file.path.lstrip("/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(file.text)
        self.tell("default", [{"dst": "default", "dev": "enp1s0"}])
        self.said = root / "said"
        self._script = root / "usr/local/bin/metal-ipi-bgp-routes"
        self._environment = {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "STATE": str(self.state),
            "METAL_IPI_ROOT": str(root),
        }
        self._process: subprocess.Popen[bytes] | None = None

    def tell(self, name: str, document: Any) -> None:
        fresh = self.state / "fresh"
        fresh.write_text(json.dumps(document))
        fresh.rename(self.state / name)

    def start(self) -> None:
        with self.said.open("wb") as said:
            self._process = subprocess.Popen(["bash", self._script], env=self._environment, stderr=said)

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def lines(self, name: str) -> list[str]:
        path = self.state / name
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    if not shutil.which("jq"):
        pytest.skip("jq is not installed (Debian package jq)")
    machine = Machine(tmp_path)
    yield machine
    machine.stop()


def eventually(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_the_way_is_laid_once_the_platform_names_the_peers_and_kept(machine: Machine) -> None:
    machine.tell("metadata", {**METADATA, "bgp_neighbors": []})
    machine.start()
    eventually(lambda: len(machine.lines("naps")) > 2)
    assert set(machine.lines("naps")) == {"2"} and not machine.lines("ip.log")
    assert machine.said.read_text() == f"waiting until {URL} names this machine's BGP neighbours\n"
    machine.tell("metadata", METADATA)
    eventually(lambda: machine.lines("naps").count("60") > 1)
    assert machine.lines("ip.log")[:8] == [*LAID, *LAID]
    assert machine.said.read_text().splitlines()[1:] == [
        "the BGP peers are reached over the private network: 169.254.255.1 169.254.255.2 "
    ]


@pytest.mark.parametrize(
    ("trouble", "said"),
    [("default", "there is no default route"), ("broken", "the way to the BGP peers cannot be laid")],
)
def test_what_cannot_be_done_is_told_and_tried_again(machine: Machine, trouble: str, said: str) -> None:
    machine.tell("metadata", METADATA)
    machine.tell(trouble, [])
    machine.start()
    eventually(lambda: len(machine.lines("naps")) > 1)
    assert said in machine.said.read_text()
    (machine.state / trouble).unlink()
    machine.tell("default", [{"dst": "default", "dev": "enp1s0"}])
    eventually(lambda: "60" in machine.lines("naps"))
    assert machine.lines("ip.log")[-4:] == LAID


def test_the_unit_runs_the_script() -> None:
    assert (unit().name, f"ExecStart=/bin/bash {files(URL)[0].path}\n" in unit().text) == (UNIT, True)
    assert files(URL)[0].mode == 0o755
