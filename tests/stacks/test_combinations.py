"""Every way to keep names with every way to reach the API: what a preview makes, and which names it needs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stacks.program import main
from tests import golden
from tests.mocks import Recorder, plain, run
from tests.stacks.answers import ANSWERS, settings

_DNS: dict[str, dict[str, Any]] = {
    "rfc2136": {"type": "rfc2136"},
    "route53": {"type": "route53", "accessKeyId": "id", "secretAccessKey": "key", "reverseZones": ["198.51.100.0/24"]},
    "cloudflare": {"type": "cloudflare", "authToken": "token"},
    "lexicon": {"type": "lexicon", "service": "hetzner", "options": {"auth_token": "token"}},
    "delegate": {"type": "delegate", "zone": "metal.example.com"},
    "none": {"type": "none"},
}
_API: dict[str, dict[str, Any]] = {
    "dns-round-robin": {"type": "dns-round-robin"},
    "kube-vip": {"type": "kube-vip"},
    "external": {"type": "external", "address": "192.0.2.77"},
}
_BALANCER = {"machineConfigServer": {"allowedNetworks": ["192.0.2.64/28"]}}
_SHARED = {"rfc2136": ("server", "tsig"), "delegate": ("server", "tsig")}
_ENDPOINTS = (
    "metal-ipi:index:DnsRecords",
    "equinix-metal:index/reservedIpBlock:ReservedIpBlock",
    "equinix-metal:index/bgpSession:BgpSession",
)


def _settings(dns: str, api: str) -> dict[str, Any]:
    updates = {"server": "192.0.2.53", "tsig": {"name": "metal-ipi.", "secret": "c3dvcmRmaXNo"}}
    chosen = {name: updates[name] for name in _SHARED.get(dns, ())}
    further = _BALANCER if api == "external" else {}
    return {"dns": {**_DNS[dns], **chosen}, "apiAddress": _API[api], "workers": {"count": 1}, **further}


def _lines(recorder: Recorder, outputs: dict[str, Any]) -> list[str]:
    """The endpoints' resources with what tells them apart, then the names that somebody else has to keep."""
    lines: list[str] = []
    for args in sorted(recorder.resources, key=lambda args: (args.typ, args.name)):
        if args.typ not in _ENDPOINTS:
            continue
        inputs = plain(args.inputs)
        lines.append(f"{args.typ.rpartition(':')[2]} {args.name}{' in ' + inputs['zone'] if 'zone' in inputs else ''}")
        records = inputs.get("records") or {}
        found = records.values() if isinstance(records, dict) else records
        lines += sorted(f"    {record['name']} {record['type']} {record['values']}" for record in found)
    announcing = [a.name for a in recorder.resources if "metal-ipi-kube-vip" in str(plain(a.inputs).get("userData"))]
    lines.append(f"announced by: {', '.join(sorted(announcing)) or 'nobody'}")
    access = plain(recorder.one("machine-config-access").inputs["spec"])
    lines.append(
        f"22623 for {', '.join(access['networks'])}; tried at {', '.join(['the nodes', *access['addresses']])}"
    )
    lines += [f"needed: {line}" for line in outputs.get("dns", {"needed": ()})["needed"]]
    return lines


@pytest.mark.parametrize("api", _API)
@pytest.mark.parametrize("dns", _DNS)
def test_each_combination_is_as_somebody_last_saw_it(dns: str, api: str) -> None:
    recorder = Recorder(ANSWERS)
    given = settings("da11", **_settings(dns, api))
    tree = _without_leftovers(given, dns)
    outputs = run(main, recorder, tree, stack="da11")
    golden.check(f"endpoints-{dns}-{api}.txt", "\n".join(_lines(recorder, outputs)) + "\n")


def _without_leftovers(given: dict[str, str], dns: str) -> dict[str, str]:
    """What `settings` adds for RFC 2136 is no setting of the others."""
    section = json.loads(given["dns"])
    if dns not in _SHARED:
        section = {key: value for key, value in section.items() if key not in ("server", "tsig")}
    return {**given, "dns": json.dumps(section)}
