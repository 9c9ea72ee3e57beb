"""What runs on the hub once a day: certificates that are renewed in time, and taken up once."""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509

from metal_ipi.components.provisioning import certificates
from metal_ipi.components.provisioning import renew_certificates as program
from metal_ipi.components.provisioning.renew_certificates import Authority, renew
from metal_ipi.provider.service_credentials import new_authority
from tests.components.test_provisioning import SMALL

WANTED = json.loads(certificates.wanted(SMALL))
SECRETS = [f"api/v1/secrets/{name}" for name in ("ironic-tls", "database-tls")]
IRONIC = "apis/apps/v1/statefulsets/ironic"


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority(*(each.encode() for each in new_authority()))


class Hub:
    """The hub's API: merges, and refuses what was read before somebody else changed it."""

    def __init__(self, *paths: str) -> None:
        self.objects: dict[str, dict[str, Any]] = {path: {"metadata": {"resourceVersion": "1"}} for path in paths}
        self.fails_at: str | None = None

    def get(self, path: str) -> dict[str, Any] | None:
        return copy.deepcopy(self.objects.get(path))

    def patch(self, path: str, change: Mapping[str, Any]) -> dict[str, Any]:
        if path == self.fails_at:
            raise OSError("cut off")
        found = self.objects[path]
        version = found["metadata"]["resourceVersion"]
        if change.get("metadata", {}).get("resourceVersion", version) != version:
            raise OSError("409")
        _merge(found, change)
        found["metadata"]["resourceVersion"] = str(int(version) + 1)
        return copy.deepcopy(found)

    def served(self) -> list[bytes]:
        return [base64.b64decode(self.objects[path]["data"]["tls.crt"]) for path in SECRETS]

    def restarts(self) -> Any:
        return self.objects[IRONIC].get("spec", {}).get("template", {}).get("metadata", {}).get("annotations", {})


def _merge(into: dict[str, Any], change: Mapping[str, Any]) -> None:
    for key, value in change.items():
        if isinstance(value, Mapping):
            _merge(into.setdefault(key, {}), value)
        else:
            into[key] = value


def _put(hub: Hub, authority: Authority, **change: Any) -> None:
    """A certificate that is there, for who serves it."""
    one = {"names": WANTED["certificates"]["ironic-tls"]["names"], "days": WANTED["validDays"], **change}
    made = authority.issue(one["names"], one["days"])
    hub.objects[SECRETS[0]]["data"] = {key: base64.b64encode(each).decode() for key, each in made.items()}


def test_the_job_of_up_makes_them_and_the_daily_one_has_nothing_to_do(authority: Authority) -> None:
    hub = Hub(*SECRETS)
    assert [each.partition(":")[0] for each in renew(hub, WANTED, authority, by_up=True)] == [
        "ironic-tls",
        "database-tls",
    ]
    own = x509.load_pem_x509_certificate(hub.served()[0])
    own.verify_directly_issued_by(authority.certificate)
    names = own.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert "*.ironic-conductors.provisioning.svc.cluster.local" in names.get_values_for_type(x509.DNSName)
    assert str(names.get_values_for_type(x509.IPAddress)[0]) == "192.0.2.15"
    assert timedelta(days=396) < own.not_valid_after_utc - datetime.now(UTC) <= timedelta(days=397)
    hub.objects[IRONIC] = {"metadata": {"resourceVersion": "1"}}
    before = copy.deepcopy(hub.objects)
    assert renew(hub, WANTED, authority, by_up=False) == []
    assert hub.objects == before


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"days": 30}, "it is to be good for 397 days"),
        ({"names": ["192.0.2.99"]}, "other names"),
        ({"authority": "another"}, "not by the authority"),
    ],
)
def test_one_that_is_not_as_wanted_is_made_anew(authority: Authority, change: dict[str, Any], why: str) -> None:
    hub = Hub(*SECRETS, IRONIC)
    renew(hub, WANTED, authority, by_up=True)
    _, database = hub.served()
    signs = Authority(*(each.encode() for each in new_authority())) if change.pop("authority", None) else authority
    _put(hub, signs, **change)
    wrong = hub.served()[0]
    made, restarted = renew(hub, WANTED, authority, by_up=False)
    assert why in made and restarted.startswith("ironic: ")
    assert hub.served()[0] != wrong and hub.served()[1] == database
    assert renew(hub, WANTED, authority, by_up=False) == []


def test_near_its_end_it_is_renewed_and_conductors_start_again(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = Hub(*SECRETS, IRONIC)
    renew(hub, WANTED, authority, by_up=True)
    first, later = hub.served(), datetime.now(UTC) + timedelta(days=338)

    class Later(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:  # type: ignore[override]
            return later

    assert renew(hub, WANTED, authority, by_up=False) == [] and hub.restarts() == {}
    monkeypatch.setattr(program, "datetime", Later)
    # Killed after the new certificate is there: the next run goes on.
    hub.fails_at = IRONIC
    with pytest.raises(OSError, match="cut off"):
        renew(hub, WANTED, authority, by_up=False)
    hub.fails_at, second = None, hub.served()
    assert second[0] != first[0] and hub.restarts() == {}
    done = renew(hub, WANTED, authority, by_up=False)
    assert [each.partition(":")[0] for each in done] == ["ironic", "database-tls"]
    assert hub.served()[0] == second[0] and hub.restarts().keys() == {program.SERVED_WITH}
    assert renew(hub, WANTED, authority, by_up=False) == []


def test_two_at_once_do_not_overwrite_each_other(authority: Authority) -> None:
    hub = Hub(*SECRETS)
    stale = hub.get(SECRETS[0])
    renew(hub, WANTED, authority, by_up=True)
    first = hub.served()
    hub.get = lambda path: stale if path == SECRETS[0] else None
    with pytest.raises(OSError, match="409"):
        renew(hub, WANTED, authority, by_up=False)
    assert hub.served() == first


def test_without_its_secret_it_says_what_to_do(authority: Authority) -> None:
    with pytest.raises(SystemExit, match="there is no Secret ironic-tls: run `up`"):
        renew(Hub(), WANTED, authority, by_up=False)
