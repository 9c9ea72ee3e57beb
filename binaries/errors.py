"""What this package raises.

ProgramMissing          a program is neither there nor can it be made; the message names the remedy
└── DownloadFailed      its publisher's file could not be had
    └── WrongChecksum   it does not have the publisher's checksum
"""

from __future__ import annotations


class ProgramMissing(Exception):
    """A program that is needed is not there, and could not be downloaded or built."""


class DownloadFailed(ProgramMissing):
    """The publisher's file could not be had."""


class WrongChecksum(DownloadFailed):
    """The file is not the one that its publisher has published."""
