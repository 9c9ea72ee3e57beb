"""Where names are kept: what the provider gets to hear of each kind, and that no secret is shown."""

from __future__ import annotations

import json
from typing import Any

import pytest

from metal_ipi.provider import configuration
from metal_ipi.stacks import connections
from metal_ipi.stacks.problems import SettingsError
from metal_ipi.stacks.sections.dns import reverse_zone
from metal_ipi.stacks.settings import Settings, parse
from tests.stacks.answers import settings

_CANARY = "hunter2-canary"
_TSIG = {"name": "key.", "secret": "c2VjcmV0"}
_COMMON = {"zone": "example.com", "propagation": "authoritative", "propagationTimeout": 60}
_KINDS: dict[str, tuple[dict[str, Any], dict[str, Any] | None]] = {
    "rfc2136": (
        {"type": "rfc2136", "server": "192.0.2.53", "tsig": _TSIG},
        {"service": "rfc2136", "server": "192.0.2.53", "port": 53, "tsig": {**_TSIG, "algorithm": "hmac-sha256"}},
    ),
    "delegate": (
        {"type": "delegate", "server": "192.0.2.53", "tsig": _TSIG, "parentServers": ["192.0.2.1"]},
        {
            "service": "rfc2136",
            "server": "192.0.2.53",
            "port": 53,
            "tsig": {**_TSIG, "algorithm": "hmac-sha256"},
            "delegation": {"timeout": 3600, "parentServers": ["192.0.2.1"]},
        },
    ),
    "route53": (
        {"type": "route53", "accessKeyId": "a", "secretAccessKey": "s", "zoneId": "Z1"},
        {"service": "route53", "region": "us-east-1", "accessKeyId": "a", "secretAccessKey": "s", "zoneId": "Z1"},
    ),
    "cloudflare": (
        {"type": "cloudflare", "authToken": "t"},
        {"service": "cloudflare", "authToken": "t"},
    ),
    "lexicon": (
        {"type": "lexicon", "service": "gandi", "options": {"auth_token": "t", "api_protocol": "rest"}},
        {"service": "lexicon", "name": "gandi", "options": {"auth_token": "t", "api_protocol": "rest"}},
    ),
    "none": ({"type": "none"}, None),
}


def _settings(dns: dict[str, Any], **changes: Any) -> Settings:
    complete = settings("da11", baseDomain="example.com", **changes)
    return parse({**complete, "dns": json.dumps(dns)}, "da11")


@pytest.mark.parametrize("kind", _KINDS)
def test_the_provider_is_told_what_it_takes(kind: str) -> None:
    given, told = _KINDS[kind]
    section = connections.provider_sections(_settings(given)).get("dns")
    assert section == (None if told is None else {**_COMMON, **told})
    if section is not None:
        assert configuration.parse({"dns": json.dumps(section)})[1] == []


@pytest.mark.parametrize("kind", [kind for kind in _KINDS if kind != "lexicon"])
def test_a_rehearsal_needs_nothing_but_the_kind(kind: str) -> None:
    section = connections.provider_sections(_settings({"type": kind}, rehearsal=True)).get("dns")
    if section is not None:
        assert configuration.parse({"dns": json.dumps(section)})[1] == []


def test_where_nobody_keeps_names_there_is_no_zone() -> None:
    found = _settings({"type": "none"})
    assert (found.zone, found.dns.ttl, found.dns.reverse_zones) == (None, 0, ())


@pytest.mark.parametrize(
    ("written", "zone"),
    [
        ("198.51.100.0/24", "100.51.198.in-addr.arpa"),
        ("203.0.0.0/16", "0.203.in-addr.arpa"),
        ("10.0.0.0/8", "10.in-addr.arpa"),
        ("2001:db8::/32", "8.b.d.0.1.0.0.2.ip6.arpa"),
        ("0/25.100.51.198.in-addr.arpa", "0/25.100.51.198.in-addr.arpa"),
    ],
)
def test_reverse_zones(written: str, zone: str) -> None:
    assert reverse_zone(written) == zone


_MISPLACED: list[dict[str, Any]] = [
    {"type": "lexicon", "service": "gandi", "options": _CANARY},
    {"type": "lexicon", "service": "gandi", "options": [_CANARY]},
    {"type": "lexicon", "service": "gandi", "options": {"authtoken": _CANARY}},
    {"type": "lexicon", "service": "gandi", "options": {"auth_token": {"x": _CANARY}}},
    {"type": "lexicon", "service": "gandy", "options": {"auth_token": _CANARY}},
    {"type": "cloudflare", "authToken": [_CANARY]},
    {"type": "cloudflare", "authtoken": _CANARY},
    {"type": "route53", "accessKeyId": "a", "secretAccessKey": {"x": _CANARY}},
    {"type": "route53", "authToken": _CANARY},
    {"type": "none", "authToken": _CANARY},
]


@pytest.mark.parametrize("dns", _MISPLACED)
def test_no_message_shows_a_secret(dns: dict[str, Any]) -> None:
    with pytest.raises(SettingsError) as caught:
        _settings(dns)
    assert _CANARY not in str(caught.value) and _CANARY not in repr(caught.value.problems)


def test_no_repr_shows_a_secret() -> None:
    for given, _ in _KINDS.values():
        shown = repr(_settings(json.loads(json.dumps(given).replace('"t"', f'"{_CANARY}"').replace('"s"', '"sesame"'))))
        assert _CANARY not in shown and "sesame" not in shown
