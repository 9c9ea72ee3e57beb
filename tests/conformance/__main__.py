"""The tests of this package, as `make conformance` runs them: `python -m tests.conformance [options of pytest]`.

What they run is built before, once per user, so that none of them is skipped for want of it.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

from binaries.crate import NMSTATECTL
from binaries.errors import ProgramMissing
from lab.errors import SetupFailed
from lab.openshift import build
from lab.openshift.real import openshift_install, release
from tests.conformance.conftest import BUTANE


def main(options: Sequence[str]) -> int:
    """Build what is missing, and run the tests; pytest's exit code, or 1 where something cannot be built."""
    try:
        openshift_install.ensure(print)
        release.ensure(print)
        release.ignition_merge(print)
        build.ensure()
        BUTANE.ensure(print)
        NMSTATECTL.ensure(print)
    except (ProgramMissing, SetupFailed) as error:
        print(error, file=sys.stderr)
        return 1
    beside = ("-q", "-n", "2", "--dist", "loadfile", "--no-loadscope-reorder")
    chosen = (*beside, "-rs", "--durations=5", "--durations-min=5", "-m", "conformance", "tests/conformance")
    return subprocess.call([sys.executable, "-m", "pytest", *chosen, *options])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
