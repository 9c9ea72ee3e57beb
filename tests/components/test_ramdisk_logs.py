"""What ramdisks have logged is printed with the conductor's pod's logs, once, and kept nowhere else."""

from __future__ import annotations

import io
import os
import tarfile
import time
from pathlib import Path

import pytest

from metal_ipi.components.provisioning import ramdisk_logs


def _archive(path: Path, files: dict[str, bytes], *, age: float) -> None:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    written = time.time() - age
    os.utime(path, (written, written))


def test_archives_are_printed_line_by_line_the_oldest_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _archive(tmp_path / "rack-7_clean.tar.gz", {"df": b"one\ntwo\n", "journal": b"\xff end"}, age=60)
    _archive(tmp_path / "rack-6_deploy.tar.gz", {"ps": b"first\n"}, age=600)
    ramdisk_logs.tell_all(tmp_path)
    assert capsys.readouterr().out.splitlines() == [
        "rack-6_deploy ps: first",
        "rack-7_clean df: one",
        "rack-7_clean df: two",
        "rack-7_clean journal: \N{REPLACEMENT CHARACTER} end",
    ]
    assert not list(tmp_path.iterdir())


def test_one_that_is_being_written_waits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _archive(tmp_path / "rack-7_clean.tar.gz", {"df": b"one\n"}, age=0)
    ramdisk_logs.tell_all(tmp_path)
    assert capsys.readouterr().out == ""
    assert len(list(tmp_path.iterdir())) == 1


def test_half_an_archive_is_said_to_be_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "rack-7_clean.tar.gz"
    _archive(path, {"df": os.urandom(4000)}, age=60)
    path.write_bytes(path.read_bytes()[:1000])
    os.utime(path, (1, 1))
    ramdisk_logs.tell_all(tmp_path)
    assert "rack-7_clean: its logs cannot be read: " in capsys.readouterr().out
    assert not path.exists()
