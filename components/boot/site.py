"""The site's boot service: a static tree that any web server can serve, and nothing else.

    boot/boot.ipxe                    the chain script: where DHCP sends iPXE to
    boot/mac-52-54-00-12-34-56.ipxe   a machine's own script, only while it is to boot from the network

A machine without a script of its own leaves iPXE, and its firmware goes on to the next device of its boot order: the
disk. So an installed machine never gets into the installer again, and boots also while the web server is down.
"""

from __future__ import annotations

BOOT_DIRECTORY = "boot"
"""Where the tree is, below what the web server serves."""
CHAIN_NAME = "boot.ipxe"
"""The chain script's name in the tree."""

_CHAIN = """\
#!ipxe
# A machine has a script of its own while it is to boot from the network. Without one the next device boots: the disk.
chain --replace mac-${net0/mac:hexhyp}.ipxe || chain --replace uuid-${uuid}.ipxe || exit
"""


def chain_script() -> str:
    """The script that every machine's iPXE is sent to; names are relative to its own URL."""
    return _CHAIN


def script_name(mac: str) -> str:
    """The name of a machine's own script; `mac` as 52:54:00:12:34:56, as iPXE's `mac:hexhyp` writes it."""
    return f"mac-{mac.lower().replace(':', '-')}.ipxe"
