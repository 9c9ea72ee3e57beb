"""The site's boot service: static files that any web server can serve.

    boot/boot.ipxe                    the chain script, to which DHCP sends iPXE
    boot/mac-52-54-00-12-34-56.ipxe   a machine's own script, there only while it must boot from the network

If a machine has no script of its own, iPXE exits, and its firmware tries the next device of its boot order: the disk.
So an installed machine does not start the installer again, and it boots even if the web server is down.
"""

from __future__ import annotations

_CHAIN = """\
#!ipxe
# A machine has a script of its own while it is to boot from the network. Without one the next device boots: the disk.
chain --replace mac-${net0/mac:hexhyp}.ipxe || exit
"""


def chain_script() -> str:
    """The script that every machine's iPXE starts with; file names are relative to its URL."""
    return _CHAIN
