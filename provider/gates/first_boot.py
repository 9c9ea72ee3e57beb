"""OpenShift's first boot: a node answers SSH, then restarts into the operating system of the cluster's release.

The machine config server adds /etc/ignition-machine-config-encapsulated.json to what Ignition writes. In the first boot
machine-config-daemon-firstboot.service puts the release's operating system and kernel arguments in place, renames that
file to .bak and reboots; where nothing had to change it removes the file and does not reboot. The kubelet starts after
that (openshift/machine-config-operator: templates/common/_base/units/machine-config-daemon-firstboot.service.yaml,
pkg/daemon/daemon.go RunFirstbootCompleteMachineconfig). Whoever looks at the node before sees another operating system,
and is cut off by the reboot.

The bootstrap machine has that file as well, for good: openshift-install puts it there for FIPS (bootstrap-fips). It
does not have the service, so it has no such first boot.
"""

from __future__ import annotations

from dataclasses import dataclass

_PENDING_FILE = "/etc/ignition-machine-config-encapsulated.json"
_UNIT = "machine-config-daemon-firstboot.service"
_PENDING, _RESTARTING, _RESTARTED = "pending", "restarting", "restarted"

# The unit runs until the reboot ends it, so a renamed file beside a running unit means that the reboot is still to
# come. The reboot may end the unit before it ends sshd; until then systemd says that the system is stopping (systemd:
# src/core/manager.c, manager_state).
QUESTION = (
    f"if [ ! -e /etc/systemd/system/{_UNIT} ]; then echo finished; "
    f"elif [ -e {_PENDING_FILE} ]; then echo {_PENDING}; elif [ -e {_PENDING_FILE}.bak ]; then "
    f'case "$(systemctl is-active {_UNIT} 2>/dev/null)/$(systemctl is-system-running 2>/dev/null)" in '
    f"*activating/*|*/stopping) echo {_RESTARTING} ;; *) echo {_RESTARTED} ;; esac; else echo finished; fi"
)
"""A command of the shell that prints one word, for `FirstBoot`."""


@dataclass(kw_only=True)
class FirstBoot:
    """One node's first boot, look by look."""

    _unfinished: str = ""
    """The boot in which it was last seen to be unfinished."""

    def awaits(self, word: str, boot_id: str) -> str | None:
        """What is still to come, given the answer to `QUESTION` and the boot's id; None where nothing is."""
        if word == _PENDING:
            self._unfinished = boot_id
            return "its first boot goes on: the operating system of the cluster's release is not in place yet"
        if word == _RESTARTING or (word == _RESTARTED and boot_id == self._unfinished):
            self._unfinished = boot_id
            return "its first boot is done, and it is about to restart"
        return None
