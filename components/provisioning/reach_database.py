"""Says what is wrong with a database that is given. Runs on the hub, in a job of `up`, before Ironic asks it.

`reach_database.py SECRETS CA`: the file with the database's URL, and its authority. Ends with 1 and one line that names
the cause. Ironic itself would try again for ever (`[database]max_retries`), and say so in its log only.
"""

from __future__ import annotations

import configparser
import socket
import ssl
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

_CONNECT_SECONDS = 5
_AGAIN_SECONDS = 12.0
"""How long one that does not answer is asked again: it may just be starting."""
_PROBE = "metal_ipi_probe"
_RIGHTS = (
    f"CREATE TABLE {_PROBE} (id INT)",
    f"ALTER TABLE {_PROBE} ADD COLUMN more INT",
    f"CREATE INDEX probed ON {_PROBE} (id)",
    f"INSERT INTO {_PROBE} (id) VALUES (1)",  # noqa: S608 - our own name
)
_ABSENT, _NO_TLS = (2002, 2003, 2006, 2013), 2026
"""PyMySQL's own numbers."""
_REFUSED = {
    1044: "does not let the account {user} into the database '{name}': grant it all rights there",
    1045: "refuses the account {user}: check database.username and database.password",
    1049: "has no database '{name}': make it, or check database.name",
    1142: "does not let the account {user} make and change tables in '{name}': grant it all rights there",
    1698: "refuses the account {user}: check database.username and database.password",
}
"""What the server answers (MariaDB, MySQL: server error reference)."""


def options(secrets: Path, ca: str) -> dict[str, Any]:
    """What PyMySQL is told, from Ironic's own URL."""
    read = configparser.ConfigParser(interpolation=None)
    read.read(secrets)
    url = urlsplit(read["database"]["connection"].replace("$$", "$"))
    return {
        "host": url.hostname,
        "port": url.port or 3306,
        "user": unquote(url.username or ""),
        "password": unquote(url.password or ""),
        "database": url.path.strip("/"),
        "ssl": {"ca": ca, "check_hostname": True},
        "connect_timeout": _CONNECT_SECONDS,
        "read_timeout": _CONNECT_SECONDS,
    }


def attempt(given: dict[str, Any]) -> None:
    """Connect, and do what a change of the schema does. Raises PyMySQL's errors."""
    import pymysql  # pyright: ignore[reportMissingModuleSource] - the image's

    with pymysql.connect(**given) as connection, connection.cursor() as cursor:
        cursor.execute(f"DROP TABLE IF EXISTS {_PROBE}")
        try:
            for statement in _RIGHTS:
                cursor.execute(statement)
        finally:
            cursor.execute(f"DROP TABLE IF EXISTS {_PROBE}")


def cause(error: Exception, given: dict[str, Any]) -> tuple[str, bool]:
    """What an error says, and whether it may pass."""
    under = getattr(error, "original_exception", error)
    number = error.args[0] if error.args and isinstance(error.args[0], int) else 0
    where = f"the database at {given['host']}:{given['port']}"
    if isinstance(under, ssl.SSLCertVerificationError):
        return f"{where} has a certificate that database.ca and database.host do not fit: {under.verify_message}", False
    if isinstance(under, ssl.SSLError) or number == _NO_TLS:
        return f"{where} does not speak TLS: {under}", False
    if isinstance(under, socket.gaierror):
        return f"{where} cannot be found: {under.strerror}; check database.host", True
    if number in _REFUSED:
        told = _REFUSED[number].format(user=f"'{given['user']}'", name=given["database"])
        return f"{where} {told} ({number})", False
    if isinstance(under, OSError) or number in _ABSENT:
        return f"{where} does not answer: {under}; check database.host and database.port", True
    return f"{where}: {error}", True


def problem(
    given: dict[str, Any],
    ask: Callable[[dict[str, Any]], None] = attempt,
    now: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> str | None:
    """What is wrong, or None."""
    until = now() + _AGAIN_SECONDS
    while True:
        try:
            ask(given)
        except Exception as error:  # whatever it is, it is told
            told, passes = cause(error, given)
            if not passes or now() >= until:
                return told
        else:
            return None
        pause(2)


def main(secrets: str, ca: str) -> int:
    """The status to end with."""
    found = problem(options(Path(secrets), ca))
    print(found or "the database is there, and the account may do what it must")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
