"""A lab from which nothing outside can be reached: names, the way out, and the site's registry of images."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lab.errors import LabError
from lab.mirror import registry
from lab.network import plan, witness
from tests.lab.network.conftest import Lab
from tests.lab.network.test_services import look_up
from tests.lab.waiting import until

pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(not registry.PROGRAM.exists(), reason="docker-registry is not installed (apt: docker-registry)"),
]

_CONNECT = """
import socket, sys
try:
    socket.create_connection((sys.argv[1], 443), timeout=0.5)
except OSError as error:
    print(type(error).__name__)
"""
_ASK = """
import ssl, sys, urllib.error, urllib.request
url, ca, *account = sys.argv[1:]
request = urllib.request.Request(url, headers={"Authorization": f"Basic {account[0]}"} if account else {})
try:
    print(urllib.request.urlopen(request, timeout=5, context=ssl.create_default_context(cafile=ca)).status)
except urllib.error.HTTPError as error:
    print(error.code)
"""


def _seen(lab: Lab) -> dict[str, Any]:
    found = witness.load(lab.layout)
    assert found is not None
    return found


def test_nothing_outside_resolves_or_answers_and_what_is_tried_is_seen(lab: Lab) -> None:
    lab.up(disconnected=True)
    assert look_up(lab, "api.equinix.com", "A") == "NXDOMAIN"
    assert look_up(lab, plan.MIRROR_NAME, "A") == plan.MIRROR
    assert lab.python(_CONNECT, "198.51.100.200").strip() == "TimeoutError"
    until(lambda: _seen(lab)["sent"], 5)
    assert _seen(lab)["outside"] == ["api.equinix.com"] and plan.MIRROR_NAME in _seen(lab)["site"]
    assert _seen(lab)["sent"] == [f"tcp 198.51.100.200:443 from {plan.GATEWAY}"]
    with pytest.raises(LabError, match=r"no way out .*not the names of the world outside: run `make down` first"):
        lab.up()


def test_the_sites_registry_wants_its_account(lab: Lab) -> None:
    import base64

    lab.up(disconnected=True)
    mirror = lab.facts.mirror
    assert mirror is not None and mirror.release_image == "", "the stand-in's release has no images"
    account = base64.b64encode(f"{mirror.username}:{mirror.password}".encode()).decode()
    asked = [f"https://{mirror.registry}/v2/", str(lab.layout.facility_ca)]
    assert lab.python(_ASK, *asked).strip() == "401"
    assert lab.python(_ASK, *asked, account).strip() == "200"


def test_what_a_query_asks_for() -> None:
    header = bytes([0x45, *[0] * 8, 17, *[0] * 10]) + bytes(8) + bytes(12)
    assert witness.queried(header + b"\4Quay\2io\0\0\1\0\1") == "quay.io"
    assert witness.queried(header + b"\4qu") is None
    assert witness.queried(header + b"\xc0\x0c\0\1\0\1") is None
    assert json.loads(json.dumps(witness.Seen(names={"a.localhost", "vm", "quay.io"}).document())) == {
        "site": ["a.localhost", "vm"], "outside": ["quay.io"], "sent": []
    }  # fmt: skip
