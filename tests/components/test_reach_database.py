"""What `up` says of a database that is given and cannot be used."""

from __future__ import annotations

import socket
import ssl
from pathlib import Path
from typing import Any

import pytest

from metal_ipi.components.provisioning import configuration
from metal_ipi.components.provisioning.reach_database import cause, options, problem
from tests.components.test_provisioning import LARGE

GIVEN = {"host": "db.test", "port": 3306, "user": "ironic", "database": "ironic"}


class OperationalError(Exception):
    """As PyMySQL raises it: a number, a text, and what it was caused by."""

    def __init__(self, number: int, text: str, original: Exception | None = None) -> None:
        super().__init__(number, text)
        if original is not None:
            self.original_exception = original


def untrusted() -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_message = "unable to get local issuer certificate"
    return error


@pytest.mark.parametrize(
    ("error", "told", "passes"),
    [
        (OperationalError(1045, "Access denied"), "refuses the account 'ironic': check database.username and", False),
        (OperationalError(1044, "Access denied"), "does not let the account 'ironic' into the database", False),
        (OperationalError(1049, "Unknown database"), "has no database 'ironic'", False),
        (OperationalError(1142, "CREATE command denied"), "make and change tables in 'ironic'", False),
        (OperationalError(2003, "Can't connect", untrusted()), "unable to get local issuer certificate", False),
        (OperationalError(2003, "Can't", ssl.SSLError(1, "wrong version number")), "does not speak TLS", False),
        (OperationalError(2026, "SSL is required"), "does not speak TLS", False),
        (OperationalError(2003, "Can't", ConnectionRefusedError(111, "refused")), "does not answer: [Errno 111]", True),
        (OperationalError(2003, "Can't", socket.gaierror(-2, "Name unknown")), "cannot be found: Name unknown", True),
        (OperationalError(1040, "Too many connections"), "Too many connections", True),
    ],
)
def test_each_cause_has_its_name(error: Exception, told: str, passes: bool) -> None:
    found, may_pass = cause(error, GIVEN)
    assert found.startswith("the database at db.test:3306") and told in found
    assert may_pass is passes


def test_one_that_is_just_starting_is_asked_again_for_a_while() -> None:
    answers: list[Exception | None] = [OperationalError(2003, "Can't", ConnectionRefusedError(111, "refused")), None]
    times, waited = [0.0], list[float]()

    def ask(given: dict[str, Any]) -> None:
        error = answers.pop(0) if answers else OperationalError(2003, "Can't", TimeoutError("timed out"))
        if error is not None:
            raise error

    def pause(seconds: float) -> None:
        times[0] += seconds
        waited.append(seconds)

    assert problem(GIVEN, ask, lambda: times[0], pause) is None and waited == [2]
    found = problem(GIVEN, ask, lambda: times[0], pause)
    assert found is not None and "does not answer: timed out" in found and 10 < sum(waited) < 20


def test_the_account_is_the_one_that_ironic_uses(tmp_path: Path) -> None:
    secrets = tmp_path / "secrets.conf"
    secrets.write_text(configuration.secret_conf(configuration.connection(LARGE, "me", "a:b/c@d$e"), "rpc", "x"))
    found = options(secrets, "ca.crt")
    assert (found["host"], found["port"], found["database"]) == ("db.test", 3306, "ironic")
    assert (found["user"], found["password"]) == ("me", "a:b/c@d$e")
    assert found["ssl"] == {"ca": "ca.crt", "check_hostname": True}
