"""Whom the Redfish driver trusts, and what it says when it does not."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
import trustme

from metal_ipi.provider.errors import RemoteError
from metal_ipi.provider.platforms.redfish import Redfish, trouble
from tests.provider import fake_bmc
from tests.provider.fake_bmc import PASSWORD, FakeBmc
from tests.provider.harness import settings_of
from tests.serving import serving

pytestmark = pytest.mark.usefixtures("no_waiting")

DAY = timedelta(days=1)


def ask(entry: Mapping[str, Any]) -> None:
    settings = settings_of(bmcs={"server-0": entry})

    async def run() -> None:
        async with Redfish(settings, timeout=2) as driver:
            await driver.inventory("server-0")

    asyncio.run(run())


def refusal(bmc: FakeBmc, entry: Mapping[str, Any]) -> str:
    with pytest.raises(RemoteError) as caught:
        ask(entry)
    assert not any(method == "POST" for method, _ in bmc.requests), "credentials were sent"
    assert PASSWORD not in str(caught.value)
    return str(caught.value)


def without_ca(bmc: FakeBmc, **more: Any) -> dict[str, Any]:
    entry = bmc.settings(**more)
    del entry["ca"]
    return entry


def test_whom_the_system_trusts_and_nobody_else(bmc: FakeBmc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pin = trouble.fingerprint(bmc.certificate)
    message = refusal(bmc, without_ca(bmc))
    assert f"its TLS certificate is not trusted (unable to get local issuer certificate): {pin}" in message
    assert message.endswith(f"trust just this one: `fingerprint: {pin}`")
    # What the environment says of CAs does not count beside a `ca`.
    (tmp_path / "ca.pem").write_text(bmc.ca)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "ca.pem"))
    assert "is not trusted" in refusal(bmc, without_ca(bmc))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    assert "is not trusted" in refusal(bmc, bmc.settings(ca=trustme.CA().cert_pem.bytes().decode()))
    ask(without_ca(bmc))
    assert any(method == "POST" for method, _ in bmc.requests), "no session was made"


def test_a_pinned_certificate() -> None:
    with fake_bmc.running(names=("elsewhere.test",)) as bmc:
        pin = trouble.fingerprint(bmc.certificate)
        ask(without_ca(bmc, fingerprint=pin))
        hexed = pin.removeprefix("sha256:").upper()
        colons = ":".join(hexed[at : at + 2] for at in range(0, 64, 2))
        ask(without_ca(bmc, fingerprint=f"sha256:{colons}"))
        bmc.requests.clear()
        message = refusal(bmc, without_ca(bmc, fingerprint=f"sha256:{'0' * 64}"))
        assert f"does not have the pinned TLS certificate but {pin}" in message
        assert message.endswith("if not, another machine may pose as this BMC")


def test_another_name() -> None:
    with fake_bmc.running(names=("elsewhere.test", "192.0.2.7")) as bmc:
        message = refusal(bmc, bmc.settings())
        assert "its TLS certificate is for elsewhere.test, 192.0.2.7, not for 127.0.0.1" in message
        assert f"`fingerprint: {trouble.fingerprint(bmc.certificate)}`" in message


_AHEAD, _OLD, _LOST = (2 * DAY, 9 * DAY), (-9 * DAY, -2 * DAY), (-9000 * DAY, -8000 * DAY)


@pytest.mark.parametrize(
    ("valid", "clock", "seen", "remedy"),
    [
        (_OLD, timedelta(), "has expired", "the clocks agree: give the BMC a new certificate"),
        (_AHEAD, 3 * DAY, "is not valid yet", "the BMC's clock is wrong: set it"),
        (_OLD, -5 * DAY, "has expired", "the clocks differ: set the one that is wrong"),
        (_LOST, -8500 * DAY, "has expired", "the BMC's clock is wrong: set it"),
    ],
    ids=["expired", "clock of the BMC ahead", "clocks differ", "clock of the BMC lost"],
)
def test_validity(valid: tuple[timedelta, timedelta], clock: timedelta, seen: str, remedy: str) -> None:
    now = datetime.now(UTC)
    with fake_bmc.running(not_before=now + valid[0], not_after=now + valid[1]) as bmc:
        bmc.date = format_datetime(now + clock, usegmt=True)
        message = refusal(bmc, bmc.settings())
        assert f"its TLS certificate {seen}: it is valid from " in message and remedy in message
        assert f"{now + clock:%Y-%m-%d}" in message and "on the BMC" in message


def test_our_own_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trouble, "_BUILT", datetime.now(UTC) + DAY)
    with fake_bmc.running(not_before=datetime.now(UTC) - 9 * DAY, not_after=datetime.now(UTC) - DAY) as bmc:
        assert refusal(bmc, bmc.settings()).endswith("the clock of this computer is wrong: set it")


def test_no_tls_there(tmp_path: Path) -> None:
    with serving(tmp_path) as url, pytest.raises(RemoteError, match="it does not speak TLS there; correct `address`"):
        ask({"address": url.replace("http:", "https:"), "username": "u", "password": "p"})


def test_a_redirection_without_tls_is_not_followed(bmc: FakeBmc) -> None:
    bmc.faults = [fake_bmc.moved("Systems", "http://127.0.0.1:1/redfish/v1/Systems")]
    with pytest.raises(RemoteError, match="it redirects to an address without TLS"):
        ask(bmc.settings())
