"""A virtual machine that bootstraps a rack needs a libvirt; see test_rack for one that does."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.end_to_end import racks
from tests.end_to_end.conftest import copies
from tests.end_to_end.project import RACK

pytestmark = [pytest.mark.lab, pytest.mark.engine]


def test_simulated_machines_come_without_a_libvirt(tmp_path: Path) -> None:
    for rack in copies(tmp_path, stack=RACK, variant={"platform": {"bootstrap": racks.LOCAL_VM}}):
        told = rack.make("up", fails=True).text
        assert "platform.bootstrap is of type local-vm, and simulated machines come without a libvirt" in told
        assert "use libvirt machines, or platform.bootstrap of type lend" in told
        assert rack.supervisor() is None
