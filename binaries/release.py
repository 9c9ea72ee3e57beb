"""A program as its publisher offers it."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Release:
    """Where a program and its checksum are published."""

    url: str
    """The file: the program itself, or an archive (.tar.gz) with it."""
    sums: str
    """The file with its SHA-256 sum: the sum alone, or lines of a sum and a file name."""
    member: str = ""
    """The program's path in the archive; empty: the file is the program."""
    check: Sequence[str] = ("--version",)
    """Arguments with which the program ends well if it can run here."""


def architecture(x86_64: str, aarch64: str) -> str | None:
    """What a publisher calls this machine's architecture, of the two that programs are published for; None: another."""
    return {"x86_64": x86_64, "aarch64": aarch64}.get(platform.machine())
