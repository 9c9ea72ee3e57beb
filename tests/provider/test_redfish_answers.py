"""What a BMC answers: words that repeat what was sent, and answers of another shape than Redfish's."""

from __future__ import annotations

import json
from typing import Any

import pytest
from werkzeug.wrappers import Request, Response

from provider.errors import ProviderError
from tests.provider import fake_bmc
from tests.provider.fake_bmc import PASSWORD, USER, UUID, FakeBmc, Fault, once
from tests.provider.test_redfish import bmc, drive, install, refusal, state

__all__ = ["bmc"]
_IMAGE = "http://boot.facility.test/ipxe.iso"


def answers(end: str, document: Any, status: int = 200) -> Fault:
    """A fault: one GET is answered with a document."""

    def fault(request: Request) -> Response | None:
        if request.method != "GET" or not request.path.rstrip("/").endswith(end):
            return None
        return Response(json.dumps(document), status, content_type="application/json")

    return fault


def test_what_a_bmc_quotes_is_no_leak(bmc: FakeBmc) -> None:
    words = f"cannot read {PASSWORD} of {USER}"
    bmc.faults = [once("GET", UUID, 400, words=words)]
    assert "it answered HTTP 400: cannot read [secret] of [secret]" in refusal(bmc, state)
    bmc.faults = [once("POST", "InsertMedia", 400, words=words)]
    message = refusal(bmc, install, bootMethod="virtual-media", bootImage=_IMAGE)
    assert "cannot read [secret] of [secret]" in message and _IMAGE in message


def test_only_the_words_of_the_bmc_are_blotted_out(bmc: FakeBmc, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fake_bmc, "USER", "server")
    bmc.faults = [once("GET", UUID, 400, words="server may not")]
    with pytest.raises(ProviderError) as caught:
        drive(bmc, state, username="server")
    assert str(caught.value) == (
        f"server server-0 (BMC {bmc.address}), asked for its power state: it answered HTTP 400: [secret] may not"
    )


def test_a_long_quotation_is_cut_and_no_credential_with_it(bmc: FakeBmc) -> None:
    bmc.faults = [once("GET", UUID, 400, words="x" * 295 + PASSWORD + "y" * 999)]
    assert refusal(bmc, state).endswith("HTTP 400: " + "x" * 295 + "[secr ...")


@pytest.mark.parametrize(
    "document",
    [[], "no", {"Boot": "no"}, {"Id": "1", "Name": "x", "UUID": UUID, "Actions": [], "PowerState": "On"}],
    ids=str,
)
def test_answers_that_are_not_what_redfish_wants(bmc: FakeBmc, document: Any) -> None:
    bmc.faults = [answers(UUID, document)]
    message = refusal(bmc, install)
    assert ": its answer is not what Redfish wants: " in message and message.endswith("; update the BMC's firmware")
    assert bmc.machine.resets == []


def test_boot_options_that_are_not_what_redfish_wants(bmc: FakeBmc) -> None:
    bmc.machine.refuses, bmc.machine.order = ("Once", "Continuous"), ["Hdd", "Pxe"]
    bmc.faults = [answers("BootOptions", {"Members": [{"Name": "of no address"}]})]
    message = refusal(bmc, install)
    assert (
        "asked to boot from the network first: its answer is not what Redfish wants: KeyError: '@odata.id'" in message
    )


def test_a_refusal_that_is_not_told_as_redfish_wants_is_one_all_the_same(bmc: FakeBmc) -> None:
    bmc.faults = [answers(UUID, ["busy"], 503), answers(UUID, {"error": "busy"}, 503)]
    drive(bmc, state)
    assert bmc.faults == [], "busy passes"
    bmc.faults = [answers(UUID, [f"not {USER}"], 403)]
    message = refusal(bmc, state)
    assert 'it answered HTTP 403: ["not [secret]"]; the account may not do this' in message
