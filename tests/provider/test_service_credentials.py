"""ServiceCredentials: made once, rotated with an overlap."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import bcrypt
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from pulumi.provider.experimental import provider as sdk

from metal_ipi.provider.errors import InvalidInputs
from metal_ipi.provider.values import to_wire_map
from tests.provider.harness import Harness, Resource

GIVEN: dict[str, Any] = {"accounts": ["api", "rpc"]}


def opens(state: dict[str, Any], name: str, username: str, password: str) -> bool:
    """As Ironic looks: the first line of that user decides (ironic/common/auth_basic.py)."""
    for line in state["accountsMade"][name]["htpasswd"].splitlines():
        known, _, hashed = line.partition(":")
        if known == username:
            return bcrypt.checkpw(password.encode(), hashed.encode())
    return False


async def test_the_authority_signs_servers_certificates_for_ten_years() -> None:
    state = await Resource(Harness(), "ServiceCredentials").up(GIVEN)
    authority = x509.load_pem_x509_certificate(state["ca"].encode())
    authority.verify_directly_issued_by(authority)
    assert load_pem_private_key(state["caPrivateKey"].encode(), None).public_key() == authority.public_key()
    assert authority.extensions.get_extension_for_class(x509.BasicConstraints).value.path_length == 0
    left = authority.not_valid_after_utc - datetime.now(UTC)
    assert timedelta(days=3649) < left <= timedelta(days=3650)


async def test_hashes_cost_little_at_each_request() -> None:
    """Nobody guesses at a generated password, and Ironic hashes it at each request."""
    state = await Resource(Harness(), "ServiceCredentials").up(GIVEN)
    for account in state["accountsMade"].values():
        assert account["htpasswd"].partition(":")[2].startswith("$2b$04$")
        assert len(account["password"]) >= 32


async def test_everything_but_the_authority_s_certificate_is_secret() -> None:
    it = Resource(Harness(), "ServiceCredentials")
    made = await it.harness.provider.create(sdk.CreateRequest(it.urn, to_wire_map(GIVEN), 0, preview=False))
    assert {key for key, value in made.properties.items() if value.is_secret} == {"caPrivateKey", "accountsMade"}


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
    assert third["ca"] == first["ca"] and third["caPrivateKey"] == first["caPrivateKey"]


async def test_the_authority_of_a_state_of_before_is_kept() -> None:
    it = Resource(Harness(), "ServiceCredentials")
    first = await it.up(GIVEN)
    it.state = {name: value for name, value in first.items() if name != "caPrivateKey"}
    it.state["certificatesMade"] = {"authority": {"certificate": first["ca"], "privateKey": first["caPrivateKey"]}}
    assert await it.changes(GIVEN) == ["caPrivateKey"]
    second = await it.up(GIVEN)
    assert {name: second[name] for name in ("ca", "caPrivateKey")} == {
        name: first[name] for name in ("ca", "caPrivateKey")
    }
    assert await it.changes(GIVEN) == []


async def test_a_rotation_is_not_taken_back() -> None:
    it = Resource(Harness(), "ServiceCredentials")
    await it.up({**GIVEN, "rotation": 2})
    with pytest.raises(InvalidInputs, match="rotation is 2, and is now to be 1"):
        await it.diff(GIVEN)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"accounts": []}, "accounts"),
        ({"accounts": ["A b"]}, "accounts[0]"),
        ({"rotation": 0}, "rotation"),
        ({"passwords": 1}, "passwords"),
    ],
)
async def test_what_is_wrong_is_told_by_its_path(wrong: dict[str, Any], told: str) -> None:
    (problem,) = await Resource(Harness(), "ServiceCredentials").check({**GIVEN, **wrong})
    assert problem.startswith(told)
