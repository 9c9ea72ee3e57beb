"""Machines without an operating system that walk the protocols of real ones.

    ipxe       the script language, as far as boot scripts use it
    fetch      HTTP from a machine's own address; large files are downloaded once for all machines
    ignition/  the configuration: schema, merging, fetching, applying to a directory
    root       the directory a machine has for a root file system, and commands rooted in it
    units      systemd units as processes
    ssh        a machine's SSH server
    console    what it prints
    machine    the boot of one machine, from power on to a login
    backend    all machines

What is real: DHCP's result, iPXE script, kernel arguments, downloads and hashes, Ignition's fetching, verification and
merging, files, units' processes, SSH with the keys and host key of the configuration. What is not: a kernel, systemd.
"""

from __future__ import annotations

from lab.machines.simulated.backend import SimulatedBackend
from lab.machines.simulated.surroundings import Surroundings

__all__ = ["SimulatedBackend", "Surroundings"]
