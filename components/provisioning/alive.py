"""Runs beside a conductor, as its liveness probe: ends with 1 where the conductor is to be started again.

That is where its API does not answer, and where the database was started after the conductor. Ironic keeps the locks of
nodes in the database. Where that is away at the moment that a lock is taken off, the lock stays, until the conductor
starts again, which takes off all that are its own (ironic/conductor/task_manager.py, release_resources;
base_manager.py, prepare_host; 39.0.0).

`alive.py PORT SECRETS CA`: the API's port, the file with the database's URL, the database's authority.
"""

from __future__ import annotations

import configparser
import os
import ssl
import sys
import time
import urllib.request
from pathlib import Path
from urllib.parse import unquote, urlsplit

_SECONDS = 10
"""That the API, and the database, may take to answer. Both answer late where many servers are deployed at once."""
_TOLERANCE = 5.0
"""Seconds: both times are whole ones."""


def conductor_started(proc: Path = Path("/proc")) -> float:
    """When the first process of the container began, seconds since the epoch."""
    booted = next(int(line.split()[1]) for line in (proc / "stat").read_text().splitlines() if line.startswith("btime"))
    ticks = int((proc / "1/stat").read_text().rpartition(")")[2].split()[19])
    return booted + ticks / os.sysconf("SC_CLK_TCK")


def database_started(secrets: Path, ca: str) -> float | None:
    """When the database began; None where it does not tell: where it is away, a conductor that ends helps nobody."""
    import pymysql  # pyright: ignore[reportMissingModuleSource] - the image's

    options = configparser.ConfigParser(interpolation=None)
    options.read(secrets)
    url = urlsplit(options["database"]["connection"].replace("$$", "$"))
    try:
        connection = pymysql.connect(
            host=url.hostname,
            port=url.port or 3306,
            user=unquote(url.username or ""),
            password=unquote(url.password or ""),
            ssl={"ca": ca, "check_hostname": True},
            connect_timeout=_SECONDS,
            read_timeout=_SECONDS,
        )
    except (pymysql.MySQLError, OSError):
        return None
    with connection, connection.cursor() as cursor:
        cursor.execute("SHOW GLOBAL STATUS LIKE 'Uptime'")
        told = cursor.fetchone()
    return time.time() - float(told[1]) if told else None


def answers(port: int) -> bool:
    """Whether the API does. Who it is, is not looked at."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with urllib.request.urlopen(f"https://127.0.0.1:{port}/", timeout=_SECONDS, context=context) as answer:
            return answer.status == 200
    except OSError:
        return False


def main(port: str, secrets: str, ca: str) -> int:
    """The status to end with."""
    if not answers(int(port)):
        print("the API does not answer")
        return 1
    began = database_started(Path(secrets), ca)
    if began is not None and began > conductor_started() + _TOLERANCE:
        print("the database was started after this conductor: locks that could not be taken off may be left")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
