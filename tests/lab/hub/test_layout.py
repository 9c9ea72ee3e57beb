"""Where a hub can be."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from lab.errors import LabError
from lab.hub.layout import HubLayout


def test_a_path_that_is_too_long_for_the_kubelets_socket_is_refused() -> None:
    socket = "/kubelet/pod-resources/kubelet.sock"
    with tempfile.TemporaryDirectory(dir="/tmp") as short:  # pytest's own can be too long
        fits = Path(short, "x" * (107 - len(f"{short}/{socket}")))
        HubLayout(fits).make()
        longer = fits.with_name(f"{fits.name}x")
        with pytest.raises(LabError, match=r"more than 107 bytes.*use a checkout in a directory with a shorter path"):
            HubLayout(longer).make()
        assert not longer.exists()
