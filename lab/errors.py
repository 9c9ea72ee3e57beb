"""The errors of the lab.

LabError                  anything a user of the lab can act on; the message names the remedy
├── NotRunning            a command needs a running lab, and there is none
├── SandboxRefused        this system gives no access to have namespaces
├── ServiceFailed         a service of the lab died or never answered
└── SetupFailed           something that the lab needs could not be installed or built
    └── ImageError        the node image or a container image cannot be made here
"""

from __future__ import annotations


class LabError(Exception):
    """Anything that keeps the lab from doing what it was asked."""


class NotRunning(LabError):
    """The lab of this state directory does not run."""


class SandboxRefused(LabError):
    """The system refuses the namespaces that the lab lives in."""


class ServiceFailed(LabError):
    """A service of the lab died, or did not answer in time."""


class SetupFailed(LabError):
    """A package or a build that the lab needs is not available."""


class ImageError(SetupFailed):
    """An image, of the nodes or of containers, cannot be made here; the message says which command failed, and why."""
