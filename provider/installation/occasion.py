"""What an installer is told on its kernel's command line by whoever publishes or starts it, at that moment.

So none of it is part of a generation or of a diff:

- until when it may be used. A script that was left behind on the web server boots a live system that does nothing; the
  next run publishes another.
- that the machine was installed before, and on which disk: install.sh keeps to that.
"""

from __future__ import annotations

import re
import time

from provider.installation.inputs import Job


def arguments(job: Job) -> tuple[str, ...]:
    """The kernel arguments for an installer that is published or started now."""
    end = f"metal-ipi.not-after={int(time.time() + job.valid_hours * 3600)}"
    return (end,) if job.recorded is None else (end, f"metal-ipi.device={job.recorded}")


def script(job: Job, text: str) -> str:
    """The machine's iPXE script as it is published now."""
    return re.sub(r"^kernel .*$", lambda line: " ".join((line[0], *arguments(job))), text, count=1, flags=re.MULTILINE)
