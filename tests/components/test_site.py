"""The site's boot tree."""

from __future__ import annotations

from metal_ipi.components.boot.site import chain_script
from tests import golden


def test_the_chain_script() -> None:
    golden.check("boot.ipxe", chain_script())
