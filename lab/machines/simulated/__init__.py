"""Machines without an operating system that walk the protocols of real ones.

    ipxe       the script language, as far as boot scripts use it
    fetch      HTTP from a machine's own address; large files are downloaded once for all machines
    gpt, disk  disks: files with real partition tables and labels, a directory per file system
    firmware   boot devices in turn, until one gives a kernel
    kernel     what firmware or kexec starts
    provision  Ignition on a first boot, Afterburn
    ignition/  the configuration: schema, merging, fetching, applying to a directory
    root       the directory a machine has for a root file system, and commands rooted in it
    units      systemd units as processes
    ssh        a machine's SSH server
    hardware   programs/ that would talk to a kernel or to disks: coreos-installer, lsblk, mount, kexec, reboot...
    console    what it prints
    machine    the life of one machine, from power on to power off
    backend    all machines

What is real: DHCP's result, iPXE script, kernel arguments, downloads and hashes, Ignition's fetching, verification and
merging, files, units' processes, SSH with the keys and host key of the configuration, the bytes by which blkid and
wipefs know what is on a disk. What is not: a kernel, systemd, what is inside of file systems.
"""

from __future__ import annotations

from lab.machines.simulated.backend import SimulatedBackend
from lab.machines.simulated.surroundings import Surroundings

__all__ = ["SimulatedBackend", "Surroundings"]
