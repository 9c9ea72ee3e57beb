"""Checks of machines in the live system that is to install them, before anything is written to their disks.

    probe.sh     what a machine is asked, as root over SSH; prints JSON
    facts        what it answered
    rules        what follows from the answers of several machines: pure

provider/installation/meeting.py asks, and tells install.sh (components/boot), which waits: docs/adr/0095.
"""
