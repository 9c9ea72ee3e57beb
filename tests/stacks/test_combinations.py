"""Ways to keep names, to reach the API and to give services addresses, pairwise: what a preview makes of each.

endpoints-<names>-<API>-<services>.txt    the endpoints' resources, and which names are needed
"""

from __future__ import annotations

import json
from itertools import combinations, product
from typing import Any

import pytest

from metal_ipi.stacks.program import main
from tests import golden
from tests.mocks import Recorder, plain, run
from tests.stacks.answers import ANSWERS, CALLS, METALLB, settings

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
    "kube-vip-arp": {"type": "kube-vip", "mode": "arp", "address": "198.51.100.9"},
    "external": {"type": "external", "address": "192.0.2.77"},
}
_BALANCER = {"machineConfigServer": {"allowedNetworks": ["192.0.2.64/28"]}}
_POOL = {"name": "own", "addresses": ["198.51.100.240/28"]}
_SERVICES: dict[str, dict[str, Any]] = {
    "none": {"type": "none"},
    "metallb-bgp": {"type": "metallb-bgp", "pools": [_POOL, {"name": "elastic", "reserve": 4}], "install": False},
    "metallb-l2": {"type": "metallb-l2", "pools": [_POOL]},
    "cloud-controller": {"type": "cloud-controller"},
}
_SHARED = {"rfc2136": ("server", "tsig"), "delegate": ("server", "tsig")}
_TELLING = ("addresses", "interfaces", "ipAddressPools", "peerAddress", "source", "sourceAddress")
_ENDPOINTS = (
    "metal-ipi:index:DnsRecords",
    "equinix-metal:index/reservedIpBlock:ReservedIpBlock",
    "equinix-metal:index/bgpSession:BgpSession",
)


def _settings(dns: str, api: str, services: dict[str, Any]) -> dict[str, str]:
    updates = {"server": "192.0.2.53", "tsig": {"name": "metal-ipi.", "secret": "c3dvcmRmaXNo"}}
    chosen = {name: updates[name] for name in _SHARED.get(dns, ())}
    further = _BALANCER if api == "external" else {}
    given = settings(
        "da11",
        dns={**_DNS[dns], **chosen},
        apiAddress=_API[api],
        serviceAddresses=services,
        workers={"count": 1},
        **further,
    )
    return _without_leftovers(given, dns)


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
    lines += sorted(_object(args) for args in recorder.resources if args.typ in METALLB)
    pools = outputs.get("serviceAddresses", {"pools": {}})["pools"]
    lines += [f"pool {name}: {', '.join(addresses)}" for name, addresses in pools.items()]
    return lines


def _object(args: Any) -> str:
    """A Kubernetes object, with what tells one cluster's from another's."""
    inputs = plain(args.inputs)
    spec = {key: value for key, value in inputs.get("spec", {}).items() if key in _TELLING}
    return " ".join([inputs["kind"], inputs["metadata"]["name"], *([json.dumps(spec, sort_keys=True)] if spec else [])])


# Every two of the three choices meet in one row.
_ROWS = [
    (dns, api, list(_SERVICES)[(first + second) % len(_SERVICES)])
    for first, dns in enumerate(_DNS)
    for second, api in enumerate(_API)
]


def test_rows_have_each_pair() -> None:
    choices = (_DNS, _API, _SERVICES)
    for one, other in combinations(range(len(choices)), 2):
        assert {(row[one], row[other]) for row in _ROWS} == set(product(choices[one], choices[other]))


@pytest.mark.parametrize(("dns", "api", "services"), _ROWS)
def test_each_row_is_as_somebody_last_saw_it(dns: str, api: str, services: str) -> None:
    recorder = Recorder(ANSWERS, CALLS)
    outputs = run(main, recorder, _settings(dns, api, _SERVICES[services]), stack="da11")
    golden.check(f"endpoints-{dns}-{api}-{services}.txt", "".join(f"{line}\n" for line in _lines(recorder, outputs)))


def _without_leftovers(given: dict[str, str], dns: str) -> dict[str, str]:
    """What `settings` adds for RFC 2136 is not a setting of the others."""
    section = json.loads(given["dns"])
    if dns not in _SHARED:
        section = {key: value for key, value in section.items() if key not in ("server", "tsig")}
    return {**given, "dns": json.dumps(section)}
