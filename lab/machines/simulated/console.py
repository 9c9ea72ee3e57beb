"""The serial console of a simulated machine: a file that only grows."""

from __future__ import annotations

from pathlib import Path


class Console:
    """Lines in, bytes out; kept across restarts of the lab's API, and across reboots as a real serial log is."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._printed = bytearray(path.read_bytes() if path.exists() else b"")

    def line(self, text: str) -> None:
        """Print a line."""
        data = text.encode(errors="replace") + b"\r\n"
        self._printed += data
        with self._path.open("ab") as stream:
            stream.write(data)

    def printed(self) -> bytes:
        """Everything so far."""
        return bytes(self._printed)
