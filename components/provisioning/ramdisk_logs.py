"""Runs beside a conductor: prints what ramdisks of servers have logged, so that the hub keeps it with its pods' logs.

Ironic leaves an archive of each deployment, cleaning or inspection (ironic/drivers/utils.py, store_ramdisk_logs). It
is printed line by line, each with the archive's name, which has the node's, and the file's; then it is deleted.

`ramdisk_logs.py DIRECTORY`: where archives are left.
"""

from __future__ import annotations

import signal
import sys
import tarfile
import time
from pathlib import Path

_EVERY_SECONDS = 5.0
_SETTLED_SECONDS = 5.0
"""An archive that was written to more recently is not finished yet."""
_LONGEST = 4096


def tell(archive: Path) -> None:
    """Print the lines of all files in an archive; one that cannot be read is said to be so."""
    name = archive.name.removesuffix(".tar.gz")
    try:
        with tarfile.open(archive) as files:
            for member in files:
                content = files.extractfile(member) if member.isfile() else None
                for line in content or ():
                    print(f"{name} {member.name}: {line.decode(errors='replace').rstrip()[:_LONGEST]}")
    except (tarfile.TarError, EOFError, OSError) as error:
        print(f"{name}: its logs cannot be read: {error}")
    sys.stdout.flush()


def tell_all(directory: Path) -> None:
    """Print and delete what is there, the oldest first."""
    found = [(path.stat().st_mtime, path) for path in directory.glob("*.tar.gz")]
    for written, path in sorted(found):
        if time.time() - written >= _SETTLED_SECONDS:
            tell(path)
            path.unlink()


if __name__ == "__main__":
    # The first process of a container is not ended by a signal that it does not ask for.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    while True:
        tell_all(Path(sys.argv[1]))
        time.sleep(_EVERY_SECONDS)
