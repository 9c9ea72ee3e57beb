"""What failed steps gathered, as data of a Secret."""

from __future__ import annotations

import base64
import lzma
import os
from pathlib import Path

from metal_ipi.cluster_api.logs import gathered, stamps


def test_the_newest_logs_that_there_is_room_for(tmp_path: Path) -> None:
    texts = {"old": b"x" * 10, "large": os.urandom(600_000), "new": b"login:\n" * 300_000}
    for age, (name, text) in enumerate(texts.items()):
        path = tmp_path / "bootstrap-reachable" / f"{name}.console.log"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text)
        os.utime(path, (1000 + age, 1000 + age))
    found = gathered(tmp_path)
    assert list(found) == [f"bootstrap-reachable.{name}.console.log" for name in ("new", "old")]
    unpacked = [lzma.decompress(base64.b64decode(each)) for each in found.values()]
    assert unpacked == [texts["new"][-(1 << 20) :], texts["old"]]
    assert gathered(tmp_path / "none") == {}
    before = stamps(tmp_path)
    assert stamps(tmp_path) == before != stamps(tmp_path / "none")
    os.utime(tmp_path / "bootstrap-reachable" / "old.console.log", (1100, 1100))
    assert stamps(tmp_path) != before
