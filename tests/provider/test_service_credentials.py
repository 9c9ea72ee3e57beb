"""ServiceCredentials: made once, renewed in time, rotated with an overlap."""

from __future__ import annotations

import ipaddress
from datetime import UTC, datetime, timedelta
from typing import Any

import bcrypt
import pytest
from cryptography import x509
from pulumi.provider.experimental import provider as sdk

from metal_ipi.provider import service_credentials
from metal_ipi.provider.errors import InvalidInputs
from metal_ipi.provider.values import to_wire_map
from tests.provider.harness import Harness, Resource

GIVEN: dict[str, Any] = {
    "certificates": {"api": ["192.0.2.15", "ironic.test"], "database": ["database.test"]},
    "accounts": ["api", "rpc"],
}


def certificate(state: dict[str, Any], name: str) -> x509.Certificate:
    return x509.load_pem_x509_certificate(state["certificatesMade"][name]["certificate"].encode())


def opens(state: dict[str, Any], name: str, username: str, password: str) -> bool:
    """As Ironic looks: the first line of that user decides (ironic/common/auth_basic.py)."""
    for line in state["accountsMade"][name]["htpasswd"].splitlines():
        known, _, hashed = line.partition(":")
        if known == username:
            return bcrypt.checkpw(password.encode(), hashed.encode())
    return False


async def test_certificates_are_good_for_their_names_and_signed_by_the_authority() -> None:
    state = await Resource(Harness(), "ServiceCredentials").up(GIVEN)
    authority = x509.load_pem_x509_certificate(state["ca"].encode())
    made = certificate(state, "api")
    made.verify_directly_issued_by(authority)
    names = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["ironic.test"]
    assert names.get_values_for_type(x509.IPAddress) == [ipaddress.ip_address("192.0.2.15")]
    left = made.not_valid_after_utc - datetime.now(UTC)
    assert timedelta(days=396) < left <= timedelta(days=397)


async def test_hashes_cost_little_at_each_request() -> None:
    """Nobody guesses at a generated password, and Ironic hashes it at each request."""
    state = await Resource(Harness(), "ServiceCredentials").up(GIVEN)
    for account in state["accountsMade"].values():
        assert account["htpasswd"].partition(":")[2].startswith("$2b$04$")
        assert len(account["password"]) >= 32


async def test_everything_but_the_authority_s_certificate_is_secret() -> None:
    it = Resource(Harness(), "ServiceCredentials")
    made = await it.harness.provider.create(sdk.CreateRequest(it.urn, to_wire_map(GIVEN), 0, preview=False))
    assert {key for key, value in made.properties.items() if value.is_secret} == {"certificatesMade", "accountsMade"}


async def test_a_second_up_changes_nothing() -> None:
    it = Resource(Harness(), "ServiceCredentials")
    await it.up(GIVEN)
    assert await it.changes(GIVEN) == []


async def test_a_rotation_leaves_the_accounts_before_it_open() -> None:
    it = Resource(Harness(), "ServiceCredentials")
    first = await it.up(GIVEN)
    second = await it.up({**GIVEN, "rotation": 2})
    third = await it.up({**GIVEN, "rotation": 3})
    users = [state["accountsMade"]["api"] for state in (first, second, third)]
    assert [user["username"] for user in users] == ["api-1", "api-2", "api-3"]
    assert len({user["password"] for user in users}) == 3
    assert [opens(second, "api", user["username"], user["password"]) for user in users] == [True, True, False]
    assert [opens(third, "api", user["username"], user["password"]) for user in users] == [False, True, True]
    assert third["accountsMade"]["rpc"]["previousPassword"] == second["accountsMade"]["rpc"]["password"]
    assert third["ca"] == first["ca"] and third["certificatesMade"] == first["certificatesMade"]


async def test_a_rotation_is_not_taken_back() -> None:
    it = Resource(Harness(), "ServiceCredentials")
    await it.up({**GIVEN, "rotation": 2})
    with pytest.raises(InvalidInputs, match="rotation is 2, and is now to be 1"):
        await it.diff(GIVEN)


async def test_certificates_near_their_end_are_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    it = Resource(Harness(), "ServiceCredentials")
    first = await it.up(GIVEN)
    due = datetime.fromisoformat(first["renewal"])
    assert timedelta(days=336) < due - datetime.now(UTC) <= timedelta(days=337)
    later = datetime.now(UTC) + timedelta(days=338)

    class Later(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:  # type: ignore[override]
            return later

    monkeypatch.setattr(service_credentials, "datetime", Later)
    assert await it.changes(GIVEN) == ["renewal"]
    second = await it.up(GIVEN)
    assert second["certificatesMade"]["api"] != first["certificatesMade"]["api"]
    assert second["accountsMade"] == first["accountsMade"] and second["ca"] == first["ca"]
    assert await it.changes(GIVEN) == []


async def test_only_the_certificate_whose_names_changed_is_made_anew() -> None:
    it = Resource(Harness(), "ServiceCredentials")
    first = await it.up(GIVEN)
    second = await it.up({**GIVEN, "certificates": {**GIVEN["certificates"], "api": ["198.51.100.4"]}})
    assert second["certificatesMade"]["database"] == first["certificatesMade"]["database"]
    assert second["certificatesMade"]["api"] != first["certificatesMade"]["api"]


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"accounts": []}, "accounts"),
        ({"accounts": ["A b"]}, "accounts[0]"),
        ({"certificates": {"api": []}}, "certificates.api"),
        ({"certificates": {"api": ["a b"]}}, "certificates.api[0]"),
        ({"rotation": 0}, "rotation"),
        ({"passwords": 1}, "passwords"),
    ],
)
async def test_what_is_wrong_is_told_by_its_path(wrong: dict[str, Any], told: str) -> None:
    (problem,) = await Resource(Harness(), "ServiceCredentials").check({**GIVEN, **wrong})
    assert problem.startswith(told)
