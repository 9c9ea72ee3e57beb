"""The plug-in host: what is forked is what would have been started, and it ends when it should."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end import processes

ROOT = Path(__file__).resolve().parents[2]
START = ROOT / "tools" / "plugin_start.py"

SERVED = """
import json, os, sys, time

def main():
    told = {"pid": os.getpid(), "parent": os.getppid(), "arguments": sys.argv, "directory": os.getcwd(),
            "mark": os.environ.get("MARK"), "host": os.environ.get("METAL_IPI_PLUGIN_HOST")}
    print("to stderr", file=sys.stderr, flush=True)
    try:
        print(json.dumps(told), flush=True)
        time.sleep(60)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""
DRIVER = """
import os, sys, time
from tools import plugin_host
plugin_host.start(["served"])
print(os.environ[plugin_host.VARIABLE], flush=True)
time.sleep(60)
"""


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    (tmp_path / "served.py").write_text(SERVED)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    with subprocess.Popen([sys.executable, "-c", DRIVER], stdout=subprocess.PIPE, text=True, env=environment) as it:
        try:
            yield it
        finally:
            it.kill()


def start(host: str, directory: Path, executable: Path = Path("/plug-in")) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-I", "-S", START, executable, "served", "127.0.0.1:1", "--x"],
        cwd=directory,
        env={**os.environ, "METAL_IPI_PLUGIN_HOST": host, "METAL_IPI_PLUGIN_START": str(START), "MARK": "mine"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def gone(pid: int) -> bool:
    found = processes.process(pid)
    return found is None or not processes.survivors([found])


def test_a_forked_plug_in_is_as_if_started(driver: subprocess.Popen[str], tmp_path: Path) -> None:
    started = start(line(driver), tmp_path)
    told = json.loads(line(started))
    assert told["arguments"] == ["/plug-in", "127.0.0.1:1", "--x"]
    assert (told["directory"], told["mark"], told["host"]) == (str(tmp_path), "mine", None)
    started.send_signal(signal.SIGINT)  # so does the engine, when it is done
    out, err = started.communicate(timeout=10)
    assert (out, err) == ("interrupted\n", "to stderr\n")


def test_it_ends_with_what_the_engine_started_and_with_the_driver(
    driver: subprocess.Popen[str], tmp_path: Path
) -> None:
    host = line(driver)
    first, second = start(host, tmp_path), start(host, tmp_path)
    one, other = json.loads(line(first)), json.loads(line(second))
    assert one["pid"] != other["pid"] and one["parent"] == other["parent"]
    first.kill()
    assert gone(one["pid"])
    driver.kill()
    assert gone(other["pid"]) and gone(other["parent"])
    second.communicate(timeout=10)
    first.communicate(timeout=10)


def test_it_ends_with_a_killed_engine(driver: subprocess.Popen[str], tmp_path: Path) -> None:
    engine = (
        "import subprocess, sys, time\n"
        "p = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, text=True)\n"
        "print(p.stdout.readline().strip(), flush=True)\n"
        "time.sleep(60)\n"
    )
    command = [sys.executable, "-I", "-S", str(START), "/plug-in", "served"]
    environment = {**os.environ, "METAL_IPI_PLUGIN_HOST": line(driver)}
    with subprocess.Popen(
        [sys.executable, "-c", engine, *command], stdout=subprocess.PIPE, text=True, env=environment, cwd=tmp_path
    ) as it:
        plugin = json.loads(line(it))["pid"]
        it.kill()
        assert gone(plugin)


def test_without_a_host_the_executable_is_run(tmp_path: Path) -> None:
    executable = tmp_path / "plug-in"
    executable.write_text(
        '#!/bin/sh\necho "alone, with $* and ${METAL_IPI_PLUGIN_HOST-}${METAL_IPI_PLUGIN_START-no host}"\n'
    )
    executable.chmod(0o755)
    with start("metal-ipi-nobody", tmp_path, executable) as started:
        out, err = started.communicate(timeout=10)
    assert out == "alone, with 127.0.0.1:1 --x and no host\n"
    assert "starting served without it" in err


@pytest.mark.parametrize(
    "executable",
    [
        *sorted((ROOT / "lab" / "plugins").glob("pulumi-resource-*")),
        ROOT / "provider" / "pulumi-resource-metal-ipi",
    ],
    ids=lambda path: path.name,
)
def test_every_plug_in_of_ours_can_be_forked(executable: Path) -> None:
    text = executable.read_text()
    module = text.partition('"$METAL_IPI_PLUGIN_START" "$0" ')[2].split()[0]
    code = f"from tools.project import python_plugins; from pathlib import Path; import {module}; {module}.main"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
