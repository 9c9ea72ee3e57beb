"""The site's boot tree."""

from __future__ import annotations

from components.boot.site import chain_script, script_name
from tests import golden

_MAC = "52:54:00:12:34:AB"


def test_the_chain_script() -> None:
    golden.check("boot.ipxe", chain_script())


def test_a_machines_script_is_named_as_ipxe_names_it() -> None:
    assert script_name(_MAC) == "mac-52-54-00-12-34-ab.ipxe"
    assert "mac-${net0/mac:hexhyp}.ipxe" in chain_script()
