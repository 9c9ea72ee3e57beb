"""Checks of machines in the live system that installs them, before anything is written to their disks.

    probe.sh     collects facts on a machine, as root over SSH; prints JSON
    facts        the facts as types
    rules        checks of the facts of several machines: pure functions

provider/installation/meeting.py runs the probe and sends the decision to install.sh (components/boot), which waits for
it: docs/adr/0095.
"""
