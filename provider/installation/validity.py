"""How long an installer may be used: its kernel's command line says until when, and install.sh refuses later.

It is said by whoever publishes or starts an installer, at that moment, so it is no part of a generation or of a diff.
A script that was left behind on the web server boots a live system that does nothing; the next run publishes another.
"""

from __future__ import annotations

import re
import time

from provider.installation.inputs import Job


def end_of(job: Job) -> str:
    """The kernel argument for an installer that is published or started now."""
    return f"metal-ipi.not-after={int(time.time() + job.valid_hours * 3600)}"


def limited(job: Job, script: str) -> str:
    """The machine's iPXE script as it is published now."""
    return re.sub(r"^kernel .*$", lambda line: f"{line[0]} {end_of(job)}", script, count=1, flags=re.MULTILINE)
