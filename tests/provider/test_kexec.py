"""What a node is given to run in order to become its own installer: run here, with programs that only note things."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import time
from pathlib import Path

import pytest

from metal_ipi.provider.installation.inputs import Job
from metal_ipi.provider.installation.machine import kexec_script
from tests.provider.installation_site import Site

DIGEST = hashlib.sha256(b"a kernel").hexdigest()
PROGRAMS = {
    "curl": """for one in "$@"; do [ "$one" != --cacert ] || echo "trusting $(tr '\\n' ' ' <ca.pem)" >>"$NOTES"; done
        while [ $# -gt 2 ]; do shift; done; printf "a kernel" >"$1"; echo "curl $2" >>"$NOTES\"""",
    "kexec": """case "$1" in -s) [ -z "${REFUSES:-}" ] || exit 1;; esac
        [ ! -e config ] || { echo "initramfs: $(tr '\\0' . <initramfs)" >>"$NOTES"; }
        cat kernel initramfs >/dev/null; for one in "$@"; do printf '[%s]' "$one"; done >>"$NOTES"; echo >>"$NOTES\"""",
    "systemctl": 'echo "systemctl $*" >>"$NOTES"; [ -z "${OLD:-}" ]',
    "sleep": ":",
    "sync": ":",
}


def run_script(folder: Path, script: str, **environment: str) -> tuple[int, str, list[str]]:
    """Exit status, what it said, and what its programs noted."""
    for name, text in PROGRAMS.items():
        program = folder / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/bash\n{text}\n")
        program.chmod(0o755)
    (folder / "tmp").mkdir()
    notes = folder / "notes"
    notes.touch()
    path = f"{folder / 'bin'}:{os.environ['PATH']}"
    given = {"PATH": path, "TMPDIR": str(folder / "tmp"), "NOTES": str(notes), **environment}
    done = subprocess.run(["bash", "-s"], input=script, env=given, capture_output=True, text=True, check=False)
    assert list((folder / "tmp").iterdir()) == []
    deadline = time.monotonic() + 5
    while done.returncode == 0 and "systemctl" not in notes.read_text() and time.monotonic() < deadline:
        time.sleep(0.02)
    told = re.sub(r"(metal-ipi\.not-after=)\d+", r"\1<then>", notes.read_text())
    return done.returncode, done.stderr, told.splitlines()


@pytest.fixture
async def script(site: Site) -> str:
    file = {"url": "https://mirror.test/it's-a-file", "sha256": DIGEST}
    live = {"kernel": file, "initramfs": file, "arguments": ["ignition.firstboot", "console='x y'"]}
    return kexec_script(Job.read(site.inputs(await site.machine("worker-0"), live=live)))


@pytest.fixture
async def with_config(site: Site) -> str:
    """With an archive of the live system's Ignition, from a server of an authority of its own."""
    kernel, config = ({"url": f"https://boot.test/{name}", "sha256": DIGEST} for name in ("kernel", "config"))
    live = {"kernel": kernel, "initramfs": kernel, "config": config, "arguments": ["ignition.firstboot"]}
    authority = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    job = Job.read(site.inputs(await site.machine("worker-0"), live=live))
    return kexec_script(job, authority).replace("/etc/pki/tls/certs/ca-bundle.crt", "/no/such/bundle")


def test_the_archive_comes_behind_the_initramfs_where_the_kernel_looks_for_one(
    tmp_path: Path, with_config: str
) -> None:
    status, said, notes = run_script(tmp_path, with_config)
    assert status == 0, said
    trust = "trusting -----BEGIN CERTIFICATE----- AAAA -----END CERTIFICATE----- "
    files = ("kernel", "kernel", "config")
    assert notes[:6] == [line for name in files for line in (trust, f"curl https://boot.test/{name}")]
    # «a kernel» has eight characters; the next test has an initramfs that does not end at such a place.
    assert notes[6] == "initramfs: a kernela kernel"


def test_an_initramfs_of_any_length_is_filled_up(tmp_path: Path, with_config: str) -> None:
    head, _, rest = with_config.partition("fetch initramfs")
    line, _, rest = rest.partition("\n")
    url, _, digest = line.strip().rpartition(" ")
    grown = f"{head}fetch initramfs {url} {digest}\nprintf '!' >>initramfs\n{rest}"
    _, _, notes = run_script(tmp_path, grown)
    assert "initramfs: a kernel!...a kernel" in notes


LINE = "[--initrd=initramfs][--command-line=ignition.firstboot console='x y' metal-ipi.not-after=<then>]"


def test_a_kernel_that_looks_at_signatures(tmp_path: Path, script: str) -> None:
    status, _, notes = run_script(tmp_path, script)
    assert status == 0
    assert notes == [*["curl https://mirror.test/it's-a-file"] * 2, f"[-s][-l][kernel]{LINE}", "systemctl kexec"]


def test_one_that_cannot(tmp_path: Path, script: str) -> None:
    status, _, notes = run_script(tmp_path, script, REFUSES="yes")
    assert status == 0 and notes[2:] == [f"[-l][kernel]{LINE}", "systemctl kexec"]


def test_what_was_not_fetched_whole_is_not_started(tmp_path: Path, script: str) -> None:
    status, said, notes = run_script(tmp_path, script.replace(DIGEST, "0" * 64))
    assert (status != 0 and "kernel: FAILED" in said + str(notes)) or "did NOT match" in said
    assert not any("kexec" in note for note in notes)


def test_a_node_without_kexec(tmp_path: Path, script: str) -> None:
    without = script.replace("command -v kexec", "command -v no-such-program")
    assert run_script(tmp_path, without)[:2] == (1, "the node has no kexec\n")
