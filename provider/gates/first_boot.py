"""OpenShift's first boot: a node answers SSH, then reboots into the operating system of the cluster's release.

The machine config server adds /etc/ignition-machine-config-encapsulated.json to the files that Ignition writes. In the
first boot machine-config-daemon-firstboot.service installs the release's operating system and kernel arguments, renames
that file to .bak and reboots; if nothing has to change, it deletes the file and does not reboot. The kubelet starts
after that (openshift/machine-config-operator:
templates/common/_base/units/machine-config-daemon-firstboot.service.yaml, pkg/daemon/daemon.go
RunFirstbootCompleteMachineconfig). A check before that would see another operating system, and the reboot would end its
connection.

The bootstrap machine has that file permanently: openshift-install puts it there for FIPS (bootstrap-fips). It does not
have the service, so it has no such first boot.
"""

from __future__ import annotations

from dataclasses import dataclass

_PENDING_FILE = "/etc/ignition-machine-config-encapsulated.json"
_UNIT = "machine-config-daemon-firstboot.service"
_PENDING, _RESTARTING, _RESTARTED = "pending", "restarting", "restarted"

# The unit runs until the reboot ends it, so a renamed file together with a running unit means that the reboot is still
# to come. The reboot may end the unit before sshd; then systemd reports the state `stopping` (systemd:
# src/core/manager.c, manager_state).
QUESTION = (
    f"if [ ! -e /etc/systemd/system/{_UNIT} ]; then echo finished; "
    f"elif [ -e {_PENDING_FILE} ]; then echo {_PENDING}; elif [ -e {_PENDING_FILE}.bak ]; then "
    f'case "$(systemctl is-active {_UNIT} 2>/dev/null)/$(systemctl is-system-running 2>/dev/null)" in '
    f"*activating/*|*/stopping) echo {_RESTARTING} ;; *) echo {_RESTARTED} ;; esac; else echo finished; fi"
)
"""A shell command that prints one word for `FirstBoot`."""


@dataclass(kw_only=True)
class FirstBoot:
    """The first boot of one node, observed over several looks."""

    _unfinished: str = ""
    """The id of the boot in which it was last seen unfinished."""

    def awaits(self, word: str, boot_id: str) -> str | None:
        """What is still to come, from the answer to `QUESTION` and the boot's id; None if the first boot is over."""
        if word == _PENDING:
            self._unfinished = boot_id
            return "its first boot is not finished: the operating system of the cluster's release is not in place yet"
        if word == _RESTARTING or (word == _RESTARTED and boot_id == self._unfinished):
            self._unfinished = boot_id
            return "its first boot is done, and it is about to restart"
        return None
