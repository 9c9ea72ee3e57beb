"""All tests, as `make test` runs them: `python -m tests`.

What drives the engine keeps the processors busy, two at a time; all the rest mostly waits, and is run beside it. What
boots emulated machines wants the processors for itself, and comes last.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile

from tests import browser

_PYTEST = [sys.executable, "-m", "pytest", "-rs"]
_ENGINE = [*_PYTEST, "-m", "engine and not libvirt", "-n", "2", "--dist", "loadfile", "--no-loadscope-reorder"]
_REST = [*_PYTEST, "-q", "-m", "not engine and not libvirt", "-p", "no:cacheprovider"]
_EMULATED = [*_PYTEST, "-m", "libvirt"]


def main() -> int:
    """Run all three and print what each printed; 0 when all passed."""
    browser.set_up(print)
    with tempfile.TemporaryFile("w+", errors="replace") as told:
        rest = subprocess.Popen(_REST, stdout=told, stderr=subprocess.STDOUT)
        statuses = [subprocess.call(_ENGINE), rest.wait()]
        told.seek(0)
        sys.stdout.writelines(told)
        sys.stdout.flush()
    statuses.append(subprocess.call(_EMULATED))
    return int(any(statuses))


if __name__ == "__main__":
    sys.exit(main())
